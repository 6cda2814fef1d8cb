// SPDX-License-Identifier: BSD-3-Clause
// The puts of the simulated programs, and what must come of these. Each program has a stripe of its own in
// each window, where it alone puts: so the order of its puts to one other says what may lie there.
//
// A put that has ended well is in place, where no later one has followed; a message of its program that is
// behind it takes effect behind it, and so does a get; nothing that is outside, hidden or a stranger's is
// written. Of a put whose end is not known yet it is noted that it must fail, where it was not in place in
// time.
#pragma once

#include "tests/sim/memory.hpp"
#include "tests/sim/oracle.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace parc::sim {

// A place, and the rows that it has.
struct Spot : protocol::Place {
  Spot() = default;
  explicit Spot(const protocol::Place& place) : Place(place) {
    if (place.rows != nullptr) own_rows_ = std::make_shared<protocol::Rows>(*place.rows);
    rows = own_rows_.get();
  }
  // Where in the window its byte `index` lies.
  [[nodiscard]] std::uint64_t at(std::uint64_t index) const {
    if (rows == nullptr) return offset + index;
    return offset + index / rows->row * static_cast<std::uint64_t>(rows->stride) + index % rows->row;
  }
  // The byte of it that lies there; none: none does. Its rows do not overlap. Modulo 2^64.
  [[nodiscard]] std::optional<std::uint64_t> index_of(std::uint64_t where) const {
    if (rows == nullptr) return where - offset < length ? std::optional(where - offset) : std::nullopt;
    const std::uint64_t count = length / rows->row;
    const auto stride = static_cast<std::uint64_t>(rows->stride < 0 ? -rows->stride : rows->stride);
    const std::uint64_t first = rows->stride < 0 ? offset - (count - 1) * stride : offset;
    const std::uint64_t row = (where - first) / stride, within = (where - first) % stride;
    if (row >= count || within >= rows->row) return {};
    return (rows->stride < 0 ? count - 1 - row : row) * rows->row + within;
  }

private:
  std::shared_ptr<protocol::Rows> own_rows_;
};

struct Put {
  std::size_t from = none, to = none;
  Spot place;
  std::size_t messages_before = 0;        // of all, by their numbers
  std::uint64_t gate = 0;                 // as a message's
  std::uint64_t started = 0, ended = 0;   // by the clock of the stores
  bool acquainted = false, right = false; // the place
  std::unique_ptr<Memory> memory;         // none: it is over
  protocol::Progress progress;
  protocol::Fault fault = protocol::Fault::none;
  bool in_place = false;  // or a later one
  bool must_fail = false; // was not in time

  [[nodiscard]] bool over() const { return memory == nullptr; }
  [[nodiscard]] bool may_be_there() const { return !over() || fault != protocol::Fault::place; }
  [[nodiscard]] bool is_there() const { return over() && fault == protocol::Fault::none; }
  [[nodiscard]] bool covers(std::uint64_t at) const { return place.index_of(at).has_value(); }
};

// What lies at a byte of an actor's window; none: the actor has no such byte.
using Look = std::function<const std::byte*(std::size_t actor, std::uint64_t at)>;

class Puts {
public:
  // Since that moment by the clock of the stores.
  using Hidden = std::function<bool(std::size_t actor, std::uint64_t since)>;
  Puts(Oracle& oracle, Look look, Hidden may_be_hidden)
      : oracle_(oracle), look_(std::move(look)), may_be_hidden_(std::move(may_be_hidden)) {}

  Put& start(std::size_t from, std::size_t to, const protocol::Place& place, std::uint64_t clock,
             Random& random);
  [[nodiscard]] std::size_t last() const { return puts_.size() - 1; }
  [[nodiscard]] const Put& operator[](std::size_t put) const { return puts_[put]; }

  // From the engines.
  void placed(std::size_t to, const protocol::Place& place) const; // somebody is about to store there
  void progressed(std::size_t put, const protocol::Progress& progress);
  void finished(std::size_t put, const protocol::Outcome& outcome, std::uint64_t clock, bool may_put);
  // A message has been matched.
  void check_behind(std::size_t message);
  // What a get finds in a stripe: of `whose` in the window of `at`. `started`: of the get; own: it is whose'.
  [[nodiscard]] bool explains(std::byte found, std::size_t whose, std::size_t at, std::uint64_t place,
                              std::uint64_t started, bool own, std::byte first);

  void check_silent(std::size_t actor) const; // one that was killed
  void check_rest(bool last);
  [[nodiscard]] std::uint64_t bytes_put() const { return bytes_put_; }
  [[nodiscard]] std::uint64_t refused() const { return refused_; }

private:
  [[nodiscard]] static std::byte byte_of(const Put& put, std::size_t index, std::uint64_t at) {
    return content(index + first_name, *put.place.index_of(at));
  }
  static constexpr std::size_t first_name = std::size_t{1} << 40; // of contents
  [[nodiscard]] bool holds(std::size_t put) const;
  [[nodiscard]] bool doubtful() const;
  [[nodiscard]] std::string name(std::size_t put) const;

  Oracle& oracle_;
  Look look_;
  Hidden may_be_hidden_;
  std::vector<Put> puts_;
  std::uint64_t bytes_put_ = 0, refused_ = 0;
};

} // namespace parc::sim
