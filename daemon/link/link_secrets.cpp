// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/link_secrets.hpp"

#include "system/identity.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/kdf.h>
#include <openssl/params.h>
#include <span>

namespace parc::daemon {
namespace {

constexpr std::size_t name_digits = 32; // of the identity that goes in clear

std::string in_digits(std::span<const std::byte> bytes) {
  std::string text;
  for (const std::byte b : bytes) text += fmt::format("{:02x}", static_cast<unsigned>(b));
  return text;
}

Secret whole_name(const Key& key) {
  return derive(key, "parc link: name of the key");
}

} // namespace

Secret derive(const Key& key, std::string_view purpose) {
  const std::unique_ptr<EVP_KDF, decltype(&EVP_KDF_free)> hkdf(EVP_KDF_fetch(nullptr, "HKDF", nullptr),
                                                               EVP_KDF_free);
  const std::unique_ptr<EVP_KDF_CTX, decltype(&EVP_KDF_CTX_free)> run(
      hkdf ? EVP_KDF_CTX_new(hkdf.get()) : nullptr, EVP_KDF_CTX_free);
  Key secret = key; // the library's parameters are not const
  std::string digest = "SHA256", info(purpose);
  const std::array<OSSL_PARAM, 4> how{
      OSSL_PARAM_construct_utf8_string(OSSL_KDF_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_KEY, secret.data(), secret.size()),
      OSSL_PARAM_construct_octet_string(OSSL_KDF_PARAM_INFO, info.data(), info.size()),
      OSSL_PARAM_construct_end()};
  Secret result;
  // Fails only when the library has no memory, or may not: random bytes convince nobody.
  if (!run || EVP_KDF_derive(run.get(), reinterpret_cast<unsigned char*>(result.data()), result.size(),
                             how.data()) != 1)
    fill_random(result);
  OPENSSL_cleanse(secret.data(), secret.size());
  ERR_clear_error();
  return result;
}

Keys relay_keys(const Keys& keys) {
  if (keys.use == KeyUse::relay) return keys;
  const auto derived = [](const Key& key) { return derive(key, "parc: key of relays"); };
  return {derived(keys.own), keys.other ? std::optional(derived(*keys.other)) : std::nullopt, KeyUse::relay};
}

std::vector<Credential> credentials(const Keys& keys, bool encrypted) {
  std::vector<Credential> all;
  const auto add = [&all](const Keys& some) {
    all.push_back({some.own, some.use});
    if (some.other) all.push_back({*some.other, some.use});
  };
  add(keys);
  if (keys.use == KeyUse::link && encrypted) add(relay_keys(keys));
  return all;
}

const Credential& to_prove(const std::vector<Credential>& all, KeyUse use) {
  const auto found = std::ranges::find(all, use, &Credential::use);
  return found == all.end() ? all.front() : *found;
}

Secret tls_secret(const Key& key) {
  return derive(key, "parc link: tls");
}

std::string tls_identity(const Key& key) {
  return "parc-" + in_digits(whole_name(key)).substr(0, name_digits);
}

KeyName name_of(const Key& key) {
  KeyName name;
  std::copy_n(whole_name(key).begin(), name.size(), name.begin());
  return name;
}

std::string fingerprint(const Key& key) {
  return in_digits(name_of(key));
}

} // namespace parc::daemon
