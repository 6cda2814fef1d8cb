// SPDX-License-Identifier: BSD-3-Clause
// The key that all kernels of a user share: 32 random bytes, written as 64 hexadecimal digits in a file that
// only its owner may read. While it is being changed, a second one stands on the next line. Invariant: of any
// number of kernels that start together without a key, all end up with the same one, and no file under the
// key's name is ever incomplete.
#pragma once

#include "system/error.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string>

namespace parc::daemon {

using Key = std::array<std::byte, 32>;

struct Keys {
  Keys() = default;
  Keys(const Key& first, const std::optional<Key>& second = {}) : own(first), other(second) {}
  bool operator==(const Keys&) const = default;
  [[nodiscard]] bool hold(const Key& key) const { return key == own || key == other; }

  Key own{};                // proves this kernel to others
  std::optional<Key> other; // convinces it, too
};

// Refuses a file that others can read, that belongs to somebody else, or that is malformed.
[[nodiscard]] Result<Keys> read_keys(const std::string& path);

// From a descriptor, to its end: who starts a kernel hands it its keys.
[[nodiscard]] Result<Keys> take_keys(int from);
[[nodiscard]] std::string to_text(const Keys& keys); // their digits, a line each

// Makes a key, and the directory it is in, where there is none.
[[nodiscard]] Result<Keys> read_or_make_key(const std::string& path);
// EEXIST: there is a file of that name already.
[[nodiscard]] Result<void> make_key(const std::string& path);

} // namespace parc::daemon
