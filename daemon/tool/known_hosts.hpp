// SPDX-License-Identifier: BSD-3-Clause
// Kernels tell each other where the others are, so that names mean the same on every host of a parc up.
//
// Invariant: whatever a kernel is told, it learns names and numeric addresses, and only so many.
#pragma once

#include "daemon/link/peers.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace parc::daemon {

using ToldHosts = std::vector<std::array<std::string, 2>>; // name, address

// Of the kernels that this one is linked to, for that at the link `to`: [name, address], the address as
// endpoint_address.hpp says it.
[[nodiscard]] ToldHosts hosts_to_tell(const Peers& peers, std::int32_t to);

// Of a host, as another kernel may say it.
[[nodiscard]] bool is_host_name(const std::string& name);

// What the kernel at the link `from` has told. What makes no sense is left out.
void learn_hosts(Peers& peers, std::int32_t from, const ToldHosts& told);

} // namespace parc::daemon
