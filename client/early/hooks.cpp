// SPDX-License-Identifier: BSD-3-Clause
#include "client/early/hooks.hpp"

#include "client/base/in_library.hpp"
#include "client/early/fault.hpp"
#include "client/early/guards.hpp"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>

namespace parc::client {

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

const EarlyHooks hooks{any,
                       in_library,
                       settle,
                       settle_begun,
                       settle_all,
                       &Guards::guarded(),
                       before_change,
                       set_program_action,
                       before_fork,
                       after_fork_in_parent,
                       after_fork_in_child};

// When this library is loaded: libparc-early.so came before.
const bool offered = [] {
  using Offer = void(const EarlyHooks*);
  auto* const offer = reinterpret_cast<Offer*>(dlsym(RTLD_DEFAULT, early_offer_symbol));
  if (offer != nullptr) offer(&hooks);
  return offer != nullptr;
}();

} // namespace

EarlyLibrary early_library() {
  if (offered) return EarlyLibrary::ours;
  const char* const preload = getenv("LD_PRELOAD");
  const bool preloaded = preload != nullptr && std::strstr(preload, "libparc-early.so") != nullptr;
  return preloaded ? EarlyLibrary::another : EarlyLibrary::none;
}

} // namespace parc::client
