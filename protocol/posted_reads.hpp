// SPDX-License-Identifier: BSD-3-Clause
// The reads that wait for a message, found by their source (or any), the bits of the tag that they ignore and
// those that they do not: a hash for the few masks that programs use, a list for reads with others. Used by
// the engine for its endpoints, and by libparc for what its neighbours send.
#pragma once

#include "protocol/wire.hpp"

#include <algorithm>
#include <array>
#include <boost/intrusive/list.hpp>
#include <cassert>
#include <cstdint>
#include <vector>

namespace parc::protocol {

namespace hook {
using mode = boost::intrusive::link_mode<boost::intrusive::auto_unlink>;
template <class Tag> using Hook = boost::intrusive::list_base_hook<boost::intrusive::tag<Tag>, mode>;
struct Answers;  // in Link::answers
struct Queue;    // in the queue that the object's state names
struct Asked;    // in Link::asked
struct Arrivals; // in Endpoint::arrivals
struct Held;     // in Link::held
struct OfPeer;   // in Peer::pairs
struct OfGroup;  // in Group::local
struct Owned;    // with its endpoint
template <class T, class Tag> using List =
    boost::intrusive::list<T, boost::intrusive::base_hook<Hook<Tag>>,
                           boost::intrusive::constant_time_size<false>>;
} // namespace hook

// Of what a read that ignores these bits asks for. No source: any.
inline std::uint64_t hash_of(const void* source, Space space, std::uint64_t ignore, std::uint64_t tag) {
  constexpr std::uint64_t spread = 0x9e3779b97f4a7c15; // 2^64 over the golden ratio
  std::uint64_t hash = (tag & ~ignore) + static_cast<std::uint64_t>(space);
  hash = (hash ^ hash >> 32) * spread;
  hash = (hash + reinterpret_cast<std::uintptr_t>(source)) * spread;
  hash = (hash + ignore) * spread;
  return hash >> 32;
}

// What a read or a probe asks for. `Source` is what its owner knows of who may send it.
template <class Source> struct Wanted : hook::Hook<hook::Queue> {
  using Pair = Source;
  Source* pair = nullptr; // none: any
  Space space = Space::programs;
  std::uint64_t tag = 0;
  std::uint64_t ignore = 0;            // bits of it that may be any
  std::uint64_t number = 0;            // order of posting
  std::uint8_t posted_as = not_posted; // PostedReads's
  static constexpr std::uint8_t not_posted = 0xff;

  [[nodiscard]] bool fits(const Source* of, Space in, std::uint64_t bits) const {
    return space == in && ((tag ^ bits) & ~ignore) == 0 && (pair == nullptr || pair == of);
  }
};

// Of reads derived from Wanted.
template <class Read> class PostedReads {
public:
  void add(Read& read);
  void remove(Read& read);
  // The oldest that fits a message.
  [[nodiscard]] Read* find(const typename Read::Pair* source, Space space, std::uint64_t tag);

private:
  using List = hook::List<Read, hook::Queue>; // in the order of posting
  struct Mask {
    std::uint64_t ignore = 0;
    std::uint32_t naming = 0; // reads that name a source
    std::uint32_t any = 0;    // those that do not
  };
  static constexpr std::size_t least_buckets = 8;
  static constexpr std::size_t most_in_bucket = 2; // on average
  [[nodiscard]] List& bucket(const typename Read::Pair* pair, Space space, std::uint64_t ignore,
                             std::uint64_t tag);
  void grow();

  std::array<Mask, 4> masks_;
  std::vector<List> buckets_; // a power of two of them, from the first read on
  List others_;
  std::size_t hashed_ = 0;
};

// Different keys may share a bucket; in it, reads of one key are in the order of posting.
template <class Read>
typename PostedReads<Read>::List& PostedReads<Read>::bucket(const typename Read::Pair* pair, Space space,
                                                            std::uint64_t ignore, std::uint64_t tag) {
  return buckets_[hash_of(pair, space, ignore, tag) & (buckets_.size() - 1)];
}

template <class Read> void PostedReads<Read>::add(Read& read) {
  assert(read.posted_as == Read::not_posted);
  const auto in_use = [](const Mask& mask) { return mask.naming + mask.any != 0; };
  std::size_t free = masks_.size(), found = masks_.size();
  for (std::size_t i = 0; i < masks_.size(); ++i) {
    if (!in_use(masks_[i])) free = std::min(free, i);
    if (in_use(masks_[i]) && masks_[i].ignore == read.ignore) found = i;
  }
  if (found == masks_.size()) found = free;
  read.posted_as = static_cast<std::uint8_t>(found);
  if (found == masks_.size()) return others_.push_back(read);
  Mask& mask = masks_[found];
  mask.ignore = read.ignore;
  ++(read.pair != nullptr ? mask.naming : mask.any);
  if (++hashed_ > buckets_.size() * most_in_bucket) grow();
  bucket(read.pair, read.space, read.ignore, read.tag).push_back(read);
}

template <class Read> void PostedReads<Read>::remove(Read& read) {
  assert(read.posted_as != Read::not_posted);
  read.hook::template Hook<hook::Queue>::unlink();
  if (read.posted_as < masks_.size()) {
    Mask& mask = masks_[read.posted_as];
    --(read.pair != nullptr ? mask.naming : mask.any);
    --hashed_;
  }
  read.posted_as = Read::not_posted;
}

template <class Read>
Read* PostedReads<Read>::find(const typename Read::Pair* source, Space space, std::uint64_t tag) {
  Read* oldest = nullptr;
  const auto look = [&](List& reads) {
    for (Read& read : reads) {
      if (oldest != nullptr && oldest->number < read.number) return;
      if (read.fits(source, space, tag)) return void(oldest = &read);
    }
  };
  for (const Mask& mask : masks_) {
    if (mask.naming != 0) look(bucket(source, space, mask.ignore, tag));
    if (mask.any != 0) look(bucket(nullptr, space, mask.ignore, tag));
  }
  look(others_);
  return oldest;
}

template <class Read> void PostedReads<Read>::grow() {
  std::vector<List> old(std::max(least_buckets, buckets_.size() * 2));
  old.swap(buckets_);
  for (List& reads : old)
    while (!reads.empty()) {
      Read& read = reads.front();
      reads.pop_front();
      bucket(read.pair, read.space, read.ignore, read.tag).push_back(read);
    }
}

} // namespace parc::protocol
