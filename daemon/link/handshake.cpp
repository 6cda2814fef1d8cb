// SPDX-License-Identifier: BSD-3-Clause
// The steps of the first exchange. Frames are gathered in one fixed buffer: the prefix, judged as soon as its
// bytes are there, then exactly the body that a frame of that kind has.
#include "daemon/link/handshake.hpp"

#include "system/identity.hpp"
#include "system/quote.hpp"

#include <algorithm>
#include <arpa/inet.h>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace parc::daemon {

using namespace handshake;

namespace {

constexpr std::uint32_t smallest_fragment = 1024;
constexpr std::byte record_of_tls{22}; // what its first message begins with

template <class T> std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::size_t body_length(Kind kind) {
  switch (kind) {
  case Kind::Hello: return sizeof(Hello);
  case Kind::Proof: return sizeof(Proof);
  case Kind::Ready: return sizeof(Ready);
  case Kind::Adopt: return sizeof(Adopt);
  case Kind::Refusal: break;
  }
  return longest_refusal;
}

bool plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
         c == '.';
}

// Empty when every field is within its limits, else which one is not.
std::string_view fault_of(const Hello& hello, Role wanted) {
  if (hello.role != wanted) return "role";
  if (hello.identity == 0 || drawn_identity(hello.identity) != hello.identity) return "identity";
  if (hello.name_length == 0 || hello.name_length > hello.name.size()) return "name length";
  if (!std::all_of(hello.name.begin(), hello.name.begin() + hello.name_length, plain)) return "name";
  if (hello.fragment_size < smallest_fragment || hello.fragment_size > protocol::max_fragment ||
      hello.fragment_size % 8 != 0)
    return "fragment size";
  if (hello.window == 0) return "window";
  return {};
}

using PackedAddress = decltype(Hello::advertised);
constexpr PackedAddress mapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr std::size_t mapped_bytes = 12;

PackedAddress packed(const std::string& address) {
  PackedAddress bytes{};
  if (inet_pton(AF_INET6, address.c_str(), bytes.data()) == 1) return bytes;
  bytes = mapped;
  return inet_pton(AF_INET, address.c_str(), bytes.data() + mapped_bytes) == 1 ? bytes : PackedAddress{};
}

std::string unpacked(const PackedAddress& bytes) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (bytes == PackedAddress{}) return {};
  const bool v4 = std::equal(mapped.begin(), mapped.begin() + mapped_bytes, bytes.begin());
  return inet_ntop(v4 ? AF_INET : AF_INET6, bytes.data() + (v4 ? mapped_bytes : 0), text.data(), text.size());
}

Hello hello_of(Role role, const LocalHost& self, const Nonce& nonce) {
  Hello hello{};
  hello.identity = self.identity;
  hello.predecessors = self.predecessors;
  hello.fragment_size = self.fragment_size;
  hello.window = self.window;
  hello.port = self.port;
  hello.role = role;
  hello.name_length = static_cast<std::uint8_t>(std::min(self.name.size(), hello.name.size()));
  std::copy_n(self.name.begin(), hello.name_length, hello.name.begin());
  hello.advertised = packed(self.advertised);
  hello.nonce = nonce;
  return hello;
}

// A verdict is due once. What was established fails only with something unsent.
constexpr bool may_follow(Handshake::State before, Handshake::State next) {
  using enum Handshake::State;
  switch (before) {
  case Exchanging: return next != Exchanging;
  case Deciding: return next == Exchanging || next == Agreed || next == Failed;
  case Agreed: return next == Established || next == Failed;
  case Established: return next == Failed;
  case Failed: break;
  }
  return false;
}

Role other(Role role) {
  return role == Role::Initiator ? Role::Acceptor : Role::Initiator;
}

} // namespace

std::vector<std::byte> handshake::refusal(std::string_view text) {
  const std::string_view said = text.substr(0, longest_refusal);
  const Prefix prefix{magic, protocol::wire_version, Kind::Refusal, 0,
                      static_cast<std::uint32_t>(said.size())};
  std::vector<std::byte> frame(sizeof prefix + said.size());
  std::memcpy(frame.data(), &prefix, sizeof prefix);
  std::memcpy(frame.data() + sizeof prefix, said.data(), said.size());
  return frame;
}

