// SPDX-License-Identifier: BSD-3-Clause
#include "protocol/train_out.hpp"

#include <cassert>
#include <cstring>

namespace parc::protocol {

void TrainOut::begin() {
  assert(!active());
  iovecs_.clear();
  owners_.clear();
  staged_.clear();
  next_ = 0;
  entries_ = 0;
  payload_ = 0;
  header_length_ = sizeof(Prefix);
  append(header_.data(), 0, 0);
}

void TrainOut::add(const Descriptor& descriptor) {
  assert(room_for(sizeof descriptor));
  std::memcpy(header_.data() + header_length_, &descriptor, sizeof descriptor);
  header_length_ += sizeof descriptor;
  ++entries_;
}

void TrainOut::add(const Envelope& envelope, const Pieces& riding, const Rows* rows) {
  const std::uint32_t ride = padded(envelope.inline_length);
  assert(room_for(size_of(envelope)));
  std::memcpy(header_.data() + header_length_, &envelope, sizeof envelope);
  header_length_ += sizeof envelope;
  if (has(envelope.flags, MessageFlags::rows)) {
    std::memcpy(header_.data() + header_length_, rows, sizeof *rows);
    header_length_ += sizeof *rows;
  }
  if (ride != 0) {
    std::memset(header_.data() + header_length_ + ride - 8, 0, 8);
    riding.copy_out(0, header_.data() + header_length_, envelope.inline_length);
  }
  header_length_ += ride;
  ++entries_;
}

void TrainOut::add_payload(const Pieces& memory, std::uint64_t offset, std::uint32_t length,
                           std::uint64_t message) {
  std::size_t pieces = 0;
  bool direct = true;
  memory.each(offset, length, [&](const std::byte*, std::uint64_t n) {
    direct = ++pieces <= pieces_per_fragment && (n >= min_direct || length < min_direct) && direct;
  });
  if (direct && iovecs_.size() + pieces <= max_iovecs) {
    memory.each(offset, length, [&](const std::byte* base, std::uint64_t n) { append(base, n, message); });
  } else {
    std::byte* copy = stage(length);
    memory.copy_out(offset, copy, length);
    append(copy, length, 0);
  }
  payload_ += length;
}

void TrainOut::add_payload(std::byte* staged, std::uint32_t length) {
  append(staged, length, 0);
  payload_ += length;
}

void TrainOut::finish(Prefix prefix) {
  prefix.magic = train_magic;
  prefix.header_length = static_cast<std::uint16_t>(header_length_);
  prefix.entries = entries_;
  prefix.payload_length = payload_;
  std::memcpy(header_.data(), &prefix, sizeof prefix);
  iovecs_[0].iov_len = header_length_;
  assert(iovecs_.size() <= system_iovecs);
}

void TrainOut::state(const Statement& statement) {
  begin();
  std::memcpy(header_.data(), &statement, sizeof statement);
  iovecs_[0].iov_len = sizeof statement;
}

void TrainOut::wrote(std::size_t bytes) {
  while (bytes != 0) {
    iovec& part = iovecs_[next_];
    if (bytes < part.iov_len) {
      part.iov_base = static_cast<std::byte*>(part.iov_base) + bytes;
      part.iov_len -= bytes;
      return;
    }
    bytes -= part.iov_len;
    ++next_;
  }
}

void TrainOut::unname(std::uint64_t message) {
  for (std::size_t i = next_; i < iovecs_.size(); ++i) {
    if (owners_[i] != message) continue;
    std::byte* copy = stage(iovecs_[i].iov_len);
    std::memcpy(copy, iovecs_[i].iov_base, iovecs_[i].iov_len);
    iovecs_[i].iov_base = copy;
    owners_[i] = 0;
  }
}

void TrainOut::append(const std::byte* base, std::size_t length, std::uint64_t owner) {
  // Neighbours in memory travel as one: fragments of a contiguous message cost one iovec a train.
  if (iovecs_.size() > 1 && owners_.back() == owner && owner != 0) {
    iovec& last = iovecs_.back();
    if (static_cast<const std::byte*>(last.iov_base) + last.iov_len == base) {
      last.iov_len += length;
      return;
    }
  }
  iovecs_.push_back({const_cast<std::byte*>(base), length});
  owners_.push_back(owner);
}

std::byte* TrainOut::stage(std::size_t bytes) {
  return staged_.emplace_back(std::make_unique_for_overwrite<std::byte[]>(bytes)).get();
}

} // namespace parc::protocol
