// SPDX-License-Identifier: BSD-3-Clause
// MESSAGES messages between all ranks, drawn from SEED: 0 bytes to 8 MiB, tags, contexts, wildcards, lists of
// pieces, from both ends, of memory that the kernel shares and of memory that it does not.
//
// Every rank draws the same plan and so is its own model. A rank posts its reads in the order in which their
// messages are sent, with a pattern that the message fits; then by MPI's rule each read gets the message that
// it was made for, whatever else is on its way. In the last context reads take from anybody: there no message
// may come twice or be lost.
// Where LONGEST is given (MiB), two of every fifty messages are that long: one there and one back between
// ranks 0 and 1, at once. Usage: random_messages SEED MESSAGES [LONGEST]
#include "tests/support/programs/rank.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <random>
#include <utility>
#include <vector>

namespace {

constexpr std::uint32_t contexts = 4;
constexpr std::uint32_t from_anybody = contexts - 1;
constexpr std::size_t most_from_anybody = 65536; // bytes: every such read has room for them
constexpr std::size_t most_at_once = 48;

struct Message {
  std::uint64_t number;
  int from, to, tag;
  std::uint32_t context;
  std::size_t bytes;
  bool any_tag;
};

std::size_t draw_length(std::mt19937_64& random) {
  const auto kind = random() % 1000;
  if (kind < 50) return 0;
  if (kind < 600) return random() % 1024;
  if (kind < 940) return random() % 65536;
  if (kind < 997) return random() % (std::size_t{1} << 20);
  return random() % (std::size_t{8} << 20);
}

std::vector<Message> draw_plan(std::uint64_t seed, std::uint64_t messages, std::size_t longest, int ranks) {
  std::mt19937_64 random(seed);
  const auto draw_rank = [&] { return static_cast<int>(random() % static_cast<unsigned>(ranks)); };
  std::vector<Message> plan;
  for (std::uint64_t number = 0; number < messages; ++number) {
    Message message{};
    message.number = number;
    message.from = draw_rank();
    message.to = draw_rank(); // itself too
    message.tag = static_cast<int>(random() % 5);
    message.context = static_cast<std::uint32_t>(random() % contexts);
    message.bytes = draw_length(random);
    if (message.context == from_anybody) message.bytes %= most_from_anybody;
    if (const auto place = number % 50; longest != 0 && (place == 10 || place == 11)) {
      message.from = place == 10 ? 0 : 1;
      message.to = 1 - message.from;
      message.context = 0;
      message.bytes = longest;
    }
    message.any_tag = random() % 3 == 0 || message.context == from_anybody;
    plan.push_back(message);
  }
  return plan;
}

// Memory of one operation, perhaps in pieces with gaps between them.
class Room {
public:
  Room(parc_context* parc, std::mt19937_64& random, std::size_t bytes) : parc_(parc) {
    const std::size_t pieces = bytes == 0 ? 0 : random() % 4 == 0 ? 1 + random() % 20 : 1;
    const std::size_t gap = pieces > 1 ? random() % 100 : 0;
    shared_ = random() % 2 == 0;
    const std::size_t all = bytes + pieces * gap + 1;
    base_ = static_cast<unsigned char*>(shared_ ? parc_alloc(parc, all) : std::malloc(all));
    if (base_ == nullptr) { // the arena is full: that is what other memory is for
      shared_ = false;
      base_ = static_cast<unsigned char*>(std::malloc(all));
    }
    std::memset(base_, 0xa5, all);
    std::vector<std::size_t> cuts{0, bytes};
    for (std::size_t i = 1; i < pieces; ++i) cuts.push_back(random() % (bytes + 1));
    std::ranges::sort(cuts);
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      pieces_.push_back({base_ + cuts[i] + i * gap, cuts[i + 1] - cuts[i]});
      if (gap != 0 && i + 2 < cuts.size()) gaps_.push_back({base_ + cuts[i + 1] + i * gap, gap});
    }
  }
  Room(Room&& other) noexcept
      : parc_(other.parc_), base_(std::exchange(other.base_, nullptr)), shared_(other.shared_),
        pieces_(std::move(other.pieces_)), gaps_(std::move(other.gaps_)) {}
  Room& operator=(Room&& other) noexcept {
    std::swap(parc_, other.parc_);
    std::swap(base_, other.base_);
    std::swap(shared_, other.shared_);
    std::swap(pieces_, other.pieces_);
    std::swap(gaps_, other.gaps_);
    return *this;
  }
  ~Room() {
    if (shared_)
      parc_free(parc_, base_);
    else
      std::free(base_);
  }

  [[nodiscard]] const std::vector<iovec>& pieces() const { return pieces_; }
  void fill(std::uint64_t message) {
    std::size_t offset = 0;
    for (const iovec& piece : pieces_) {
      rank::fill(piece.iov_base, piece.iov_len, message, offset);
      offset += piece.iov_len;
    }
  }
  [[nodiscard]] bool holds(std::uint64_t message, std::size_t bytes) const {
    std::size_t offset = 0;
    for (const iovec& piece : pieces_) {
      const std::size_t length = std::min(piece.iov_len, bytes - offset);
      if (!rank::filled(piece.iov_base, length, message, offset)) return false;
      offset += length;
    }
    return std::ranges::all_of(gaps_, [](const iovec& gap) {
      const auto* bytes_of_gap = static_cast<const unsigned char*>(gap.iov_base);
      return std::all_of(bytes_of_gap, bytes_of_gap + gap.iov_len,
                         [](unsigned char byte) { return byte == 0xa5; });
    });
  }

private:
  parc_context* parc_;
  unsigned char* base_ = nullptr;
  bool shared_ = false;
  std::vector<iovec> pieces_;
  std::vector<iovec> gaps_;
};

