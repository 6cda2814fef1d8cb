// SPDX-License-Identifier: BSD-3-Clause
// What a host session has decided to say and the other host has not acknowledged, in the order of the
// decision: envelopes and answers by value, payload by reference. What an earlier carrier did not bring is
// sent again from here, so sending and resending are one.
#pragma once

#include "protocol/wire.hpp"

#include <boost/circular_buffer.hpp>
#include <cassert>
#include <cstddef>
#include <cstdint>

namespace parc::protocol {

class Log {
public:
  struct Entry {
    std::uint64_t train = 0; // that it travels in; counts only while it is sent
    union {
      Descriptor descriptor{};
      Envelope envelope;
    };

    [[nodiscard]] Kind kind() const { return descriptor.kind; }
    void forget() {
      descriptor.kind = Kind::none;
    } // its message is dead: it keeps its place, and says nothing
  };
  static_assert(offsetof(Descriptor, kind) == 0 && offsetof(Envelope, kind) == 0);

  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] bool all_sent() const { return sent_ == entries_.size(); }

  // The first that has not been sent on this carrier.
  Entry& next() { return entries_[sent_]; }
  void sent(std::uint64_t train) { entries_[sent_++].train = train; }
  // New, and sent at once.
  template <class What> void append(std::uint64_t train, const What& what) {
    assert(all_sent());
    if (entries_.full()) entries_.set_capacity(entries_.capacity() * 2);
    Entry entry;
    entry.train = train;
    if constexpr (sizeof(What) == sizeof(Envelope))
      entry.envelope = what;
    else
      entry.descriptor = what;
    entries_.push_back(entry);
    ++sent_;
  }

  // The oldest that was sent with `train` or before; none: gives false.
  bool take(std::uint64_t train, Entry& oldest) {
    if (sent_ == 0 || entries_.front().train > train) return false;
    oldest = entries_.front();
    entries_.pop_front();
    --sent_;
    return true;
  }
  // In front of all others, to be sent again.
  void put_back(const Entry& entry) {
    if (entries_.full()) entries_.set_capacity(entries_.capacity() * 2);
    entries_.push_front(entry);
  }
  // The carrier is gone: nothing has been sent on the next one.
  void rewind() { sent_ = 0; }

  template <class Use> void each(Use use) {
    for (Entry& entry : entries_) use(entry);
  }
  // Those that were sent with `train`, newest first, until `use` returns false.
  template <class Use> void each_of(std::uint64_t train, Use use) const {
    for (std::size_t i = sent_; i != 0 && entries_[i - 1].train >= train; --i)
      if (entries_[i - 1].train == train && !use(entries_[i - 1])) return;
  }

private:
  boost::circular_buffer<Entry> entries_{64};
  std::size_t sent_ = 0; // so many of them, from the front
};

} // namespace parc::protocol
