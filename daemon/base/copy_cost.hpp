// SPDX-License-Identifier: BSD-3-Clause
// What copies cost on this machine, measured when a kernel starts; about a millisecond.
#pragma once

#include <cstdint>

namespace parc::daemon {

// Of a memcpy; at least 1.
[[nodiscard]] std::uint32_t copy_ns_per_kib();

// Whether a copy through the system (process_vm_readv) costs so little that a message between two programs'
// own memories is sooner there with two of these than with the three that it needs otherwise: it looks up
// every page, which is cheap on most machines and costs more than the copy on some virtual ones.
[[nodiscard]] bool cross_copies_pay();

} // namespace parc::daemon
