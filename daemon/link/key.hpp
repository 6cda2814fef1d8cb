// SPDX-License-Identifier: BSD-3-Clause
// The key that all kernels of a user share: 32 random bytes, written as 64 hexadecimal digits in a file that
// only its owner may read. While it is being changed, a second one stands on the next line. A kernel that
// only relays has relay keys there instead, which are derived from those. Invariant: of any number of kernels
// that start together without a key, all end up with the same one, and no file under the key's name is ever
// incomplete.
#pragma once

#include "system/error.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace parc::daemon {

using Key = std::array<std::byte, 32>;

// What who proves a key may do over the link: everything, or only relay.
enum class KeyUse : std::uint8_t { link, relay };
[[nodiscard]] constexpr bool serves(KeyUse has, KeyUse wanted) {
  return has == KeyUse::link || wanted == KeyUse::relay;
}

struct Keys {
  Keys() = default;
  Keys(const Key& first, const std::optional<Key>& second = {}, KeyUse are = KeyUse::link)
      : own(first), other(second), use(are) {}
  bool operator==(const Keys&) const = default;

  Key own{};                 // proves this kernel to others
  std::optional<Key> other;  // convinces it, too
  KeyUse use = KeyUse::link; // relay: it has no others
};

// Refuses a file that others can read, that belongs to somebody else, or that is malformed.
[[nodiscard]] Result<Keys> read_keys(const std::string& path);

// From a descriptor, to its end: who starts a kernel hands it its keys.
[[nodiscard]] Result<Keys> take_keys(int from);
[[nodiscard]] std::string to_text(const Keys& keys); // as they stand in a file, a line each

// Makes a key, and the directory it is in, where there is none.
[[nodiscard]] Result<Keys> read_or_make_key(const std::string& path);
// EEXIST: there is a file of that name already.
[[nodiscard]] Result<void> make_key(const std::string& path);

} // namespace parc::daemon
