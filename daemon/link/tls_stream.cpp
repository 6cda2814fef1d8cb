// SPDX-License-Identifier: BSD-3-Clause
// The library encrypts and decrypts, and this moves what it makes and wants. It reads straight from the
// stream below into its own large buffer, and from there straight to where the bytes belong; what it writes
// is gathered, and goes in one piece.
#include "daemon/link/tls_stream.hpp"

#include "daemon/link/handshake.hpp"
#include "daemon/link/link_secrets.hpp"
#include "system/identity.hpp"

#include <algorithm>
#include <cerrno>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <utility>

namespace parc::daemon {
namespace {

constexpr std::size_t record_bytes = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr std::size_t read_ahead = std::size_t{256} << 10;
constexpr std::size_t least_at_once = record_bytes, most_at_once = std::size_t{256} << 10;
constexpr std::size_t overhead = 512; // of a record, with room to spare
// Long before what AES-GCM may encrypt with one key (2^24.5 records).
constexpr std::uint64_t records_of_key = std::uint64_t{1} << 23, bytes_of_key = std::uint64_t{64} << 30;
// Of the other side: it renews its keys every 64 GiB, and has nothing else to say besides data.
constexpr std::uint64_t most_besides_data = 16, forgotten_after = std::uint64_t{1} << 30;
constexpr unsigned char content_alert = 21, content_handshake = 22;
constexpr int key_unknown = SSL_AD_INTERNAL_ERROR; // what the library says where we do not know a key's name

const unsigned char usage[] = {'p', 'a', 'r', 'c'};
const unsigned char suite[] = {0x13, 0x01}; // TLS_AES_128_GCM_SHA256

const TlsSettings& settings_of(SSL* tls) {
  return *static_cast<const TlsSettings*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(tls)));
}

// The library frees the session that it is given: each time a reference of its own.
SSL_SESSION* session_of(SSL* tls) {
  SSL_SESSION* const session = settings_of(tls).session();
  SSL_SESSION_up_ref(session);
  return session;
}

int use_key(SSL* tls, const EVP_MD* digest, const unsigned char** name, std::size_t* length,
            SSL_SESSION** session) {
  *session = nullptr;
  if (digest != nullptr && !EVP_MD_is_a(digest, "SHA256")) return 1; // not with what that one is for
  const std::string& identity = settings_of(tls).identity();
  *name = reinterpret_cast<const unsigned char*>(identity.data());
  *length = identity.size();
  *session = session_of(tls);
  return 1;
}

// Who names another key ends here: there is nothing else that we could agree on.
int find_key(SSL* tls, const unsigned char* name, std::size_t length, SSL_SESSION** session) {
  *session = nullptr;
  const std::string& identity = settings_of(tls).identity();
  if (!std::equal(name, name + length, identity.begin(), identity.end(),
                  [](unsigned char a, char b) { return a == static_cast<unsigned char>(b); }))
    return 0;
  *session = session_of(tls);
  return 1;
}

} // namespace

void TlsSettings::Free::operator()(SSL_CTX* context) const {
  SSL_CTX_free(context);
}
void TlsSettings::Free::operator()(SSL_SESSION* session) const {
  SSL_SESSION_free(session);
}
void TlsStream::Free::operator()(SSL* tls) const {
  SSL_free(tls);
}

