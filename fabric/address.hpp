// SPDX-License-Identifier: BSD-3-Clause
// An endpoint's address as libfabric's programs hand it on: parc_address_of's text, which only the kernel
// reads. Its 64 bytes are what Open MPI takes at most.
#pragma once

#include "parc/parc.h"

#include <cstring>
#include <optional>

namespace parc::fabric {

struct Address {
  char text[PARC_ADDRESS_BYTES]{};
  [[nodiscard]] bool ends() const { return strnlen(text, sizeof text) < sizeof text; }

  // None: it has not the length that all of them have.
  [[nodiscard]] static std::optional<Address> from(const char* text) {
    Address address;
    if (std::strlen(text) != sizeof address.text - 1) return {};
    std::memcpy(address.text, text, sizeof address.text);
    return address;
  }
};
static_assert(sizeof(Address) == 64);

} // namespace parc::fabric
