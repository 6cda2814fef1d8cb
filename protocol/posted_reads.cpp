// SPDX-License-Identifier: BSD-3-Clause
#include "protocol/objects.hpp"

#include <bit>
#include <cassert>

namespace parc::protocol {
namespace {

constexpr std::size_t least_buckets = 8;
constexpr std::size_t most_in_bucket = 2; // on average

} // namespace

// Different keys may share a bucket; in it, reads of one key are in the order of posting.
PostedReads::List& PostedReads::bucket(const Pair* pair, Space space, std::uint64_t ignore,
                                       std::uint64_t tag) {
  constexpr std::uint64_t spread = 0x9e3779b97f4a7c15; // 2^64 over the golden ratio
  std::uint64_t hash = (tag & ~ignore) + static_cast<std::uint64_t>(space);
  hash = (hash ^ hash >> 32) * spread;
  hash = (hash + reinterpret_cast<std::uintptr_t>(pair)) * spread;
  hash = (hash + ignore) * spread;
  return buckets_[hash >> 32 & (buckets_.size() - 1)];
}

void PostedReads::add(Reading& read) {
  assert(read.posted_as == Reading::not_posted);
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

void PostedReads::remove(Reading& read) {
  assert(read.posted_as != Reading::not_posted);
  read.hook::Hook<hook::Queue>::unlink();
  if (read.posted_as < masks_.size()) {
    Mask& mask = masks_[read.posted_as];
    --(read.pair != nullptr ? mask.naming : mask.any);
    --hashed_;
  }
  read.posted_as = Reading::not_posted;
}

Reading* PostedReads::find(const Incoming& message) {
  Reading* oldest = nullptr;
  const auto look = [&](List& reads) {
    for (Reading& read : reads) {
      if (oldest != nullptr && oldest->number < read.number) return;
      if (read.fits(message.pair, message.space, message.tag)) return void(oldest = &read);
    }
  };
  for (const Mask& mask : masks_) {
    if (mask.naming != 0) look(bucket(message.pair, message.space, mask.ignore, message.tag));
    if (mask.any != 0) look(bucket(nullptr, message.space, mask.ignore, message.tag));
  }
  look(others_);
  return oldest;
}

void PostedReads::grow() {
  std::vector<List> old(std::max(least_buckets, buckets_.size() * 2));
  old.swap(buckets_);
  for (List& reads : old)
    while (!reads.empty()) {
      Reading& read = reads.front();
      reads.pop_front();
      bucket(read.pair, read.space, read.ignore, read.tag).push_back(read);
    }
}

} // namespace parc::protocol
