// SPDX-License-Identifier: BSD-3-Clause
#include "daemon/link/tls_settings.hpp"

#include <algorithm>
#include <climits>
#include <cstdint>
#include <ctime>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

namespace parc::daemon {
namespace {

const unsigned char usage[] = {'p', 'a', 'r', 'c'};
const unsigned char suite[] = {0x13, 0x01}; // TLS_AES_128_GCM_SHA256

const TlsSettings& settings_of(SSL* tls) {
  return *static_cast<const TlsSettings*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(tls)));
}

// The library frees what it is given, each time a reference of its own, and lets sessions grow old, which a
// key does not.
SSL_SESSION* session_of(const TlsSettings::Identity& identity) {
  SSL_SESSION* const session = identity.session.get();
  SSL_SESSION_set_time(session, std::time(nullptr));
  SSL_SESSION_up_ref(session);
  return session;
}

int use_key(SSL* tls, const EVP_MD* digest, const unsigned char** name, std::size_t* length,
            SSL_SESSION** session) {
  *session = nullptr;
  if (digest != nullptr && !EVP_MD_is_a(digest, "SHA256")) return 1; // not with what that one is for
  const auto use = static_cast<KeyUse>(reinterpret_cast<std::uintptr_t>(SSL_get_app_data(tls)));
  const TlsSettings::Identity& own = settings_of(tls).identity_for(use);
  *name = reinterpret_cast<const unsigned char*>(own.name.data());
  *length = own.name.size();
  *session = session_of(own);
  return 1;
}

// Who names another key ends here, before any exchange of keys: there is nothing else to agree on.
int find_key(SSL* tls, const unsigned char* name, std::size_t length, SSL_SESSION** session) {
  *session = nullptr;
  const std::string_view wanted(reinterpret_cast<const char*>(name), length);
  const auto& all = settings_of(tls).identities();
  const auto found = std::ranges::find(all, wanted, &TlsSettings::Identity::name);
  if (found == all.end()) return 0;
  *session = session_of(*found);
  return 1;
}

} // namespace

// What find_key() comes to here, and over there.
bool is_of_other_key(unsigned long error) {
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return false;
  switch (ERR_GET_REASON(error)) {
  case SSL_R_BAD_EXTENSION:
  case SSL_R_BINDER_DOES_NOT_VERIFY:
  case SSL_AD_REASON_OFFSET + SSL_AD_INTERNAL_ERROR:
  case SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_PSK_IDENTITY: return true;
  default: return false;
  }
}

// Here, of what is offered; and over there, of what this side offers.
bool is_of_other_version(unsigned long error) {
  if (ERR_GET_LIB(error) != ERR_LIB_SSL) return false;
  switch (ERR_GET_REASON(error)) {
  case SSL_R_UNSUPPORTED_PROTOCOL:
  case SSL_R_VERSION_TOO_LOW:
  case SSL_AD_REASON_OFFSET + SSL_AD_PROTOCOL_VERSION: return true;
  default: return false;
  }
}

void TlsSettings::Free::operator()(SSL* tls) const {
  SSL_free(tls);
}
void TlsSettings::Free::operator()(SSL_CTX* context) const {
  SSL_CTX_free(context);
}
void TlsSettings::Free::operator()(SSL_SESSION* session) const {
  SSL_SESSION_free(session);
}

TlsSettings::TlsSettings(const Keys& keys) : context_(SSL_CTX_new(TLS_method())) {
  ERR_clear_error();
  if (context_ && set_up(keys)) return;
  const char* const words = ERR_reason_error_string(ERR_peek_error());
  problem_ = words != nullptr ? words : "it does not say why";
  ERR_clear_error();
}

bool TlsSettings::set_up(const Keys& keys) {
  SSL_CTX* const all = context_.get();
  if (SSL_CTX_set_min_proto_version(all, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(all, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_ciphersuites(all, "TLS_AES_128_GCM_SHA256") != 1 ||
      SSL_CTX_set1_groups_list(all, "X25519") != 1 || SSL_CTX_set_num_tickets(all, 0) != 1 ||
      // The library wants this, where a certificate would be looked at.
      SSL_CTX_set_session_id_context(all, usage, sizeof usage) != 1)
    return false;
  SSL_CTX_set_options(all, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(all, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(all, SSL_VERIFY_PEER, nullptr); // a certificate convinces nobody here
  SSL_CTX_set_max_cert_list(all, 1);                 // and is not even read
  SSL_CTX_set_app_data(all, this);
  SSL_CTX_set_psk_use_session_callback(all, use_key);
  SSL_CTX_set_psk_find_session_callback(all, find_key);
  const std::unique_ptr<SSL, Free> any(SSL_new(all));
  const SSL_CIPHER* const cipher = any ? SSL_CIPHER_find(any.get(), suite) : nullptr;
  return cipher != nullptr &&
         std::ranges::all_of(credentials(keys), [&](const Credential& key) { return add(key, cipher); });
}

bool TlsSettings::add(const Credential& key, const SSL_CIPHER* cipher) {
  SSL_SESSION* const session =
      identities_
          .emplace_back(
              Identity{tls_identity(key.key), key.use, std::unique_ptr<SSL_SESSION, Free>(SSL_SESSION_new())})
          .session.get();
  Secret secret = tls_secret(key.key);
  const bool has_key =
      session != nullptr &&
      SSL_SESSION_set1_master_key(session, reinterpret_cast<const unsigned char*>(secret.data()),
                                  secret.size()) == 1;
  OPENSSL_cleanse(secret.data(), secret.size());
  return has_key && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1 &&
         SSL_SESSION_set_timeout(session, INT_MAX) == 1 &&
         SSL_SESSION_set1_id_context(session, usage, sizeof usage) == 1 &&
         SSL_SESSION_set_cipher(session, cipher) == 1;
}

std::unique_ptr<SSL, TlsSettings::Free> TlsSettings::make(KeyUse use) const {
  if (!problem_.empty()) return nullptr;
  std::unique_ptr<SSL, Free> made(SSL_new(context_.get()));
  // The library keeps a word for who uses it.
  if (made) SSL_set_app_data(made.get(), reinterpret_cast<void*>(static_cast<std::uintptr_t>(use)));
  return made;
}

const TlsSettings::Identity& TlsSettings::identity_for(KeyUse use) const {
  const auto found = std::ranges::find(identities_, use, &Identity::use);
  return found == identities_.end() ? identities_.front() : *found;
}

} // namespace parc::daemon
