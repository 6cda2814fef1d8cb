// SPDX-License-Identifier: BSD-3-Clause
// The key that all kernels of a user share: 32 random bytes, written as 64 hexadecimal digits in a file that
// only its owner may read. Invariant: of any number of kernels that start together without a key, all end up
// with the same one, and no file under the key's name is ever incomplete.
#pragma once

#include "system/error.hpp"

#include <array>
#include <cstddef>
#include <string>

namespace parc::daemon {

using Key = std::array<std::byte, 32>;

// Refuses a file that others can read, that belongs to somebody else, or that is malformed.
[[nodiscard]] Result<Key> read_key(const std::string& path);

// From a descriptor, to its end: who starts a kernel hands it its key.
[[nodiscard]] Result<Key> take_key(int from);
[[nodiscard]] std::string to_text(const Key& key); // its digits

// Makes the key, and the directory it is in, where there is none.
[[nodiscard]] Result<Key> read_or_make_key(const std::string& path);

} // namespace parc::daemon
