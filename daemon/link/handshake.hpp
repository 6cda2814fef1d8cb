// SPDX-License-Identifier: BSD-3-Clause
// The first exchange on a connection between two kernels, as a state machine without any input or output of
// its own: the caller feeds what came and sends what is to go.
//
//   initiator                acceptor
//     hello          ->
//                    <-      hello, proof
//     proof, ready   ->
//                    <-      ready
//        adopt       <- or ->                 (then the carrier's bytes, both ways)
//
// Where the stream itself has proved the key to the initiator before a word is said (TLS: the acceptor's
// Finished), the acceptor's hello comes with that, unasked, and one round trip less is enough:
//
//                    <-      hello
//     hello, proof, ready  ->
//                    <-      proof, ready
//
// A proof is HMAC-SHA256 with the shared key over the prover's role, both hellos, prefixes included, and what
// both ends of an encrypted connection know alone (its binding). So who ends the encryption in between has no
// proof for the other side; nothing in either hello can be changed on the way, a proof cannot be reflected
// (the roles differ) nor replayed (each hello has a nonce). `ready` carries the caller's verdict on the link,
// given when the other side's identity is proved, by its proof or by the stream; the acceptor decides last
// and knows the initiator's verdict. It names the session that goes on here, by number: the higher one of
// both sides counts, and a lower one is gone. The kernel with the smaller identity then says which connection
// the session uses from here on: `adopt`, with a number that rises. That settles two connections that were
// made at once, and one that only one side knows to be dead. (For one more beside it, a subflow, the number
// means nothing.)
//
// Every frame begins with a prefix that every version of the wire keeps, so that a refusal can be read by all
// of them. Invariants: no length field is trusted before it is checked, nothing is allocated for the peer
// before it has proved the key, and nothing but a refusal of its version is sent to a peer that broke the
// rules or lacks the key.
#pragma once

#include "daemon/link/key.hpp"
#include "daemon/link/link_secrets.hpp"
#include "daemon/link/stream.hpp"
#include "protocol/wire.hpp"
#include "system/error.hpp"
#include "system/identity.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace parc::daemon {

enum class Role : std::uint8_t { Initiator = 1, Acceptor = 2 };

// What a kernel thinks of a connection to a peer that has proved the key.
enum class Verdict : std::uint32_t {
  Accepted = 0,
  Duplicate = 1, // the two kernels have, or are about to have, another connection; use that
  Itself = 2,    // both ends are one kernel
  Leaving = 3,   // it is shutting down
  Full = 4,      // it has as many sessions as it can have
  NoSession = 5, // that the connection is for
};
[[nodiscard]] std::string_view describe(Verdict verdict);

using Nonce = std::array<std::byte, 32>;

// Kernels draw identities of 63 bits. With this one more a kernel knows those that have proved a relay key
// and nothing else: so none of them is ever taken for another one, whatever it says of itself.
inline constexpr std::uint64_t proved_as_relay = std::uint64_t{1} << 63;
[[nodiscard]] constexpr std::uint64_t drawn_identity(std::uint64_t known_as) {
  return known_as & ~proved_as_relay;
}

// What a kernel says of itself.
struct LocalHost {
  std::uint64_t identity = 0; // drawn at each start
  std::string name;           // 1 to 64 letters, digits, '-', '_' and '.'
  std::uint16_t port = 0;     // that it listens on, at the address of this connection; 0: not there
  std::string advertised;     // numeric address for others to connect to; empty: that of this connection
  std::uint32_t fragment_size = protocol::default_fragment;
  std::uint32_t window = protocol::window; // trains that it lets be unacknowledged
  std::uint16_t wire_version = protocol::wire_version;
  Predecessors predecessors{};
};

// What is known of the other side once it has proved the key.
struct Peer {
  std::uint64_t identity = 0; // as this kernel knows it
  std::string name;
  std::uint16_t port = 0;
  std::string advertised;
  std::uint32_t fragment_size = 0; // the smaller of both
  std::uint32_t window = 0;        // the smaller of both
  Predecessors predecessors{};     // theirs: they are dead
  std::uint32_t session = 0;       // that goes on there, or would begin; from Agreed on
};

namespace handshake {

enum class Kind : std::uint8_t { Hello = 1, Proof = 2, Ready = 3, Refusal = 4, Adopt = 5 };

struct Prefix { // the same in all versions
  std::array<char, 4> magic;
  std::uint16_t version;
  Kind kind;
  std::uint8_t reserved;
  std::uint32_t length; // of what follows
};
static_assert(sizeof(Prefix) == 12 && offsetof(Prefix, version) == 4 && offsetof(Prefix, length) == 8);

struct Terms {
  bool stream_proves_key = false; // of who accepts: both sides know that it does
  KeyUse use = KeyUse::link;      // of the key that an initiator proves
  bool subflow = false;           // it wants one more connection of a session
};

struct Hello {
  std::uint64_t identity;
  KeyName key; // that the initiator proves; an acceptor's is zero
  std::uint32_t fragment_size;
  std::uint32_t window;
  std::uint16_t port;
  Role role;
  std::uint8_t name_length;
  std::array<char, 64> name;
  std::array<std::uint8_t, 16> advertised; // of IPv6, or IPv4 mapped into it; zeros: none
  Predecessors predecessors;
  Nonce nonce;
};
static_assert(sizeof(Hello) == 264 && offsetof(Hello, port) == 20 && offsetof(Hello, name) == 24);

using Proof = std::array<std::byte, 32>;
struct Ready {
  Verdict verdict;
  std::uint32_t session;
  std::uint32_t subflow; // 1: as the initiator wants it, and the acceptor repeats
};
static_assert(sizeof(Ready) == 12);
struct Adopt {
  std::uint64_t carrier; // of the session, from 1
};
static_assert(sizeof(Adopt) == 8);

inline constexpr std::array<char, 4> magic{'P', 'A', 'R', 'C'};
inline constexpr std::size_t longest_refusal = 512; // UTF-8 text
inline constexpr std::size_t longest_frame = sizeof(Prefix) + longest_refusal;
static_assert(sizeof(Hello) <= longest_refusal);
using HelloFrame = std::array<std::byte, sizeof(Prefix) + sizeof(Hello)>;

// A frame that says to any version why there will be no link.
[[nodiscard]] std::vector<std::byte> refusal(std::string_view text);

// What to do about two versions: who is to upgrade.
[[nodiscard]] std::string about_versions(std::string_view who, std::uint16_t ours, std::uint16_t theirs);

// Why bytes in clear, which a connection begins with, are none of an encrypted link.
struct InClear {
  bool of_kernel = false; // which hears why
  Error why;
};
[[nodiscard]] InClear judge_clear(std::span<const std::byte> first);

} // namespace handshake

