// SPDX-License-Identifier: BSD-3-Clause
// A stream that encrypts what goes over another one: TLS 1.3 with a pre-shared key on both sides and a fresh
// key exchange for each connection (psk_dhe_ke), no certificates or tickets. Who dials sends no early data;
// who accepts may write behind its part of the greeting, which nobody reads who does not hold the key. What
// was recorded stays secret when the key is lost later. The links' handshake runs inside, and its proofs
// cover binding(), so that nobody can end the encryption in between.
//
// To read, something may have to be written first, and the other way round, while the two sides greet each
// other: readable() and writable() say of either direction whether going on makes sense. What was encrypted
// and did not go lies here (holds()), and nothing more is taken before it has gone.
//
// Invariants: no byte is handed out before its record's tag is right; what lies here is bounded (at_once_); a
// record that is wrong, an alert, or too many messages besides data end this stream with a sentence.
#pragma once

#include "daemon/link/handshake.hpp"
#include "daemon/link/stream.hpp"
#include "daemon/link/stream_maker.hpp"
#include "daemon/link/tls_settings.hpp"

#include <array>
#include <memory>
#include <openssl/types.h>
#include <string>
#include <vector>

struct bio_method_st; // of the library: a name that its small header lacks

namespace parc::daemon {

class TlsStream final : public Stream {
public:
  enum class Side : std::uint8_t { dials, accepts };
  // `use`: of the key that who dials proves. Errors: ENOMEM, EPROTONOSUPPORT (the library cannot do what
  // links need).
  [[nodiscard]] static Result<std::unique_ptr<Stream>> make(std::shared_ptr<const TlsSettings> settings,
                                                            std::unique_ptr<Stream> under, Side side,
                                                            KeyUse use = KeyUse::link);
  ~TlsStream() override;

  int opened() override { return under_->opened(); }
  [[nodiscard]] bool readable() const override;
  [[nodiscard]] bool writable() const override;
  Transfer read(std::span<const iovec> to) override;
  Transfer write(std::span<const iovec> from) override;
  [[nodiscard]] bool holds() const override { return gone_ != encrypted_.size(); }
  void end_output() override;

  [[nodiscard]] std::optional<PathReport> path() const override { return under_->path(); }
  void limit(const PathLimits& limits) override;
  void limit_silence(std::chrono::milliseconds time) override { under_->limit_silence(time); }
  [[nodiscard]] bool proves_key() const override { return true; }
  [[nodiscard]] ChannelBinding binding() const override;
  [[nodiscard]] bool is_ordered() const override { return under_->is_ordered(); }
  [[nodiscard]] std::string describe(int code) const override;
  void renew_keys(); // from the next record on; done by itself long before a key has to be

private:
  enum class Stage : std::uint8_t { greeting, open, broken };
  TlsStream(std::shared_ptr<const TlsSettings> settings, std::unique_ptr<SSL, TlsSettings::Free> tls,
            BIO* bio, std::unique_ptr<Stream> under, Side side);
  static int bio_read(BIO* bio, char* to, std::size_t bytes, std::size_t* got);
  static int bio_write(BIO* bio, const char* from, std::size_t bytes, std::size_t* went);
  static long bio_control(BIO* bio, int what, long number, void* pointer);
  static void heard(int outgoing, int version, int type, const void* bytes, std::size_t length, SSL* tls,
                    void* stream);
  static bio_method_st* bio_methods();

  [[nodiscard]] int go_on_greeting();
  [[nodiscard]] Transfer write_early(std::span<const iovec> from);
  [[nodiscard]] bool greet(); // false: it takes longer, or the stream is broken
  [[nodiscard]] bool fetch(); // false: nothing is there that the library may have
  [[nodiscard]] bool is_clear();
  [[nodiscard]] Transfer not_now(int result);
  [[nodiscard]] Transfer is_broken(Error why);
  [[nodiscard]] Transfer not_open();
  [[nodiscard]] Transfer discard();
  [[nodiscard]] Error why_refused() const;
  bool flush(); // false: the other stream has broken, or takes no more for now
  [[nodiscard]] bool encrypt(std::span<const std::byte> bytes);

  std::shared_ptr<const TlsSettings> settings_; // as they were when it began
  std::unique_ptr<Stream> under_;
  const Side side_;
  Stage stage_ = Stage::greeting;
  bool answered_ = false; // who accepts has said all that is its part of the greeting
  bool greeting_sends_;   // what the greeting waits for
  std::unique_ptr<SSL, TlsSettings::Free> tls_;
  bool starved_ = true; // no whole record lies here: more has to come before there is anything to read
  std::vector<std::byte> came_; // ahead of the library, from handed_ to came_end_
  std::size_t handed_ = 0, came_end_ = 0;
  std::size_t of_greeting_ = 0;             // bytes that the library has had while it was greeting
  bool judged_ = false;                     // it began as a connection of TLS does
  std::optional<handshake::InClear> clear_; // the other side does not encrypt
  std::vector<std::byte> encrypted_;        // that has not gone, from gone_ on
  std::size_t gone_ = 0;
  std::size_t at_once_;                   // bytes that are encrypted at a time, by what the path can take
  std::vector<std::byte> record_;         // short pieces, until they are one record
  std::uint64_t records_ = 0, bytes_ = 0; // with the present keys
  std::uint64_t besides_data_ = 0;        // messages of the other side's, since `bytes_in_`
  std::uint64_t bytes_in_ = 0;
  Transfer input_{}, output_{}; // how those of the stream below have ended
  Error why_;                   // it is broken
};

// Makes encrypted streams of the streams of another maker, which it outlives not.
class TlsStreams final : public StreamMaker {
public:
  TlsStreams(const Keys& keys, StreamMaker& under) : under_(under) { use(keys); }
  void use(const Keys& keys) { settings_ = std::make_shared<const TlsSettings>(keys); } // from now on

  Result<std::unique_ptr<Stream>> dial(const Address& to, KeyUse use) override;
  void accept_for(Acceptance owner) override;
  void resume() override { under_.resume(); }

private:
  std::shared_ptr<const TlsSettings> settings_;
  StreamMaker& under_;
  Acceptance owner_;
};

} // namespace parc::daemon