TlsSettings::TlsSettings(const Key& key)
    : identity_(tls_identity(key)), session_(SSL_SESSION_new()), context_(SSL_CTX_new(TLS_method())) {
  SSL_CTX* const all = context_.get();
  const Secret secret = tls_secret(key);
  const bool done =
      all != nullptr && session_ != nullptr && SSL_CTX_set_min_proto_version(all, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_max_proto_version(all, TLS1_3_VERSION) == 1 &&
      SSL_CTX_set_ciphersuites(all, "TLS_AES_128_GCM_SHA256") == 1 &&
      SSL_CTX_set1_groups_list(all, "X25519") == 1 && SSL_CTX_set_num_tickets(all, 0) == 1 &&
      SSL_SESSION_set1_master_key(session_.get(), reinterpret_cast<const unsigned char*>(secret.data()),
                                  secret.size()) == 1 &&
      SSL_SESSION_set_protocol_version(session_.get(), TLS1_3_VERSION) == 1 &&
      // The library wants these, where a certificate would be looked at.
      SSL_CTX_set_session_id_context(all, usage, sizeof usage) == 1 &&
      SSL_SESSION_set1_id_context(session_.get(), usage, sizeof usage) == 1;
  if (!done) throw std::bad_alloc(); // the library has no other reason
  SSL_CTX_set_options(all, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_session_cache_mode(all, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_verify(all, SSL_VERIFY_PEER, nullptr); // a certificate convinces nobody here
  SSL_CTX_set_app_data(all, this);
  SSL_CTX_set_psk_use_session_callback(all, use_key);
  SSL_CTX_set_psk_find_session_callback(all, find_key);
  SSL_CTX_set_read_ahead(all, 1);
  SSL_CTX_set_default_read_buffer_len(all, read_ahead); // untouched pages of it cost nothing
  std::unique_ptr<SSL, void (*)(SSL*)> any(SSL_new(all), SSL_free);
  const SSL_CIPHER* const cipher = any ? SSL_CIPHER_find(any.get(), suite) : nullptr;
  if (cipher == nullptr || SSL_SESSION_set_cipher(session_.get(), cipher) != 1) throw std::bad_alloc();
}

TlsSettings::~TlsSettings() = default;

BIO_METHOD* TlsStream::bio_methods() {
  static BIO_METHOD* const methods = [] {
    BIO_METHOD* const made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "stream");
    if (made == nullptr) throw std::bad_alloc();
    BIO_meth_set_read_ex(made, bio_read);
    BIO_meth_set_write_ex(made, bio_write);
    BIO_meth_set_ctrl(made, bio_control);
    return made;
  }();
  return methods;
}

TlsStream::TlsStream(const TlsSettings& settings, std::unique_ptr<Stream> under, Side side)
    : Stream(under->local(), under->peer()), under_(std::move(under)), side_(side),
      greeting_sends_(side == Side::dials), tls_(SSL_new(settings.context())), at_once_(least_at_once) {
  BIO* const bio = BIO_new(bio_methods());
  if (!tls_ || bio == nullptr) {
    BIO_free(bio);
    throw std::bad_alloc();
  }
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(tls_.get(), bio, bio);
  SSL_set_app_data(tls_.get(), this);
  SSL_set_msg_callback(tls_.get(), heard);
  SSL_set_msg_callback_arg(tls_.get(), this);
  if (side_ == Side::dials)
    SSL_set_connect_state(tls_.get());
  else
    SSL_set_accept_state(tls_.get());
}

TlsStream::~TlsStream() = default;

// ---- What the library asks for.

int TlsStream::bio_read(BIO* bio, char* to, std::size_t bytes, std::size_t* got) {
  auto& stream = *static_cast<TlsStream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  *got = 0;
  if (!stream.under_->readable()) {
    if (stream.input_.status == Transfer::Status::moved) BIO_set_retry_read(bio);
    return 0;
  }
  const iovec part{to, bytes};
  const Transfer how = stream.under_->read({&part, 1});
  if (how.status == Transfer::Status::moved) {
    *got = how.bytes;
    return stream.judge_first_bytes(to, how.bytes) ? 1 : 0;
  }
  if (how.status == Transfer::Status::would_block)
    BIO_set_retry_read(bio);
  else
    stream.input_ = how;
  return 0;
}

// All of it: who fills this has looked at how much lies here.
int TlsStream::bio_write(BIO* bio, const char* from, std::size_t bytes, std::size_t* went) {
  auto& stream = *static_cast<TlsStream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const auto* const begin = reinterpret_cast<const std::byte*>(from);
  stream.encrypted_.insert(stream.encrypted_.end(), begin, begin + bytes);
  *went = bytes;
  return 1;
}

long TlsStream::bio_control(BIO*, int what, long, void*) {
  return what == BIO_CTRL_FLUSH ? 1 : 0;
}

// What the other side says besides data, once the two have greeted each other.
void TlsStream::heard(int outgoing, int, int type, const void*, std::size_t, SSL*, void* stream) {
  auto& self = *static_cast<TlsStream*>(stream);
  if (outgoing != 0 || type != content_handshake || self.stage_ != Stage::open) return;
  ++self.besides_data_;
}

// A stream that begins with anything but a record of TLS is another program's, or a kernel's that does not
// encrypt.
bool TlsStream::judge_first_bytes(const char* bytes, std::size_t count) {
  if (std::exchange(any_came_, true) || count == 0) return true;
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (first == content_handshake || first == content_alert) return true;
  clear_ = handshake::judge_clear(std::as_bytes(std::span(bytes, count)));
  return false;
}

// ---- Going on.

bool TlsStream::readable() const {
  switch (stage_) {
  case Stage::greeting: return greeting_sends_ ? under_->writable() : under_->readable();
  case Stage::open: return !starved_ || under_->readable();
  case Stage::broken: break;
  }
  return true;
}

bool TlsStream::writable() const {
  switch (stage_) {
  case Stage::greeting: return greeting_sends_ ? under_->writable() : under_->readable();
  case Stage::open: return under_->writable();
  case Stage::broken: break;
  }
  return true;
}

bool TlsStream::flush() {
  while (holds() && under_->writable()) {
    const iovec part{encrypted_.data() + gone_, encrypted_.size() - gone_};
    const Transfer how = under_->write({&part, 1});
    if (how.status == Transfer::Status::would_block) break;
    if (how.status != Transfer::Status::moved) {
      output_ = how;
      return false;
    }
    gone_ += how.bytes;
  }
  if (holds()) return false;
  encrypted_.clear();
  gone_ = 0;
  return true;
}

bool TlsStream::greet() {
  if (stage_ != Stage::greeting) return stage_ == Stage::open;
  if (under_->opened() != 0) return false;
  const int result = SSL_do_handshake(tls_.get());
  const bool all_gone = flush();
  greeting_sends_ = !all_gone;
  if (result != 1) {
    (void)not_now(result);
    return false;
  }
  // A key was used, or it was greeted by nobody whom we know.
  if (SSL_session_reused(tls_.get()) != 1) {
    (void)is_broken("the other side offers a certificate where a key is meant");
    return false;
  }
  stage_ = Stage::open;
  starved_ = false; // what follows may have come with it
  return true;
}

// Why nothing moved: there will be more, or there will not.
Transfer TlsStream::not_now(int result) {
  const int why = SSL_get_error(tls_.get(), result);
  if (clear_) return is_broken(clear_->why);
  if (input_.status != Transfer::Status::moved) return input_;
  if (why == SSL_ERROR_WANT_READ) {
    starved_ = true;
    return {.status = Transfer::Status::would_block};
  }
  if (why == SSL_ERROR_ZERO_RETURN) return {.status = Transfer::Status::ended};
  return is_broken(why_refused());
}

std::string TlsStream::why_refused() const {
  const unsigned long what = ERR_peek_error();
  const int reason = ERR_GET_REASON(what);
  const bool of_key = reason == SSL_R_BAD_EXTENSION || reason == SSL_R_BINDER_DOES_NOT_VERIFY ||
                      reason == SSL_AD_REASON_OFFSET + key_unknown ||
                      reason == SSL_AD_REASON_OFFSET + SSL_AD_UNKNOWN_PSK_IDENTITY;
  if (stage_ == Stage::greeting && of_key)
    return "the kernel there does not hold the key of this host; both need the same key file";
  const char* const words = ERR_reason_error_string(what);
  return fmt::format("its encryption is not right: {}", words != nullptr ? words : "it says no more");
}

Transfer TlsStream::is_broken(std::string why) {
  ERR_clear_error();
  if (stage_ != Stage::broken) why_ = std::move(why);
  // The other side may hear why, in its language.
  if (stage_ != Stage::broken && clear_ && clear_->of_kernel && side_ == Side::accepts)
    encrypted_ = handshake::refusal(clear_->why);
  (void)flush();
  stage_ = Stage::broken;
  return {.status = Transfer::Status::broken, .code = EPROTO};
}

// Why nothing can be read or written.
Transfer TlsStream::not_open() {
  if (stage_ == Stage::broken) return {.status = Transfer::Status::broken, .code = EPROTO};
  if (stage_ == Stage::greeting && input_.status != Transfer::Status::moved) return input_;
  return {.status = Transfer::Status::would_block};
}

std::string TlsStream::describe(int code) const {
  return stage_ == Stage::broken && code == EPROTO ? why_ : under_->describe(code);
}

Transfer TlsStream::read(std::span<const iovec> to) {
  if (!greet()) return not_open();
  (void)flush(); // what the library has answered meanwhile
  std::size_t moved = 0;
  for (const iovec& part : to) {
    for (std::size_t done = 0; done < part.iov_len;) {
      std::size_t got = 0;
      const int result =
          SSL_read_ex(tls_.get(), static_cast<std::byte*>(part.iov_base) + done, part.iov_len - done, &got);
      if (result != 1) {
        const Transfer how = not_now(result);
        return moved != 0 ? Transfer{.bytes = moved} : how; // why there is no more is said again
      }
      starved_ = false;
      moved += got;
      done += got;
      bytes_in_ += got;
      if (besides_data_ > most_besides_data) return is_broken("it says too much besides data");
      if (bytes_in_ >= forgotten_after) bytes_in_ = besides_data_ = 0;
    }
  }
  return {.bytes = moved};
}

Transfer TlsStream::write(std::span<const iovec> from) {
  if (!greet() || !flush()) return output_.status != Transfer::Status::moved ? output_ : not_open();
  if (records_ >= records_of_key || bytes_ >= bytes_of_key) renew_keys();
  encrypted_.reserve(at_once_ + at_once_ / 16 + overhead);
  std::size_t taken = 0;
  for (const iovec& part : from) {
    const std::size_t room = at_once_ - std::min(at_once_, taken);
    if (room == 0) break;
    std::span bytes(static_cast<const std::byte*>(part.iov_base), std::min(part.iov_len, room));
    taken += bytes.size();
    // Long pieces are encrypted from where they lie.
    while (!bytes.empty()) {
      if (record_.empty() && bytes.size() >= record_bytes) {
        if (!encrypt(bytes.first(record_bytes))) return is_broken(why_refused());
        bytes = bytes.subspan(record_bytes);
        continue;
      }
      const std::size_t some = std::min(bytes.size(), record_bytes - record_.size());
      record_.insert(record_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(some));
      bytes = bytes.subspan(some);
      if (record_.size() < record_bytes) continue;
      if (!encrypt(record_)) return is_broken(why_refused());
      record_.clear();
    }
  }
  if (!record_.empty() && !encrypt(record_)) return is_broken(why_refused());
  record_.clear();
  (void)flush();
  if (taken == 0) return {.status = Transfer::Status::would_block};
  return {.bytes = taken};
}

bool TlsStream::encrypt(std::span<const std::byte> bytes) {
  std::size_t went = 0;
  ++records_;
  bytes_ += bytes.size();
  return SSL_write_ex(tls_.get(), bytes.data(), bytes.size(), &went) == 1 && went == bytes.size();
}

void TlsStream::renew_keys() {
  records_ = bytes_ = 0;
  (void)SSL_key_update(tls_.get(), SSL_KEY_UPDATE_NOT_REQUESTED); // goes before the next record
}

// Behind what was written. What the other stream does not take now is lost: nobody waits for it.
void TlsStream::end_output() {
  if (stage_ == Stage::open) (void)SSL_shutdown(tls_.get());
  ERR_clear_error();
  (void)flush();
  under_->end_output();
}

// A train behind which a short message waits is no longer than the path takes at once.
void TlsStream::limit(const PathLimits& limits) {
  at_once_ = std::clamp<std::size_t>(limits.unsent, least_at_once, most_at_once);
  under_->limit(limits);
}

ChannelBinding TlsStream::binding() const {
  static constexpr std::string_view label = "EXPORTER-Channel-Binding"; // RFC 9266
  ChannelBinding binding{};
  if (stage_ != Stage::open ||
      SSL_export_keying_material(tls_.get(), reinterpret_cast<unsigned char*>(binding.data()), binding.size(),
                                 label.data(), label.size(), nullptr, 0, 0) != 1)
    fill_random(binding); // which convinces nobody
  return binding;
}

Result<std::unique_ptr<Stream>> TlsStreams::dial(const Address& to) {
  PARC_TRY(stream, under_.dial(to));
  return std::unique_ptr<Stream>(new TlsStream(settings_, std::move(stream), TlsStream::Side::dials));
}

void TlsStreams::accept_for(Acceptance owner) {
  owner_ = std::move(owner);
  under_.accept_for(
      {.room = owner_.room, .accepted = [this](std::unique_ptr<Stream> stream) {
         owner_.accepted(std::make_unique<TlsStream>(settings_, std::move(stream), TlsStream::Side::accepts));
       }});
}

} // namespace parc::daemon