class Rank {
public:
  Rank(parc_context* parc, std::uint64_t seed, std::vector<Message> plan)
      : parc_(parc), random_(seed + 1 + static_cast<std::uint64_t>(rank::number)), plan_(std::move(plan)),
        taken_(plan_.size()) {}

  // Goes through the plan; what is under way is bounded, and so both sides have to wait for each other.
  void run() {
    for (const Message& message : plan_) {
      if (message.from == rank::number) write(message);
      if (message.to == rank::number) read(message);
      while (under_way_.size() > most_at_once) finish_one();
    }
    while (!under_way_.empty()) finish_one();
  }

private:
  struct UnderWay {
    parc_op operation;
    const Message* message;
    bool reads;
    Room room;
  };

  void write(const Message& message) {
    Room room(parc_, random_, message.bytes);
    room.fill(message.number);
    const parc_envelope to = parc_envelope_of(message.to, message.context, message.tag);
    const parc_op operation =
        parc_initwritev(parc_, &to, room.pieces().data(), static_cast<int>(room.pieces().size()), flags());
    started(operation, message, false, std::move(room));
  }

  void read(const Message& message) {
    const std::size_t bytes =
        message.context == from_anybody ? most_from_anybody : message.bytes + random_() % 50;
    Room room(parc_, random_, bytes);
    const parc_envelope from =
        parc_envelope_of(message.context == from_anybody ? PARC_ANY_SOURCE : message.from, message.context,
                         message.any_tag ? PARC_ANY_TAG : message.tag);
    const parc_op operation =
        parc_initreadv(parc_, &from, room.pieces().data(), static_cast<int>(room.pieces().size()), 0);
    started(operation, message, true, std::move(room));
  }

  unsigned flags() { return random_() % 4 == 0 ? PARC_FROM_END : 0; }

  void started(parc_op operation, const Message& message, bool reads, Room room) {
    rank::expect(operation > 0, "message %d cannot be started", static_cast<int>(message.number));
    under_way_.push_back({operation, &message, reads, std::move(room)});
  }

  void finish_one() {
    std::vector<parc_op> operations;
    for (const UnderWay& each : under_way_) operations.push_back(each.operation);
    int index = -1;
    parc_status status;
    rank::expect_code(
        parc_waitany(parc_, static_cast<int>(operations.size()), operations.data(), &index, &status), PARC_OK,
        "waitany");
    const auto finished = under_way_.begin() + index;
    if (finished->reads) check(*finished, status);
    under_way_.erase(finished);
  }

  void check(const UnderWay& read, const parc_status& status) {
    const Message& message = *read.message;
    if (message.context == from_anybody) {
      take(read, status);
      return;
    }
    rank::expect(status.source == message.from && status.tag == message.tag &&
                     status.length == message.bytes && status.context == message.context,
                 "message %d from %d, tag %d, %zu bytes: got source %d, tag %d, %zu bytes",
                 static_cast<int>(message.number), message.from, message.tag, message.bytes, status.source,
                 status.tag, static_cast<std::size_t>(status.length));
    rank::expect(read.room.holds(message.number, message.bytes), "the bytes of message %d are wrong",
                 static_cast<int>(message.number));
  }

  // Reads that take from anybody finish in any order: what each got is the first message like it that has not
  // come yet. (Two of no bytes are alike.)
  void take(const UnderWay& read, const parc_status& status) {
    for (const Message& each : plan_) {
      if (each.from != status.source || each.to != rank::number || each.context != from_anybody ||
          each.bytes != status.length || each.tag != status.tag || taken_[each.number] ||
          !read.room.holds(each.number, each.bytes))
        continue;
      taken_[each.number] = true;
      return;
    }
    rank::expect(false, "a message of %d that nobody sent, or that came before", status.source);
  }

  parc_context* parc_;
  std::mt19937_64 random_;
  std::vector<Message> plan_;
  std::vector<UnderWay> under_way_;
  std::vector<bool> taken_; // messages that came from anybody, by number
};

} // namespace

int main(int argc, char** argv) {
  if (argc != 3 && argc != 4) return 2;
  const std::uint64_t seed = std::strtoull(argv[1], nullptr, 10);
  parc_context* parc = rank::open();
  const std::size_t longest = argc == 4 ? std::strtoull(argv[3], nullptr, 10) << 20 : 0;
  Rank(parc, seed, draw_plan(seed, std::strtoull(argv[2], nullptr, 10), longest, parc_size(parc))).run();
  rank::expect_code(parc_barrier(parc), PARC_OK, "barrier");
  rank::expect_code(parc_close(parc), PARC_OK, "close");
}
