// SPDX-License-Identifier: BSD-3-Clause
// What travels between two kernels once they have proved the shared key to each other: on each carrier (one
// byte stream) a statement each way, then trains. Little-endian, fixed sizes.
//
//   train   = Prefix | entry[entries] | payload
//   entry   = Envelope (72 bytes), Rows (16 bytes) where it has some, and the bytes that ride with it, padded
//             to 8: of a message, put, get or atomic
//           | Descriptor (32 bytes)
//   payload = the bytes of the fragment descriptors, in their order
//
// Everything before the payload is the header, at most max_header bytes. Sequence, acknowledgement and credit
// are cumulative, so that any prefix says all that the ones before it said. A train without entries has
// sequence 0, is not acknowledged and is always allowed. Decoding is total: every input gives a value or a
// named refusal.
//
// Beside the first carrier there may be others, the subflows, whose trains have numbers of their own. They
// bring runs of payload that was asked for, in any order, and no credit (their prefixes have zeros there).
// One begins without a statement, and when it ends, what it has not brought comes over another, so that some
// of it may come twice. That a message is here whole is said on the first carrier, in the order of all other
// news.
//
// A carrier may end at any byte. The next one begins with statements of what has been taken, from which both
// sides go on: nothing that was taken is said again, everything else is.
#pragma once

#include "protocol/message_flags.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace parc::protocol {

static_assert(std::endian::native == std::endian::little, "the wire is little-endian and read in place");

inline constexpr std::uint16_t wire_version = 22;
inline constexpr std::uint32_t default_fragment = 4096;
inline constexpr std::uint32_t min_fragment = 512;
inline constexpr std::uint32_t max_fragment = 65536;
inline constexpr std::uint32_t max_header = 2048;
inline constexpr std::uint32_t max_entries = 32;
inline constexpr std::uint32_t max_payload = 1u << 20; // of a train
inline constexpr std::uint32_t max_inline = 192;       // bytes that ride with an envelope
// Bytes of a message up to which nobody waits for its acknowledgement: libparc copies it at its start.
inline constexpr std::uint64_t max_unawaited = 1024;
inline constexpr std::uint64_t max_message = std::uint64_t{8} << 30;
inline constexpr std::uint32_t train_magic = 0x6e727450;     // "Ptrn"
inline constexpr std::uint32_t statement_magic = 0x74735450; // "PTst"
// Trains that may be on their way without an acknowledgement.
inline constexpr std::uint64_t window = 1024;

// What a carrier begins with, each way: how much the sender has taken of the trains on earlier carriers.
struct Statement {
  std::uint32_t magic;
  std::uint32_t missing;     // so many last fragments of the last train are not in place: they are sent anew
  std::uint64_t trains;      // the last one whose header was taken
  std::uint64_t credit;      // as in a prefix
  std::uint64_t envelopes;   // as in a prefix
  std::uint32_t source_host; // low halves of the two hosts' identities
  std::uint32_t destination_host;
};
static_assert(sizeof(Statement) == 40);

// What every train begins with.
struct Prefix {
  std::uint32_t magic;
  std::uint16_t header_length; // prefix and entries
  std::uint8_t entries;
  std::uint8_t flags;
  std::uint64_t sequence;        // of this train on its link, from 1; 0 without entries
  std::uint64_t acknowledgement; // all trains up to this one have been read
  std::uint64_t credit;          // eager fragments that the other side may have sent, in total
  std::uint64_t envelopes;       // that it may have sent, in total; but see may_send_envelope
  std::uint32_t payload_length;
  std::uint32_t delay_product_kib; // what the sender's path holds: bandwidth times delay
  std::uint32_t source_host;       // low halves of the two hosts' identities
  std::uint32_t destination_host;
};
static_assert(sizeof(Prefix) == 56);

// Flags of a train. Its sender waits for its acknowledgement: it goes as soon as the train is here whole.
inline constexpr std::uint8_t flag_acknowledge = 1;
// Nothing new goes over this subflow (subflows.cpp).
inline constexpr std::uint8_t flag_retired = 2;

