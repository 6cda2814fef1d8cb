// SPDX-License-Identifier: BSD-3-Clause
#include "client/preload/hooks.hpp"

#include <atomic>

namespace parc::preload {
namespace {

std::atomic<const client::EarlyHooks*> found;
// Looking is slow, and most programs that are looked at in vain have no libparc: so it is done seldom.
std::atomic<unsigned> looks;
constexpr unsigned looks_between = 256;

} // namespace

const client::EarlyHooks* hooks() {
  if (const auto* const known = found.load(std::memory_order_acquire)) return known;
  if (looks.fetch_add(1, std::memory_order_relaxed) % looks_between != 0) return nullptr;
  using Get = const client::EarlyHooks*();
  auto* const get = reinterpret_cast<Get*>(dlsym(RTLD_DEFAULT, client::early_hooks_symbol));
  if (get == nullptr) return nullptr;
  found.store(get(), std::memory_order_release);
  return found.load(std::memory_order_relaxed);
}

} // namespace parc::preload
