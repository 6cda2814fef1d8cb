// SPDX-License-Identifier: BSD-3-Clause
// The train that is being written: header and staged bytes of its own, payload straight from the programs'
// memory. A half-written train is finished first; memory that it names may be taken away earlier with
// unname().
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <sys/uio.h>
#include <vector>

#include "protocol/pieces.hpp"
#include "protocol/wire.hpp"

namespace parc::protocol {

class TrainOut {
public:
  static constexpr std::size_t max_iovecs = 1000; // from there on payload is staged, a piece a fragment
  static constexpr std::size_t system_iovecs = 1024;
  static constexpr std::size_t min_direct = 64; // shorter pieces are staged

  [[nodiscard]] bool active() const { return next_ < iovecs_.size(); }
  [[nodiscard]] std::span<const iovec> rest() const { return std::span(iovecs_).subspan(next_); }
  [[nodiscard]] std::uint8_t entries() const { return entries_; }
  [[nodiscard]] std::uint32_t payload() const { return payload_; }
  [[nodiscard]] std::uint32_t header_length() const { return header_length_; }
  [[nodiscard]] bool room_for(std::size_t entry_bytes) const {
    return entries_ < max_entries && header_length_ + entry_bytes <= max_header;
  }
  [[nodiscard]] bool room_for_pieces() const { return iovecs_.size() + pieces_per_fragment <= max_iovecs; }

  void begin();
  void add(const Descriptor& descriptor);
  // `rows`: where its flags say that it has some.
  void add(const Envelope& envelope, const Pieces& riding, const Rows* rows = nullptr);
  // The payload of the fragment just added.
  void add_payload(const Pieces& memory, std::uint64_t offset, std::uint32_t length, std::uint64_t message);
  void add_payload(std::byte* staged, std::uint32_t length);
  std::byte* stage(std::size_t bytes); // which are the train's own
  void finish(Prefix prefix);          // fills in the lengths
  void abandon() { iovecs_.clear(), next_ = 0; }
  void state(const Statement& statement); // in place of a train

  void wrote(std::size_t bytes);
  // What is left of `message` in this train is copied, so that its memory can go.
  void unname(std::uint64_t message);

private:
  static constexpr std::size_t pieces_per_fragment = 16; // more are staged
  void append(const std::byte* base, std::size_t length, std::uint64_t owner);

  alignas(8) std::array<std::byte, max_header> header_{};
  std::uint32_t header_length_ = 0;
  std::uint8_t entries_ = 0;
  std::uint32_t payload_ = 0;
  std::vector<iovec> iovecs_;
  std::vector<std::uint64_t> owners_; // of each iovec: a message, or 0 for this train
  std::size_t next_ = 0;
  std::vector<std::unique_ptr<std::byte[]>> staged_;
};

} // namespace parc::protocol
