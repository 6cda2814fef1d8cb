// SPDX-License-Identifier: BSD-3-Clause
// What all encrypted streams of a kernel share: the library's settings, and the key by which both sides of a
// connection know each other. TLS 1.3 alone, one suite, one group, no certificates, tickets or early data.
#pragma once

#include "daemon/link/link_secrets.hpp"

#include <memory>
#include <openssl/types.h>
#include <string>
#include <vector>

struct ssl_session_st; // of the library: names that its small header lacks
struct ssl_cipher_st;

namespace parc::daemon {

class TlsSettings {
public:
  explicit TlsSettings(const Keys& keys);
  TlsSettings(const TlsSettings&) = delete;
  TlsSettings& operator=(const TlsSettings&) = delete;

  struct Free {
    void operator()(SSL* tls) const;
    void operator()(SSL_CTX* context) const;
    void operator()(ssl_session_st* session) const;
  };
  // One side of a connection, and for what it dials; none: there is no memory, or the library cannot do what
  // links need.
  [[nodiscard]] std::unique_ptr<SSL, Free> make(KeyUse use = KeyUse::link) const;
  [[nodiscard]] const std::string& problem() const { return problem_; } // why it cannot; empty: it can

  // For the library's questions; the session is the key, as the library has it.
  struct Identity {
    std::string name;
    KeyUse use = KeyUse::link;
    std::unique_ptr<ssl_session_st, Free> session;
  };
  [[nodiscard]] const std::vector<Identity>& identities() const { return identities_; }
  [[nodiscard]] const Identity& identity_for(KeyUse use) const;

private:
  [[nodiscard]] bool set_up(const Keys& keys);
  [[nodiscard]] bool add(const Credential& key, const ssl_cipher_st* cipher);

  std::vector<Identity> identities_;
  std::unique_ptr<SSL_CTX, Free> context_;
  std::string problem_;
};

// Whether the last failure of the library, in this thread, says that the two sides hold other keys.
[[nodiscard]] bool is_of_other_key(unsigned long error);
// The same of the versions of TLS that they speak.
[[nodiscard]] bool is_of_other_version(unsigned long error);

} // namespace parc::daemon
