// SPDX-License-Identifier: BSD-3-Clause
// An endpoint's address as libfabric's programs hand it on: parc_address_of's text, as bytes of one length on
// all hosts (Open MPI takes 64 at most).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace parc::fabric {

struct Address {
  static constexpr std::uint32_t right_magic = 0x63726170; // "parc", in the byte order of its host
  static constexpr std::uint16_t right_version = 1;

  std::uint32_t magic = right_magic;
  std::uint16_t version = right_version;
  std::uint16_t port = 0;
  std::uint64_t identity = 0;
  std::uint64_t number = 0;
  char host[40]{}; // names or numeric addresses, zero terminated
};
static_assert(sizeof(Address) == 64);

// False: the text is too long, or no address.
[[nodiscard]] bool read_address(std::string_view text, Address& address);

// Empty: these bytes are no address of ours.
[[nodiscard]] std::string text_of(const Address& address);

} // namespace parc::fabric