std::string handshake::about_versions(std::string_view who, std::uint16_t ours, std::uint16_t theirs) {
  return fmt::format("{} (parcd " PARC_VERSION ") speaks wire version {}, the other side {}; upgrade the {}",
                     who, ours, theirs, ours < theirs ? "former" : "latter");
}

InClear handshake::judge_clear(std::span<const std::byte> first) {
  Prefix prefix{};
  std::memcpy(&prefix, first.data(), std::min(first.size(), sizeof prefix));
  if (first.size() < sizeof prefix || prefix.magic != magic)
    return {.why = error(EPROTO, "what answers there is not a parcd, or none that encrypts what it sends")};
  if (prefix.version != protocol::wire_version)
    return {true, error(EPROTONOSUPPORT, "{}",
                        about_versions("this kernel", protocol::wire_version, prefix.version))};
  return {true, error(EPROTOTYPE, "this kernel encrypts its links, and the other side does not: encryption = "
                                  "\"none\" in its settings is to go")};
}

std::string_view describe(Verdict verdict) {
  switch (verdict) {
  case Verdict::Accepted: return "accepted";
  case Verdict::Duplicate: return "a duplicate, the other connection is used";
  case Verdict::Itself: return "this is the same kernel";
  case Verdict::Leaving: return "the kernel is shutting down";
  case Verdict::Full: return "the kernel has as many sessions as it can have";
  case Verdict::NoSession: return "the session that it is for has ended";
  }
  return "unknown reason";
}

Handshake::Handshake(Role role, const LocalHost& self, const std::vector<Credential>& keys,
                     const Nonce& nonce, const handshake::Terms& terms)
    : role_(role), early_(terms.stream_proves_key), self_(self), key_(to_prove(keys, terms.use)),
      subflow_(terms.subflow) {
  Hello hello = hello_of(role, self, nonce);
  if (role == Role::Initiator)
    hello.key = name_of(key_.key);
  else
    keys_ = keys;
  send(Kind::Hello, bytes_of(hello));
  std::copy_n(out_.begin(), our_hello_.size(), our_hello_.begin());
  // An acceptor whose stream has proved nothing answers, it does not begin: take_hello() sends this.
  if (role == Role::Acceptor && !early_) out_end_ = 0;
}

Handshake::~Handshake() {
  OPENSSL_cleanse(key_.key.data(), key_.key.size());
  for (Credential& each : keys_) OPENSSL_cleanse(each.key.data(), each.key.size());
}

std::size_t Handshake::feed(std::span<const std::byte> bytes) {
  std::size_t taken = 0;
  while (state_ == State::Exchanging && taken < bytes.size()) {
    const std::size_t part = std::min(in_wanted_ - in_length_, bytes.size() - taken);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(taken), part,
                in_.begin() + static_cast<std::ptrdiff_t>(in_length_));
    in_length_ += part;
    taken += part;
    if (in_length_ <= sizeof(Prefix)) examine_prefix();
    if (state_ == State::Exchanging && in_length_ == in_wanted_) take_frame();
  }
  return taken;
}

// Judges as much of the prefix as is there, and from its end on knows how long the frame is.
void Handshake::examine_prefix() {
  Prefix prefix{};
  std::memcpy(&prefix, in_.data(), in_length_);
  if (!std::equal(magic.begin(),
                  magic.begin() + static_cast<std::ptrdiff_t>(std::min(in_length_, magic.size())),
                  prefix.magic.begin())) {
    if (in_[0] == record_of_tls) return refuse_encrypted();
    return fail(error(EPROTO, "what answers there is not a parcd"));
  }
  if (in_length_ < sizeof(Prefix)) return;
  const bool refusal = prefix.kind == Kind::Refusal;
  if (!refusal && prefix.version != self_.wire_version) return refuse_version(prefix.version);
  if (!refusal && prefix.kind != expected_)
    return fail(error(EPROTO, "the other kernel sent frame {} where {} was due",
                      static_cast<unsigned>(prefix.kind), static_cast<unsigned>(expected_)));
  const std::size_t length = body_length(prefix.kind);
  if (refusal ? prefix.length == 0 || prefix.length > length : prefix.length != length)
    return fail(error(EPROTO, "the other kernel sent a frame {} of {} bytes, where {} are right",
                      static_cast<unsigned>(prefix.kind), prefix.length, length));
  in_wanted_ = sizeof(Prefix) + prefix.length;
}

