// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/hooks.hpp"

#include "client/early/fault.hpp"
#include "client/early/guards.hpp"

namespace parc::client {

thread_local int InLibrary::depth_ = 0;

namespace {

bool any() {
  const Guards* const caught = caught_guards();
  return caught != nullptr && caught->any() && !InLibrary::is();
}

// Between any() and here the last guard may have gone, and the context may not.
void settle(const void* memory, std::size_t bytes) {
  const InLibrary here;
  if (Guards* const caught = caught_guards()) caught->settle_pages(memory, bytes);
}

void settle_begun() {
  const InLibrary here;
  if (Guards* const caught = caught_guards()) caught->settle_begun();
}

void settle_all() {
  const InLibrary here;
  if (Guards* const caught = caught_guards()) caught->settle_all();
}

bool in_library() {
  return InLibrary::is();
}

constexpr EarlyHooks hooks{any, in_library, settle, settle_begun, settle_all, set_program_action};

} // namespace
} // namespace parc::client

extern "C" __attribute__((visibility("default"))) const parc::client::EarlyHooks* parc_early_hooks_1() {
  return &parc::client::hooks;
}
