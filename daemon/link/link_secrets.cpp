// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/link_secrets.hpp"

#include "system/identity.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <vector>

namespace parc::daemon {
namespace {

constexpr std::size_t name_bytes = 16; // of the identity that goes in clear

Secret hmac(const Secret& secret, const std::vector<unsigned char>& message) {
  Secret result;
  unsigned length = 0;
  // Fails only when the library has no memory; random bytes convince nobody.
  if (!HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), message.data(), message.size(),
            reinterpret_cast<unsigned char*>(result.data()), &length))
    fill_random(result);
  return result;
}

} // namespace

// Extract with a salt of zeros, then one block of expand, which is as long as the secret.
Secret derive(const Key& key, std::string_view purpose) {
  std::vector<unsigned char> input(key.size());
  std::ranges::transform(key, input.begin(), [](std::byte b) { return static_cast<unsigned char>(b); });
  const Secret extracted = hmac(Secret{}, input);
  std::vector<unsigned char> info(purpose.begin(), purpose.end());
  info.push_back(1);
  return hmac(extracted, info);
}

Secret tls_secret(const Key& key) {
  return derive(key, "parc link: tls");
}

std::string tls_identity(const Key& key) {
  const Secret name = derive(key, "parc link: name of the key");
  std::string text = "parc-";
  for (const std::byte b : std::span(name).first(name_bytes))
    text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

} // namespace parc::daemon
