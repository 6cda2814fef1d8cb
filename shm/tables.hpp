// SPDX-License-Identifier: BSD-3-Clause
// The tables of operations as all see them who have them attached: the first block in the control segment,
// and those behind it. The program makes a block and tells its kernel of it (RequestKind::grow), which
// attaches it and answers; from then on its slots are used, so whoever knows of an operation has its block.
//
//   block k:  Operation[n] | Times[n] | owner words of its reads[n / 2] | bits[n / 64] | bits of bits[n /
//   4096]
//
// Who writes an Operation, Times and owner words, and how, is as in layout.hpp and letterbox.hpp.
//
// The bits say which queued operations are done, in three levels: an operation's, its word's, its block's
// (Control::finished_blocks; the first block has the first level alone). Who ends an operation sets them
// upwards, each with release; who looks takes them downwards, each with acquire and whole. So either the look
// comes after the bit above and sees the one below, or the bit above is there for the next look; and a bit
// that another look has taken already is an empty look, no more. Every one of these is a read-modify-write,
// so a bit that is taken brings with it all that its word's other setters had stored before.
//
// Threads: any; add() one at a time. All but that is async-signal-safe.
#pragma once

#include "shm/slots.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

namespace parc::shm {

static_assert(slots_in(1) % 4096 == 0);
[[nodiscard]] constexpr std::size_t bytes_of_block(unsigned block) {
  const std::size_t slots = slots_in(block);
  return slots * (sizeof(Operation) + sizeof(Times)) +
         (slots / 2 + slots / 64 + slots / 4096) * sizeof(std::uint64_t);
}

class Tables {
public:
  explicit Tables(Control& control) : control_(&control) {}

  // The memory of the next block. It stays until this goes.
  void add(std::byte* memory);
  [[nodiscard]] unsigned blocks() const { return blocks_.load(std::memory_order_acquire); } // but the first
  [[nodiscard]] bool has(std::uint64_t slot) const { return slot < control_slot || is_slot(slot, blocks()); }

  // Of a slot that is there, or control_slot.
  [[nodiscard]] Operation& operation(std::uint64_t slot) const {
    return slot <= control_slot ? control_->operations[slot] : of(slot).operations[place(slot)];
  }
  [[nodiscard]] Times& times(std::uint64_t slot) const {
    return slot <= control_slot ? control_->times[slot] : of(slot).times[place(slot)];
  }
  // Of a read behind the first block.
  [[nodiscard]] std::atomic<std::uint64_t>& owner(std::uint64_t slot) const {
    return of(slot).owners[place(slot)];
  }

  // A queued operation is done: its state says so.
  void note_finished(std::uint64_t slot) const;
  // use(slot) for each whose bit has been set since the last look; its state may say something else by now.
  template <class Use> void take_finished(const Use& use) const;
  [[nodiscard]] bool any_finished() const; // it would find some

  // use(slot) for each that may ever have been used.
  template <class Use> void each(const Use& use) const;

private:
  struct Block {
    Operation* operations;
    Times* times;
    std::atomic<std::uint64_t>*owners, *finished, *finished_words;
  };
  [[nodiscard]] const Block& of(std::uint64_t slot) const { return at_[block_of(slot) - 1]; }
  [[nodiscard]] static std::uint64_t place(std::uint64_t slot) { return slot - first_slot(block_of(slot)); }
  // use(number) for each bit of a word, which is taken.
  template <class Use> static void take_bits(std::atomic<std::uint64_t>& word, const Use& use) {
    if (word.load(std::memory_order_relaxed) == 0) return;
    for (auto bits = word.exchange(0, std::memory_order_acquire); bits != 0; bits &= bits - 1)
      use(static_cast<std::uint32_t>(std::countr_zero(bits)));
  }

  Control* control_;
  std::array<Block, most_blocks> at_{};
  std::atomic<unsigned> blocks_ = 0; // release, when the block is in at_
};

inline void Tables::note_finished(std::uint64_t slot) const {
  const auto set = [](std::atomic<std::uint64_t>* words, std::uint64_t number) {
    words[number / 64].fetch_or(std::uint64_t{1} << number % 64, std::memory_order_release);
  };
  if (slot <= control_slot) return set(control_->finished, slot);
  const Block& block = of(slot);
  set(block.finished, place(slot));
  set(block.finished_words, place(slot) / 64);
  set(&control_->finished_blocks, block_of(slot));
}

inline bool Tables::any_finished() const {
  const auto is_set = [](const std::atomic<std::uint64_t>& word) {
    return word.load(std::memory_order_relaxed) != 0;
  };
  return std::ranges::any_of(control_->finished, is_set) || is_set(control_->finished_blocks);
}

template <class Use> void Tables::take_finished(const Use& use) const {
  for (std::uint32_t word = 0; word < std::size(control_->finished); ++word)
    take_bits(control_->finished[word], [&](std::uint32_t bit) {
      if (const std::uint32_t slot = word * 64 + bit; slot < control_slot) use(slot);
    });
  const unsigned blocks = this->blocks();
  if (blocks == 0) return;
  take_bits(control_->finished_blocks, [&](std::uint32_t number) {
    if (number == 0 || number > blocks) return;
    const Block& block = at_[number - 1];
    for (std::uint32_t above = 0; above < slots_in(number) / 4096; ++above)
      take_bits(block.finished_words[above], [&](std::uint32_t bit) {
        const std::uint32_t word = above * 64 + bit;
        take_bits(block.finished[word],
                  [&](std::uint32_t place) { use(first_slot(number) + word * 64 + place); });
      });
  });
}

template <class Use> void Tables::each(const Use& use) const {
  for (std::uint32_t slot = 0; slot < control_slot; ++slot) use(slot);
  for (unsigned block = 1, all = blocks(); block <= all; ++block)
    for (const std::uint32_t writes : {0U, 1U}) {
      const std::uint32_t half = slots_in(block) / 2, first = first_slot(block) + writes * half;
      const auto used = std::min(control_->used[block - 1][writes].load(std::memory_order_relaxed),
                                 half); // hostile, perhaps
      for (std::uint32_t i = 0; i < used; ++i) use(first + i);
    }
}

} // namespace parc::shm
