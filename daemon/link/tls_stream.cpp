// SPDX-License-Identifier: BSD-3-Clause
// The library encrypts and decrypts, and this moves what it makes and wants. What comes is fetched in large
// pieces, and handed to it a record at a time (its own buffer, made large, is moved to its front for each
// record); it puts what is right straight where the bytes belong. What it writes is gathered, and goes in one
// piece.
#include "daemon/link/tls_stream.hpp"

#include "daemon/link/handshake.hpp"
#include "system/identity.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <utility>

namespace parc::daemon {
namespace {

constexpr std::size_t record_bytes = SSL3_RT_MAX_PLAIN_LENGTH;
// Nothing of a record counts before all of it is there: a connection that does not live long brings
// something, too, and a link over those comes on.
constexpr std::size_t first_record_bytes = 4 << 10;
constexpr std::uint64_t bytes_of_first_records = 64 << 10;
// Read at a time from the stream below; and while nobody is known yet, from whom the library has no more than
// a greeting takes.
constexpr std::size_t read_ahead = std::size_t{256} << 10, first_read = 1024, longest_greeting = 4096;
constexpr std::size_t least_at_once = record_bytes, most_at_once = std::size_t{128} << 10;
constexpr std::size_t most_early = 1024; // at a time
constexpr std::size_t overhead = 512;    // of a record, with room to spare
// Long before what AES-GCM may encrypt with one key (2^24.5 records).
constexpr std::uint64_t records_of_key = std::uint64_t{1} << 23, bytes_of_key = std::uint64_t{64} << 30;
// Of the other side: it renews its keys every 64 GiB, and has nothing else to say besides data.
constexpr std::uint64_t most_besides_data = 16, forgotten_after = std::uint64_t{1} << 30;
constexpr unsigned char content_alert = 21, content_handshake = 22;

} // namespace

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

Result<std::unique_ptr<Stream>> TlsStream::make(std::shared_ptr<const TlsSettings> settings,
                                                std::unique_ptr<Stream> under, Side side, KeyUse use) {
  if (!settings->problem().empty())
    return error(EPROTONOSUPPORT, "links cannot be encrypted here: OpenSSL says: {}", settings->problem());
  auto tls = settings->make(use);
  BIO* const bio = tls ? BIO_new(bio_methods()) : nullptr;
  if (bio == nullptr) {
    ERR_clear_error();
    return error(ENOMEM, "there is no memory to encrypt a link with");
  }
  return std::unique_ptr<Stream>(
      new TlsStream(std::move(settings), std::move(tls), bio, std::move(under), side));
}

TlsStream::TlsStream(std::shared_ptr<const TlsSettings> settings, std::unique_ptr<SSL, TlsSettings::Free> tls,
                     BIO* bio, std::unique_ptr<Stream> under, Side side)
    : Stream(under->local(), under->peer()), settings_(std::move(settings)), under_(std::move(under)),
      side_(side), greeting_sends_(side == Side::dials), tls_(std::move(tls)),
      at_once_(under_->path() ? least_at_once : most_at_once) { // which nobody measures
  BIO_set_data(bio, this);
  BIO_set_init(bio, 1);
  SSL_set_bio(tls_.get(), bio, bio);
  SSL_set_msg_callback(tls_.get(), heard);
  SSL_set_msg_callback_arg(tls_.get(), this);
  if (side_ == Side::dials)
    SSL_set_connect_state(tls_.get());
  else
    SSL_set_accept_state(tls_.get());
}

TlsStream::~TlsStream() = default;

// ---- What the library asks for.

// Of a stream in which more came than a peer has to say it gets nothing: it would eat that in one call.
int TlsStream::bio_read(BIO* bio, char* to, std::size_t bytes, std::size_t* got) {
  auto& stream = *static_cast<TlsStream*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  *got = 0;
  const bool too_much = stream.of_greeting_ > longest_greeting || stream.besides_data_ > most_besides_data;
  if (too_much) return 0;
  if ((!stream.judged_ || stream.handed_ == stream.came_end_) && !stream.fetch()) {
    if (stream.input_.status == Transfer::Status::moved && !stream.clear_) BIO_set_retry_read(bio);
    return 0;
  }
  *got = std::min(bytes, stream.came_end_ - stream.handed_);
  std::memcpy(to, stream.came_.data() + stream.handed_, *got);
  stream.handed_ += *got;
  if (stream.stage_ == Stage::greeting) stream.of_greeting_ += *got;
  return 1;
}

bool TlsStream::fetch() {
  if (judged_) handed_ = came_end_ = 0;
  const std::size_t room = stage_ == Stage::open ? read_ahead : first_read;
  if (came_.size() < room) came_.resize(room);
  do {
    if (!under_->readable()) return false;
    const iovec part{came_.data() + came_end_, came_.size() - came_end_};
    const Transfer how = under_->read({&part, 1});
    if (how.status == Transfer::Status::moved) {
      came_end_ += how.bytes;
    } else if (how.status == Transfer::Status::would_block) {
      return false;
    } else {
      input_ = how;
      return is_clear() ? false : came_end_ != handed_;
    }
  } while (is_clear() && !clear_);
  return !clear_;
}

// A connection that begins with anything but a record of TLS is another program's, or a kernel's that does
// not encrypt. Which of them is known when its first frame's head is there, or its end.
bool TlsStream::is_clear() {
  if (judged_ || came_end_ == 0) return false;
  const auto first = static_cast<unsigned char>(came_[0]);
  judged_ = first == content_handshake || first == content_alert;
  if (judged_) return false;
  if (came_end_ >= sizeof(handshake::Prefix) || input_.status != Transfer::Status::moved)
    clear_ = handshake::judge_clear(std::span(came_).first(came_end_));
  return true;
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

// ---- Going on.

bool TlsStream::readable() const {
  switch (stage_) {
  case Stage::greeting: return greeting_sends_ ? under_->writable() : under_->readable();
  case Stage::open: return !starved_ || under_->readable();
  case Stage::broken: break;
  }
  return under_->readable();
}

bool TlsStream::writable() const {
  switch (stage_) {
  case Stage::greeting: return greeting_sends_ || answered_ ? under_->writable() : under_->readable();
  case Stage::open:
  case Stage::broken: break;
  }
  return under_->writable();
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

// 1: it is over. Who accepts stops once at the end of its part: only there it may write early.
int TlsStream::go_on_greeting() {
  if (side_ == Side::dials || answered_) return SSL_do_handshake(tls_.get());
  unsigned char none = 0;
  std::size_t got = 0;
  const int result = SSL_read_early_data(tls_.get(), &none, sizeof none, &got);
  if (result != SSL_READ_EARLY_DATA_FINISH) return -1;
  // It is said, too, when the library has asked the other side to begin anew (no kernel gives it reason to),
  // and then nothing would be encrypted.
  if (SSL_session_reused(tls_.get()) != 1) {
    (void)is_broken(error(EPROTO, "the other side's greeting is not a kernel's"));
    return -1;
  }
  answered_ = true;
  return SSL_do_handshake(tls_.get());
}

bool TlsStream::greet() {
  if (stage_ != Stage::greeting) return stage_ == Stage::open;
  if (under_->opened() != 0) return false;
  ERR_clear_error();
  const int result = go_on_greeting();
  if (stage_ == Stage::broken) return false;
  greeting_sends_ = !flush() && output_.status == Transfer::Status::moved;
  if (result != 1) {
    const Transfer how = not_now(result);
    if (how.status == Transfer::Status::ended) input_ = how;
    return false;
  }
  // A key was used, or it was greeted by nobody whom we know.
  if (SSL_session_reused(tls_.get()) != 1) {
    (void)is_broken(error(EPROTO, "the other side offers a certificate where a key is meant"));
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
  if (of_greeting_ > longest_greeting || besides_data_ > most_besides_data)
    return is_broken(error(EPROTO, "it says too much besides data"));
  if (input_.status != Transfer::Status::moved) return input_;
  if (why == SSL_ERROR_WANT_READ) {
    starved_ = true;
    return {.status = Transfer::Status::would_block};
  }
  if (why == SSL_ERROR_ZERO_RETURN) return {.status = Transfer::Status::ended};
  return is_broken(why_refused());
}

Error TlsStream::why_refused() const {
  const unsigned long what = ERR_peek_error();
  if (stage_ == Stage::greeting && is_of_other_key(what))
    return error(EKEYREJECTED,
                 "the kernel there does not hold the key of this host; both need the same key file");
  if (stage_ == Stage::greeting && is_of_other_version(what))
    return error(EPROTO, "the other side {}, and links have no other",
                 side_ == Side::accepts ? "offers a version of TLS before 1.3" : "takes no TLS 1.3");
  const char* const words = ERR_reason_error_string(what);
  return error(EPROTO, "its encryption is not right: {}", words != nullptr ? words : "it says no more");
}

// The other side may hear why: by an alert, or, where it does not encrypt, in its language.
Transfer TlsStream::is_broken(Error why) {
  ERR_clear_error();
  if (stage_ != Stage::broken) {
    why_ = std::move(why);
    if (clear_ && clear_->of_kernel && side_ == Side::accepts) {
      encrypted_ = handshake::refusal(why_.text);
      gone_ = 0;
    }
    (void)flush();
    stage_ = Stage::broken;
  }
  return {.status = Transfer::Status::broken, .code = why_.code};
}

// Why nothing can be read or written.
Transfer TlsStream::not_open() {
  if (stage_ == Stage::broken) return {.status = Transfer::Status::broken, .code = why_.code};
  if (stage_ == Stage::greeting && input_.status != Transfer::Status::moved) return input_;
  if (output_.status != Transfer::Status::moved) return output_;
  return {.status = Transfer::Status::would_block};
}

std::string TlsStream::describe(int code) const {
  return stage_ == Stage::broken && code == why_.code ? why_.text : under_->describe(code);
}

// What still comes on a broken stream is of no use; but who closes over unread bytes cuts off its last words.
Transfer TlsStream::discard() {
  std::array<std::byte, 4096> rest;
  const iovec part{rest.data(), rest.size()};
  const Transfer how = under_->read({&part, 1});
  if (how.status != Transfer::Status::moved) return how;
  return {.status = Transfer::Status::would_block};
}

Transfer TlsStream::read(std::span<const iovec> to) {
  if (stage_ == Stage::broken) return discard();
  if (!greet()) return not_open();
  (void)flush(); // what the library has answered meanwhile
  std::size_t moved = 0;
  for (const iovec& part : to) {
    for (std::size_t done = 0; done < part.iov_len;) {
      if (moved >= read_ahead) return {.bytes = moved}; // others have their turn
      std::size_t got = 0;
      ERR_clear_error();
      const int result =
          SSL_read_ex(tls_.get(), static_cast<std::byte*>(part.iov_base) + done, part.iov_len - done, &got);
      if (result != 1) {
        const Transfer how = not_now(result);
        if (moved != 0) return {.bytes = moved}; // why there is no more is said again
        return how.status == Transfer::Status::would_block ? not_open() : how;
      }
      starved_ = false;
      moved += got;
      done += got;
      bytes_in_ += got;
      if (bytes_in_ >= forgotten_after) bytes_in_ = besides_data_ = 0;
    }
  }
  return {.bytes = moved};
}

// Little: the other side's part of the greeting is not here yet.
Transfer TlsStream::write_early(std::span<const iovec> from) {
  std::size_t taken = 0;
  for (const iovec& part : from) {
    const std::size_t some = std::min(part.iov_len, most_early - taken);
    std::size_t went = 0;
    if (some == 0) continue;
    if (SSL_write_early_data(tls_.get(), part.iov_base, some, &went) != 1) return is_broken(why_refused());
    taken += went;
  }
  (void)flush();
  return taken != 0 ? Transfer{.bytes = taken} : not_open();
}

Transfer TlsStream::write(std::span<const iovec> from) {
  const bool greeted = greet();
  if (!flush()) return not_open();
  if (answered_ && stage_ == Stage::greeting) return write_early(from);
  if (!greeted) return not_open();
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
      const std::size_t most = bytes_ < bytes_of_first_records ? first_record_bytes : record_bytes;
      if (record_.empty() && bytes.size() >= most) {
        if (!encrypt(bytes.first(most))) return is_broken(why_refused());
        bytes = bytes.subspan(most);
        continue;
      }
      const std::size_t some = std::min(bytes.size(), most - record_.size());
      record_.insert(record_.end(), bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(some));
      bytes = bytes.subspan(some);
      if (record_.size() < most) continue;
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
  ERR_clear_error();
  ++records_;
  bytes_ += bytes.size();
  return SSL_write_ex(tls_.get(), bytes.data(), bytes.size(), &went) == 1 && went == bytes.size();
}

void TlsStream::renew_keys() {
  records_ = bytes_ = 0;
  (void)SSL_key_update(tls_.get(), SSL_KEY_UPDATE_NOT_REQUESTED); // goes before the next record
  ERR_clear_error();
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
  ERR_clear_error();
  return binding;
}

Result<std::unique_ptr<Stream>> TlsStreams::dial(const Address& to, KeyUse use) {
  PARC_TRY(stream, under_.dial(to, use));
  return TlsStream::make(settings_, std::move(stream), TlsStream::Side::dials, use);
}

// Where there is no memory for one it ends again, and its kernel tries anew.
void TlsStreams::accept_for(Acceptance owner) {
  owner_ = std::move(owner);
  under_.accept_for({.room = owner_.room,
                     .accepted =
                         [this](std::unique_ptr<Stream> stream) {
                           auto made =
                               TlsStream::make(settings_, std::move(stream), TlsStream::Side::accepts);
                           if (made) owner_.accepted(std::move(made).value());
                         },
                     .turned_away = owner_.turned_away});
}

} // namespace parc::daemon
