// SPDX-License-Identifier: BSD-3-Clause
#include "tests/sim/puts.hpp"

#include <algorithm>

namespace parc::sim {

using namespace protocol;

Put& Puts::start(std::size_t from, std::size_t to, const Place& place, std::uint64_t clock, Random& random) {
  Put& put = puts_.emplace_back();
  put.from = from;
  put.to = to;
  put.place = Spot(place);
  put.messages_before = oracle_.messages.size();
  if (to != from) put.gate = oracle_.actors[from].releases;
  put.started = clock;
  put.memory = std::make_unique<Memory>(place.length, random);
  put.memory->fill(last() + first_name);
  oracle_.note_put(from, to);
  return put;
}

// It may be one of several, or made up.
void Puts::placed(std::size_t to, const Place& place) const {
  if (!oracle_.hostile.empty()) return;
  bool any = false;
  for (const Put& put : puts_) {
    if (put.is_there() || put.to != to || put.place.window != place.window ||
        put.place.offset != place.offset || put.place.length != place.length ||
        (put.place.rows == nullptr) != (place.rows == nullptr))
      continue;
    any = true;
    if (put.over() || oracle_.holder(put.from, put.gate) == nullptr) return;
  }
  if (any) throw Violation("a put is heard of before what its writer was released from");
}

void Puts::progressed(std::size_t index, const Progress& progress) {
  Put& put = puts_[index];
  const Progress before = put.progress;
  if (put.over()) throw Violation("progress after the end of " + name(index));
  if (progress.front < before.front || progress.back < before.back) throw Violation("progress went back");
  const std::uint64_t bytes = put.place.length;
  put.memory->use(before.front, progress.front);
  put.memory->use(bytes - progress.back, bytes - before.back);
  put.progress = progress;
}

// All of it is there that no later one of the pair may have covered.
bool Puts::holds(std::size_t index) const {
  const Put& put = puts_[index];
  for (std::uint64_t each = 0; each < put.place.length; ++each) {
    const std::uint64_t at = put.place.at(each);
    const std::byte found = *look_(put.to, at);
    if (found == byte_of(put, index, at)) continue;
    bool later = false;
    for (std::size_t i = index + 1; i < puts_.size() && !later; ++i)
      later = puts_[i].from == put.from && puts_[i].to == put.to && puts_[i].covers(at) &&
              found == byte_of(puts_[i], i, at);
    if (!later) return false;
  }
  return true;
}

void Puts::finished(std::size_t index, const Outcome& outcome, std::uint64_t clock, bool may_put) {
  Put& put = puts_[index];
  if (put.over()) throw Violation(name(index) + " ended twice");
  put.ended = clock;
  put.fault = outcome.fault;
  oracle_.check_transfer(name(index), put.from, put.to, outcome.fault,
                         doubtful() || !put.right || !put.acquainted || may_be_hidden_(put.to, put.started));
  refused_ += outcome.fault == Fault::place;
  put.memory = nullptr;
  if (outcome.fault != Fault::none) return;
  bytes_put_ += put.place.length;
  if (doubtful()) return;
  if (!put.right || !may_put) throw Violation(name(index) + " is where it may not be");
  if (put.must_fail) throw Violation(name(index) + " was overtaken");
  if (!oracle_.actors[put.to].departed() && !holds(index)) throw Violation(name(index) + " is not in place");
}

void Puts::check_behind(std::size_t message) {
  const Message& m = oracle_.messages[message];
  for (std::size_t i = 0; i < puts_.size(); ++i) {
    Put& put = puts_[i];
    if (put.from != m.from || put.to != m.to || put.messages_before > message) continue;
    if (put.in_place || put.must_fail || !put.may_be_there() || !put.right || doubtful()) continue;
    if (holds(i)) {
      put.in_place = true;
      continue;
    }
    if (put.is_there()) throw Violation(name(i) + " was overtaken by message " + std::to_string(message));
    put.must_fail = true;
    if (put.over() && put.acquainted && !may_be_hidden_(put.to, put.started))
      throw Violation("message " + std::to_string(message) + " came behind " + name(i) +
                      ", which will never be whole");
  }
}

bool Puts::explains(std::byte found, std::size_t whose, std::size_t at, std::uint64_t place,
                    std::uint64_t started, bool own, std::byte first) {
  if (doubtful()) return true;
  std::vector<std::size_t> surpassed; // later ones, whose bytes these are not
  for (std::size_t i = puts_.size(); i-- != 0;) {
    Put& put = puts_[i];
    if (put.from != whose || put.to != at || !put.covers(place)) continue;
    const bool right = found == byte_of(put, i, place);
    if (put.must_fail) { // but some of it may have come before its window was not reached any more
      if (right && may_be_hidden_(at, put.started)) return true;
      continue;
    }
    if (right || (put.is_there() && (own ? put.started < started : put.ended < started))) {
      for (const std::size_t later : surpassed) puts_[later].must_fail = true;
      return right;
    }
    if (own && put.started < started && put.may_be_there() && !put.over()) surpassed.push_back(i);
  }
  for (const std::size_t later : surpassed) puts_[later].must_fail = true;
  return found == first;
}

// A hostile host may put anywhere.
bool Puts::doubtful() const {
  return !oracle_.hostile.empty();
}

void Puts::check_silent(std::size_t actor) const {
  for (std::size_t i = 0; i < puts_.size(); ++i)
    if (puts_[i].from == actor && !puts_[i].over()) throw Violation(name(i) + " outlives its killed writer");
}

// An envelope may wait behind messages that nobody reads.
void Puts::check_rest(bool last) {
  for (std::size_t i = 0; i < puts_.size(); ++i) {
    const Put& put = puts_[i];
    if (!put.over() && (last || !oracle_.may_be_held(put.from, put.to)))
      throw Violation(name(i) + " never ends");
    if (put.is_there() && !doubtful() && !oracle_.actors[put.to].departed() && !holds(i))
      throw Violation(name(i) + " did not stay in place");
  }
}

std::string Puts::name(std::size_t index) const {
  const Put& put = puts_[index];
  return "put " + std::to_string(index) + " (actor " + std::to_string(put.from) + " to " +
         std::to_string(put.to) + ", window " + std::to_string(put.place.window) + ", " +
         std::to_string(put.place.length) + " bytes at " + std::to_string(put.place.offset) + ")";
}

} // namespace parc::sim