enum class Kind : std::uint8_t {
  none = 0, // never on the wire
  envelope = 1,
  fragments,       // message, offset, length: a run of them follows in the payload, each full-sized but for
                   // the last of its grant; flag_from_end: the highest offset first. In which order a grant's
                   // runs come says protocol/messages.hpp:Grant
  want,            // to the sender: send [offset, extra) of message; flag_from_end: downwards
  cancel,          // to the receiver: forget message unless it has been matched or comes whole
  canceled,        // to the sender: forgotten; no answer comes when it was matched before
  abort,           // to the receiver: the rest of message will not come
  departed,        // message = endpoint of the sender's host, extra = envelopes it sent to this host in all
  envelope_credit, // message = endpoint of the receiver's host, offset = endpoint of the sender's, extra =
                   // messages of the former to the latter, in all, that need not be kept for a read any more
  matched,         // to the sender of a synchronous message that came whole: it has been matched; of a
                   // put: it is in place
  watch,           // message = endpoint of the receiver's host: say when it departs, or that it has
  message_ack,     // to the sender: all that was promised of message is here, over whichever subflows
  refused,         // to who asked for it by a get: message = its name, extra = why (Refused); nothing of it
                   // comes any more. flag_put: to who has sent it by a put, which is not there
  none_to_send,    // likewise: message = the name of a get of no bytes, whose place is there
  result,          // likewise: message = the name of an atomic, extra = what was there before
  // An envelope whose message is for [data, data + length) of window `tag`, or for Rows from `data` on.
  // Synchronous: `matched` says that it is there.
  put = 33,
  // An envelope that asks for that: message = the asker's name for it, which its fragments have as `extra`.
  // Nothing else rides, nothing is eager.
  get = 34,
  atomic, // likewise of an Atomic, which rides with it; `result` answers
};

// Why nobody serves a get, put or atomic.
enum class Refused : std::uint8_t {
  none,
  left,   // its target has departed,
  killed, // cleanly or not
  place,  // there is no such window, what it asks for is not in it, or not for the asker
};

// Flag of a want: send downwards. Of fragments: they were sent so.
inline constexpr std::uint8_t flag_from_end = 1;
// Flag of `refused`: of a put.
inline constexpr std::uint8_t flag_put = 1;
// Flag of `departed`: the endpoint did not leave, it was killed.
inline constexpr std::uint8_t flag_killed = 1;
// Flag of `departed`: the endpoint's number has not been given to anybody yet.
inline constexpr std::uint8_t flag_unknown = 2;

// Why nothing comes from a rank, or goes to it, any more.
enum class Departure : std::uint8_t {
  none,
  left,   // cleanly
  killed, // or its session ended otherwise
  lost,   // with the link to its host
};

// An entry of any kind but an envelope; Kind says what its fields are.
struct Descriptor {
  Kind kind;
  std::uint8_t flags;
  std::uint16_t reserved;
  std::uint32_t length;
  std::uint64_t message;
  std::uint64_t offset;
  std::uint64_t extra;
};
static_assert(sizeof(Descriptor) == 32);

// The envelope of a message, which is matched with a read, or of a put or get, which the kernel serves.
struct Envelope {
  Kind kind;
  Space space;
  std::uint16_t inline_length; // bytes of the message that ride behind: all, or none
  MessageFlags flags;
  std::uint16_t reserved;
  std::uint64_t tag;
  std::uint64_t data;   // the user's, for who reads it
  std::uint64_t source; // endpoints; 0: the kernel, whose messages go to kernels
  std::uint64_t destination;
  std::uint64_t sequence; // of its pair (source, destination), from 1
  std::uint64_t length;
  std::uint64_t message; // the sender's name for it on this link
  std::uint64_t eager;   // bytes that come without being asked for
};
static_assert(sizeof(Envelope) == 72);
static_assert(offsetof(Envelope, tag) == 8 && offsetof(Envelope, sequence) == 40);

// What an atomic does to a word of a window.
struct Atomic {
  enum class What : std::uint8_t { add, swap, compare_swap, bit_and, bit_or, bit_xor };
  std::uint64_t operand;
  std::uint64_t compare;
  What what;
  std::uint8_t width; // bytes: 4 or 8
  std::uint16_t reserved;
  std::uint32_t reserved_too;
};
static_assert(sizeof(Atomic) == 24);
[[nodiscard]] inline constexpr bool is_good(const Atomic& atomic) {
  return atomic.what <= Atomic::What::bit_xor && (atomic.width == 4 || atomic.width == 8);
}

