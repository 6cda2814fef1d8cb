// SPDX-License-Identifier: BSD-3-Clause
// What the provider offers, and whether that meets a program's hints (fi_getinfo(3)). Connects to no kernel:
// every process with libfabric asks.
#pragma once

#include "fabric/provider.hpp"

namespace parc::fabric {

inline constexpr std::uint32_t address_format = FI_PROV_SPECIFIC | 0x70726163; // of fabric/address.hpp
inline constexpr std::uint32_t protocol = FI_PROV_SPECIFIC | 0x70726163;       // the wire of our kernels
inline constexpr std::uint64_t longest_message = std::uint64_t{8} << 30;
inline constexpr std::size_t max_pieces = 64;      // of a message; libparc takes more
inline constexpr std::size_t inject_bytes = 16384; // all writes are copied: a limit on what waits
inline constexpr std::uint64_t capabilities = FI_MSG | FI_TAGGED | FI_SEND | FI_RECV | FI_MULTI_RECV |
                                              FI_DIRECTED_RECV | FI_SOURCE | FI_LOCAL_COMM | FI_REMOTE_COMM;
// Of endpoints for remote memory. One may be for both.
inline constexpr std::uint64_t remote_capabilities = FI_RMA | FI_ATOMIC | FI_READ | FI_WRITE |
                                                     FI_REMOTE_READ | FI_REMOTE_WRITE | FI_LOCAL_COMM |
                                                     FI_REMOTE_COMM;
[[nodiscard]] inline constexpr bool is_for_remote_memory(std::uint64_t caps) {
  return (caps & (FI_RMA | FI_ATOMIC)) != 0;
}
[[nodiscard]] inline constexpr bool is_for_messages(std::uint64_t caps) {
  return (caps & (FI_MSG | FI_TAGGED)) != 0 || !is_for_remote_memory(caps);
}
// Flags that calls may have by themselves, or by an endpoint's default.
inline constexpr std::uint64_t send_flags = FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE |
                                            FI_TRANSMIT_COMPLETE | FI_MATCH_COMPLETE | FI_DELIVERY_COMPLETE |
                                            FI_REMOTE_CQ_DATA | FI_MORE;
inline constexpr std::uint64_t receive_flags = FI_COMPLETION | FI_MORE | FI_MULTI_RECV;

int get_info(std::uint32_t version, const char* node, const char* service, std::uint64_t flags,
             const fi_info* hints, fi_info** info);

} // namespace parc::fabric
