// SPDX-License-Identifier: BSD-3-Clause
// Messages that no read has taken, oldest first. The first ones are looked at one by one, which is all that
// most programs need; where more lie there, an index finds the oldest that fits. An index knows one kind of
// read: of these ignored bits, naming its source or not. Those that the last finds needed are kept, so that
// neither who reads in another order than was written, nor its neighbours, wait for searches. Used by the
// engine for its endpoints, and by libparc for what its neighbours have sent.
#pragma once

#include "protocol/posted_reads.hpp"

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

namespace parc::protocol {

namespace hook {
template <int> struct Indexed; // in a bucket of that index
} // namespace hook

// What matching knows of a message. `Source` is what its owner knows of who has sent it; as long as the
// message may be read.
template <class Source> struct Unexpected : hook::Hook<hook::Queue>,
                                            hook::Hook<hook::Arrivals>,
                                            hook::Hook<hook::Indexed<0>>,
                                            hook::Hook<hook::Indexed<1>>,
                                            hook::Hook<hook::Indexed<2>> {
  Source* pair = nullptr;
  std::uint64_t tag = 0;
  Space space = Space::programs;

  // It is not found any more.
  void take_out() {
    hook::Hook<hook::Queue>::unlink();
    hook::Hook<hook::Arrivals>::unlink();
    hook::Hook<hook::Indexed<0>>::unlink();
    hook::Hook<hook::Indexed<1>>::unlink();
    hook::Hook<hook::Indexed<2>>::unlink();
  }
};

// Of messages derived from Unexpected. Only find allocates and frees: messages may be added by a signal
// handler.
template <class Message> class UnexpectedMessages {
public:
  using Queue = hook::List<Message, hook::Queue>; // of one source

  void add(Message& message, Queue& of_source);
  // The oldest that the read fits. `of_source`: where the read names one.
  template <class Read> [[nodiscard]] Message* find(const Read& read, Queue* of_source);

  [[nodiscard]] bool empty() const { return all_.empty(); }
  [[nodiscard]] Message& front() { return all_.front(); }
  [[nodiscard]] auto begin() { return all_.begin(); }
  [[nodiscard]] auto end() { return all_.end(); }
  [[nodiscard]] auto begin() const { return all_.begin(); }
  [[nodiscard]] auto end() const { return all_.end(); }

private:
  static constexpr std::size_t looked_at = 32; // before an index is asked
  static constexpr std::size_t least_buckets = 64;

  template <int Number> struct Index {
    using Bucket = hook::List<Message, hook::Indexed<Number>>;
    std::uint64_t ignore = 0;
    bool naming = false;
    std::uint64_t used = 0; // the find that needed it last; 0: it is none
    std::size_t added = 0;
    std::vector<Bucket> buckets; // a power of two of them

    [[nodiscard]] bool is_for(std::uint64_t ignored, bool names) const {
      return used != 0 && ignore == ignored && naming == names;
    }
    [[nodiscard]] Bucket& bucket(const void* source, Space space, std::uint64_t tag) {
      return buckets[hash_of(naming ? source : nullptr, space, ignore, tag) & (buckets.size() - 1)];
    }
    void add(Message& message) {
      bucket(message.pair, message.space, message.tag).push_back(message);
      ++added;
    }
    void make(hook::List<Message, hook::Arrivals>& all) {
      std::size_t count = least_buckets;
      for (std::size_t there = all.size(); count < there; count *= 2) continue;
      std::vector<Bucket>(count).swap(buckets); // what was in the old ones is in none
      added = 0;
      for (Message& message : all) add(message);
    }
  };

  template <class Use> void each_index(Use use) {
    std::apply([&](auto&... index) { (use(index), ...); }, indexes_);
  }
  void make_index(std::uint64_t ignore, bool naming);

  hook::List<Message, hook::Arrivals> all_;
  std::tuple<Index<0>, Index<1>, Index<2>> indexes_;
  std::uint64_t finds_ = 0; // by index
};

template <class Message> void UnexpectedMessages<Message>::add(Message& message, Queue& of_source) {
  const bool first = all_.empty();
  of_source.push_back(message);
  all_.push_back(message);
  each_index([&](auto& index) {
    if (first) index.used = 0;
    if (index.used != 0) index.add(message);
  });
}

template <class Message> template <class Read>
Message* UnexpectedMessages<Message>::find(const Read& read, Queue* of_source) {
  const auto first_of = [&](auto& messages, std::size_t most, bool& more) -> Message* {
    for (Message& message : messages) {
      more = most-- == 0;
      if (more) return nullptr;
      if (read.fits(message.pair, message.space, message.tag)) return &message;
    }
    return nullptr;
  };
  bool more = false;
  const bool naming = of_source != nullptr;
  Message* const early = naming ? first_of(*of_source, looked_at, more) : first_of(all_, looked_at, more);
  if (early != nullptr || !more) return early;
  Message* found = nullptr;
  bool known = false;
  const auto ask = [&](auto& index) {
    if (known || !index.is_for(read.ignore, naming)) return;
    known = true;
    index.used = ++finds_;
    if (index.added > 2 * index.buckets.size()) index.make(all_);
    found = first_of(index.bucket(read.pair, read.space, read.tag), SIZE_MAX, more);
  };
  each_index(ask);
  if (known) return found;
  make_index(read.ignore, naming);
  each_index(ask);
  return found;
}

// In place of the one that nobody has needed for longest.
template <class Message> void UnexpectedMessages<Message>::make_index(std::uint64_t ignore, bool naming) {
  std::uint64_t oldest = UINT64_MAX;
  each_index([&](const auto& index) { oldest = std::min(oldest, index.used); });
  bool made = false;
  each_index([&](auto& index) {
    if (made || index.used != oldest) return;
    made = true;
    index.ignore = ignore;
    index.naming = naming;
    index.used = ++finds_;
    index.make(all_);
  });
}

} // namespace parc::protocol