void Handshake::take_frame() {
  Prefix prefix{};
  std::memcpy(&prefix, in_.data(), sizeof prefix);
  switch (prefix.kind) {
  case Kind::Hello: take_hello(); break;
  case Kind::Proof: take_proof(); break;
  case Kind::Ready: take_ready(); break;
  case Kind::Refusal: take_refusal(); break;
  case Kind::Adopt: take_adopt(); break;
  }
  in_length_ = 0;
  in_wanted_ = sizeof(Prefix);
}

void Handshake::take_hello() {
  const auto hello = body<Hello>();
  if (const auto fault = fault_of(hello, other(role_)); !fault.empty())
    return fail(error(EPROTO, "the other kernel's hello has a bad {}", fault));
  std::copy_n(in_.begin(), their_hello_.size(), their_hello_.begin());
  if (role_ == Role::Acceptor) {
    const auto meant =
        std::ranges::find(keys_, hello.key, [](const Credential& each) { return name_of(each.key); });
    if (meant != keys_.end()) key_ = *meant;
  }
  if (role_ == Role::Acceptor && !early_) {
    send(Kind::Hello, std::span(our_hello_).subspan(sizeof(Prefix)));
    send(Kind::Proof, proof_of(role_));
  }
  const std::uint64_t known_as = key_.use == KeyUse::relay ? proved_as_relay : 0;
  peer_.identity = hello.identity | known_as;
  std::ranges::transform(hello.predecessors, peer_.predecessors.begin(),
                         [&](std::uint64_t each) { return each != 0 ? drawn_identity(each) | known_as : 0; });
  peer_.name.assign(hello.name.data(), hello.name_length);
  peer_.port = hello.port;
  peer_.advertised = unpacked(hello.advertised);
  peer_.fragment_size = std::min(hello.fragment_size, self_.fragment_size);
  peer_.window = std::min(hello.window, self_.window);
  expected_ = Kind::Proof;
  if (role_ == Role::Acceptor || !early_) return;
  proved_ = true;
  enter(State::Deciding);
}

void Handshake::take_proof() {
  const auto theirs = body<Proof>();
  const Proof right = proof_of(other(role_));
  if (CRYPTO_memcmp(theirs.data(), right.data(), right.size()) != 0) {
    out_begin_ = out_end_; // refused without another word
    return fail(error(EKEYREJECTED,
                      "the kernel that calls itself {} does not hold the key of this host; "
                      "both need the same key file",
                      peer_.name));
  }
  proved_ = true;
  if (role_ == Role::Acceptor || early_)
    expected_ = Kind::Ready; // the initiator's verdict comes first
  else
    enter(State::Deciding);
}

void Handshake::take_ready() {
  const auto ready = body<Ready>();
  if (ready.verdict != Verdict::Accepted) {
    verdict_ = ready.verdict;
    return fail(error(ECONNABORTED, "host {} refused the link: {}", peer_.name, describe(ready.verdict)));
  }
  peer_.session = ready.session;
  if (ready.subflow > 1 || (role_ == Role::Initiator && (ready.subflow != 0) != subflow_))
    return fail(error(EPROTO, "host {} takes the connection for another than it is", peer_.name));
  subflow_ = ready.subflow != 0;
  if (role_ == Role::Acceptor)
    enter(State::Deciding);
  else
    agreed();
}

// The one with the smaller identity has the word.
void Handshake::agreed() {
  expected_ = Kind::Adopt;
  if (self_.identity < drawn_identity(peer_.identity))
    enter(State::Agreed);
  else if (state_ != State::Exchanging)
    enter(State::Exchanging);
}

void Handshake::adopt(std::uint64_t carrier) {
  carrier_ = carrier;
  send(Kind::Adopt, bytes_of(Adopt{carrier}));
  enter(State::Established);
}

void Handshake::take_adopt() {
  carrier_ = body<Adopt>().carrier;
  enter(State::Established);
}

