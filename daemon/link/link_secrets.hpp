// SPDX-License-Identifier: BSD-3-Clause
// What is derived from the shared key for encrypted links: never the key itself goes into TLS, and who sees
// the name of a key learns nothing of it.
#pragma once

#include "daemon/link/key.hpp"

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace parc::daemon {

using Secret = std::array<std::byte, 32>;

// HKDF-SHA256 (RFC 5869) of the key, for one purpose.
[[nodiscard]] Secret derive(const Key& key, std::string_view purpose);

// For kernels that only relay: of no use for links, and nobody gets from it to the key.
[[nodiscard]] Keys relay_keys(const Keys& keys);

// All that convince a kernel, those that prove it to others first; relay keys only where links are encrypted,
// or whoever relays could say what it likes between the ends.
struct Credential {
  Key key{};
  KeyUse use = KeyUse::link;
};
[[nodiscard]] std::vector<Credential> credentials(const Keys& keys, bool encrypted = true);
// Which of them who dials proves: its own, or that for relays; never none.
[[nodiscard]] const Credential& to_prove(const std::vector<Credential>& all, KeyUse use);

// The pre-shared key of TLS, and the name that goes over the network in clear.
[[nodiscard]] Secret tls_secret(const Key& key);
[[nodiscard]] std::string tls_identity(const Key& key);

// Which key is meant, between those who may hold two; and the same for people, in hexadecimal digits.
using KeyName = std::array<std::byte, 4>;
[[nodiscard]] KeyName name_of(const Key& key);
[[nodiscard]] std::string fingerprint(const Key& key);

} // namespace parc::daemon