class Handshake {
public:
  enum class State {
    Exchanging,  // feed what comes
    Deciding,    // peer() has proved the key, or the stream has for it: call decide()
    Agreed,      // both accepted, and this side says which carrier it is: call adopt()
    Established, // the next byte in either direction is the carrier's
    // failure() says why. Send what is outgoing, shut down for writing and read until the other side closes
    // (but not for long): closing with unread bytes would reset the connection and could take a refusal with
    // it.
    Failed,
  };

  Handshake(Role role, const LocalHost& self, const std::vector<Credential>& keys, const Nonce& nonce,
            const handshake::Terms& terms = {});
  Handshake(const Handshake&) = delete;
  Handshake& operator=(const Handshake&) = delete;
  ~Handshake();

  // So many bytes it takes next, whatever they are: who reads no more never reads what is the carrier's.
  [[nodiscard]] std::size_t wanted() const { return in_wanted_ - in_length_; }
  // Takes what it can use and returns how much that was. It takes nothing unless Exchanging: what follows the
  // handshake stays with the caller, and so does what came while a decision was due; feed that again
  // afterwards.
  [[nodiscard]] std::size_t feed(std::span<const std::byte> bytes);
  // Of the connection, before anything is fed; zeros where it is not encrypted.
  void bind(const ChannelBinding& binding) { binding_ = binding; }
  // The connection ended, and why, where that is known: fails with words that fit the moment, unless all has
  // been said and heard.
  void closed(const Error& why = {});

  // To be sent; the caller says how much of it went.
  [[nodiscard]] std::span<const std::byte> outgoing() const;
  void sent(std::size_t bytes);

  void decide(Verdict verdict, std::uint32_t session); // when Deciding
  void adopt(std::uint64_t carrier);                   // when Agreed

  [[nodiscard]] State state() const { return state_; }
  [[nodiscard]] const Peer& peer() const { return peer_; }         // from Deciding on
  [[nodiscard]] bool proved() const { return proved_; }            // who the other side is
  [[nodiscard]] const Key& key() const { return key_.key; }        // that both have proved, likewise
  [[nodiscard]] KeyUse use() const { return key_.use; }            // of that, and so of the link
  [[nodiscard]] std::uint32_t session() const { return session_; } // as this side has said
  [[nodiscard]] bool subflow() const { return subflow_; }          // for an acceptor from Deciding on
  [[nodiscard]] std::uint64_t carrier() const { return carrier_; } // when Established
  [[nodiscard]] const Error& failure() const { return failure_; }  // when Failed
  // The reason of a link that ended by verdict, ours or theirs; Accepted in all other cases.
  [[nodiscard]] Verdict verdict() const { return verdict_; }

private:
  void examine_prefix();
  void take_frame();
  void take_hello();
  void take_proof();
  void take_ready();
  void take_refusal();
  void take_adopt();
  void agreed();
  void refuse_version(std::uint16_t theirs);
  void refuse_encrypted();
  void enter(State next);
  void fail(Error error);
  void send(handshake::Kind kind, std::span<const std::byte> body);
  [[nodiscard]] handshake::Proof proof_of(Role role) const;
  template <class T> [[nodiscard]] T body() const;

  const Role role_;
  const bool early_; // the stream proves the key
  const LocalHost self_;
  std::vector<Credential> keys_; // that the initiator may mean
  Credential key_;
  ChannelBinding binding_{};
  State state_ = State::Exchanging;
  handshake::Kind expected_ = handshake::Kind::Hello;
  handshake::HelloFrame our_hello_;
  handshake::HelloFrame their_hello_;
  std::array<std::byte, handshake::longest_frame> in_;
  std::size_t in_length_ = 0;                         // bytes in in_
  std::size_t in_wanted_ = sizeof(handshake::Prefix); // until something can be said about them
  std::array<std::byte, 1024> out_;                   // one frame of each kind fits
  std::size_t out_begin_ = 0;
  std::size_t out_end_ = 0;
  Peer peer_;
  Verdict verdict_ = Verdict::Accepted;
  std::uint32_t session_ = 0;
  bool subflow_ = false;
  std::uint64_t carrier_ = 0;
  bool proved_ = false;
  Error failure_;
};

} // namespace parc::daemon