void Handshake::take_refusal() {
  fail(error(
      EPROTONOSUPPORT, "refused by the kernel there: {}",
      harmless({reinterpret_cast<const char*>(in_.data()) + sizeof(Prefix), in_wanted_ - sizeof(Prefix)})));
}

void Handshake::decide(Verdict verdict, std::uint32_t session) {
  assert(state_ == State::Deciding);
  session_ = session;
  if (role_ == Role::Initiator || early_) send(Kind::Proof, proof_of(role_));
  send(Kind::Ready, bytes_of(Ready{verdict, session, subflow_ ? 1u : 0u}));
  if (verdict != Verdict::Accepted) {
    verdict_ = verdict;
    return fail(error(ECONNABORTED, "link to host {} not kept: {}", peer_.name, describe(verdict)));
  }
  if (role_ == Role::Acceptor) return agreed();
  expected_ = early_ ? Kind::Proof : Kind::Ready;
  enter(State::Exchanging);
}

void Handshake::refuse_version(std::uint16_t theirs) {
  const auto ours = self_.wire_version;
  const std::string text = about_versions("host " + self_.name, ours, theirs);
  send(Kind::Refusal, std::as_bytes(std::span(text).first(std::min(text.size(), longest_refusal))));
  fail(error(EPROTONOSUPPORT, "{}", text));
}

void Handshake::refuse_encrypted() {
  constexpr std::string_view text = "the other side encrypts what it sends, and this kernel does not: take "
                                    "encryption = \"none\" out of its "
                                    "settings";
  send(Kind::Refusal, std::as_bytes(std::span(text)));
  fail(error(EPROTOTYPE, "{}", text));
}

void Handshake::closed(const Error& why) {
  if (state_ == State::Failed || (state_ == State::Established && outgoing().empty())) return;
  if (why.code != 0) return fail(why);
  if (expected_ == Kind::Hello)
    return fail(error(ECONNRESET, "the connection ended before the other side said who it is"));
  fail(error(ECONNRESET,
             "host {} ended the connection during the handshake; its log says why (a different key, "
             "perhaps)",
             peer_.name));
}

std::span<const std::byte> Handshake::outgoing() const {
  return std::span(out_).subspan(out_begin_, out_end_ - out_begin_);
}

void Handshake::sent(std::size_t bytes) {
  out_begin_ = std::min(out_begin_ + bytes, out_end_);
}

void Handshake::enter(State next) {
  assert(may_follow(state_, next));
  state_ = next;
}

void Handshake::fail(Error error) {
  enter(State::Failed);
  failure_ = std::move(error);
}

void Handshake::send(Kind kind, std::span<const std::byte> frame_body) {
  const Prefix prefix{magic, self_.wire_version, kind, 0, static_cast<std::uint32_t>(frame_body.size())};
  const auto append = [this](std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), out_.begin() + static_cast<std::ptrdiff_t>(out_end_));
    out_end_ += bytes.size();
  };
  append(bytes_of(prefix));
  append(frame_body);
}

Proof Handshake::proof_of(Role role) const {
  const std::string_view label = role == Role::Initiator ? "parc link: initiator" : "parc link: acceptor ";
  const auto& first = role_ == Role::Initiator ? our_hello_ : their_hello_;
  const auto& second = role_ == Role::Initiator ? their_hello_ : our_hello_;
  std::array<unsigned char, 20 + 2 * sizeof(HelloFrame) + sizeof(ChannelBinding)> message;
  auto* end = std::copy(label.begin(), label.end(), message.data());
  std::memcpy(end, first.data(), first.size());
  std::memcpy(end + first.size(), second.data(), second.size());
  std::memcpy(end + first.size() + second.size(), binding_.data(), binding_.size());
  Proof proof;
  unsigned length = 0;
  // Fails only when the library has no memory; random bytes convince nobody.
  if (!HMAC(EVP_sha256(), key_.key.data(), static_cast<int>(key_.key.size()), message.data(), message.size(),
            reinterpret_cast<unsigned char*>(proof.data()), &length))
    fill_random(proof);
  return proof;
}

template <class T> T Handshake::body() const {
  T value;
  std::memcpy(&value, in_.data() + sizeof(Prefix), sizeof value);
  return value;
}

} // namespace parc::daemon