// Where the bytes of a put or get lie in their window, if not together: in rows of so many bytes, each
// `stride` behind the one before it.
struct Rows {
  std::uint64_t row;
  std::int64_t stride;
};
static_assert(sizeof(Rows) == 16);
[[nodiscard]] inline constexpr bool is_good(const Rows& rows, std::uint64_t length) {
  return rows.row != 0 && length != 0 && length % rows.row == 0;
}

// The endpoint that every kernel itself is.
inline constexpr std::uint64_t kernel_endpoint = 0;

enum class Refusal : std::uint8_t {
  none = 0,
  magic,       // neither statement nor train where one belongs: the stream is out of step or the peer speaks
               // something else
  length,      // a length field is out of range or does not add up
  host,        // the train names other hosts than this link's
  sequence,    // a train is missing or repeated
  ack,         // acknowledges what was never sent
  kind,        // an entry of a kind that this version does not speak
  envelope,    // an envelope whose fields contradict each other
  destination, // a program, which this link does not lead to
  order,       // an envelope overtook another of its pair, or a message id is in use
  fragment,    // a fragment that was neither eager nor asked for
  credit,      // more unasked data or envelopes than granted
  request,     // a want, cancel or answer that fits no message
  departure,   // a departure that fits no endpoint or counts
  resume,      // a statement of what this session never sent, or that takes back an earlier one
};
const char* describe(Refusal refusal);

[[nodiscard]] inline constexpr bool is_envelope(Kind kind) {
  return kind == Kind::envelope || (kind >= Kind::put && kind <= Kind::atomic);
}
// Whose bytes its sender has, and sends anew what did not come.
[[nodiscard]] inline constexpr bool brings_bytes(Kind kind) {
  return kind == Kind::envelope || kind == Kind::put;
}

inline constexpr std::uint64_t fragments_of(std::uint64_t bytes, std::uint32_t fragment) {
  return (bytes + fragment - 1) / fragment;
}

inline constexpr std::uint32_t padded(std::uint32_t bytes) {
  return (bytes + 7u) & ~7u;
}

// Of an envelope, with what rides behind it.
inline constexpr std::size_t size_of(const Envelope& e) {
  return sizeof(Envelope) + (has(e.flags, MessageFlags::rows) ? sizeof(Rows) : 0) + padded(e.inline_length);
}

// Bytes of its receiver's memory that an unexpected message takes at most, with what rides with its envelope.
// The rest of its payload is paid for with credit.
inline constexpr std::uint32_t envelope_bytes = 640;
// Unread messages that a pair of endpoints may have at the receiver, whatever else lies unread there; beyond
// them it may have as many as the link has credit for envelopes left.
inline constexpr std::uint64_t pair_envelopes = 64;
inline constexpr std::uint64_t envelopes_of_kernels = 4096; // of a link over which nothing else comes
inline constexpr bool may_send_envelope(std::uint64_t unread_of_pair, std::uint64_t left_of_link) {
  return unread_of_pair < pair_envelopes || unread_of_pair < left_of_link;
}

// Checks all of a prefix that needs no state of the link; none: it passed.
Refusal check_prefix(const Prefix& prefix);

// Walks the entries of one header. next() gives nullptr at the end or at a refusal.
class EntryWalk {
public:
  EntryWalk(std::span<const std::byte> entries, std::uint16_t count) : rest_(entries), left_(count) {}

  struct Entry {
    Kind kind;
    union {
      Descriptor descriptor;
      Envelope envelope;
    };
    const std::byte* inline_data; // of a message's envelope: the bytes that ride with it
    Rows rows_of;                 // of an envelope that has rows

    [[nodiscard]] const Rows* rows() const {
      return has(envelope.flags, MessageFlags::rows) ? &rows_of : nullptr;
    }
  };
  const Entry* next();
  [[nodiscard]] Refusal refusal() const { return refusal_; }

private:
  bool take_envelope(Kind kind);
  bool take_descriptor();

  std::span<const std::byte> rest_;
  std::uint16_t left_;
  Refusal refusal_ = Refusal::none;
  Entry entry_{};
};

} // namespace parc::protocol
