// SPDX-License-Identifier: BSD-3-Clause
#include "client/preload/hooks.hpp"

#include <atomic>

namespace parc::preload {
namespace {

std::atomic<const client::EarlyHooks*> offered;

} // namespace

const client::EarlyHooks* hooks() {
  return offered.load(std::memory_order_acquire);
}

} // namespace parc::preload

extern "C" __attribute__((visibility("default"))) void
parc_early_offer_3(const parc::client::EarlyHooks* hooks);
void parc_early_offer_3(const parc::client::EarlyHooks* hooks) {
  parc::preload::offered.store(hooks, std::memory_order_release);
}
