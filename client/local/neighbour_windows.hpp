// SPDX-License-Identifier: BSD-3-Clause
// Windows of neighbours that lie in shared memory (HUNT 2005 has them for programs of one node): this program
// attaches their segments when it first wants something there, and copies from and into them itself. Of a
// segment no more than the window can be touched.
//
// A window that is taken back waits for who is inside (shm::AttachedWindow says how); none is entered after
// that. Where a window cannot be attached, its kernel serves it; who asked for that is not asked again for a
// while, longer each time.
//
// Threads: any. Entries change under lock_; a window is entered without it. Memory order: who enters counts
// himself inside first, then sees that the stage is open (seq_cst both, as who closes it, or forgets it when
// it is free, does it the other way round), then loads `use` with acquire, which is stored with release
// behind the entry's other members. They are changed between the request that has the kernel open the stage
// and that store; before the request `use` was made none. So who sees the stage open sees `use` as it was
// made before or behind them, and where it is `here` they are this window's, and stay so until he leaves.
#pragma once

#include "client/operation/control_calls.hpp"
#include "client/session/ring.hpp"
#include "parc/parc.h"
#include "shm/segment.hpp"

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>

namespace parc::client {

class NeighbourWindows {
public:
  NeighbourWindows(shm::Control& control, ControlCalls& control_calls, Ring& ring)
      : control_(control), control_calls_(control_calls), ring_(ring) {}

  // While one of these lives its window is there.
  class Inside {
  public:
    Inside() = default;
    Inside(NeighbourWindows& windows, std::size_t entry, std::byte* memory)
        : windows_(&windows), entry_(entry), memory_(memory) {}
    Inside(Inside&& other) noexcept
        : windows_(std::exchange(other.windows_, nullptr)), entry_(other.entry_), memory_(other.memory_) {}
    Inside(const Inside&) = delete;
    Inside& operator=(const Inside&) = delete;
    Inside& operator=(Inside&&) = delete;
    ~Inside() {
      if (windows_ != nullptr) windows_->leave(entry_);
    }
    explicit operator bool() const { return windows_ != nullptr; }
    [[nodiscard]] std::byte* memory() const { return memory_; } // of the place

  private:
    NeighbourWindows* windows_ = nullptr;
    std::size_t entry_ = 0;
    std::byte* memory_ = nullptr;
  };
  // may_attach(), where it is not known: the kernel may be asked first, which takes a while, and only of a
  // peer on this host. Nothing: the kernel is to make the transfer, or to say why not.
  template <class May> [[nodiscard]] Inside enter(const parc_place& place, std::uint64_t length,
                                                  std::uint32_t right, const May& may_attach) {
    std::size_t entry = 0;
    Known known = enter_known(place, length, right, entry);
    if (known == Known::closed) look_at_freed();
    if (known == Known::closed || known == Known::no)
      known = may_attach() && attach(place) ? enter_known(place, length, right, entry) : Known::no;
    if (known != Known::entered) return {};
    return {*this, entry, entries_[entry].base + place.offset};
  }
  // The same of one that is attached, without a lock.
  [[nodiscard]] Inside enter_attached(const parc_place& place, std::uint64_t length, std::uint32_t right) {
    std::size_t entry = 0;
    if (enter_known(place, length, right, entry) != Known::entered) return {};
    return {*this, entry, entries_[entry].base + place.offset};
  }
  [[nodiscard]] bool knows(const parc_place& place) const; // it can be entered without asking, as it seems
  // Segments of windows that were taken back go.
  void look() {
    if (control_.windows_freed.load(std::memory_order_relaxed) != freed_.load(std::memory_order_relaxed))
      look_at_freed();
  }
  // None is entered from here on. Blocks until no other thread is inside, but not for long: one whose handler
  // of a signal has called exit() is for ever. The kernel waits for those.
  void close();

private:
  struct Entry {
    // here: it is attached; useless: the kernel has opened it, and it could not be; none: no window.
    enum class Use : std::uint8_t { none, here, useless };
    std::atomic<Use> use = Use::none;
    std::atomic<int> peer = 0; // these two relaxed: who is not inside may see another's
    std::atomic<std::uint64_t> window = 0;
    shm::Segment segment;
    [[nodiscard]] bool is_of(const parc_place& place) const {
      return peer.load(std::memory_order_relaxed) == place.peer &&
             window.load(std::memory_order_relaxed) == place.window;
    }
    std::byte* base = nullptr;
    std::uint64_t length = 0;
    std::uint32_t rights = 0;
  };
  // Which the kernel would not open.
  struct Refused {
    std::uint32_t at = 0; // coarse_ms()
    std::uint32_t for_ms = 0;
  };
  using Name = std::pair<int, std::uint64_t>;
  static constexpr std::uint32_t first_refusal_ms = 10, longest_refusal_ms = 10'000;
  static constexpr std::size_t most_refused = 4096;

  [[nodiscard]] const Entry* find(const parc_place& place) const;
  enum class Known : std::uint8_t { entered, useless, closed, no };
  [[nodiscard]] Known enter_known(const parc_place& place, std::uint64_t length, std::uint32_t right,
                                  std::size_t& entry);
  [[nodiscard]] bool attach(const parc_place& place);
  [[nodiscard]] bool is_refused(const Name& name) const;
  void refuse(const Name& name);
  void attach_segment(Entry& entry, const shm::AttachedWindow& window);
  void look_at_freed();
  void forget_freed();
  void leave(std::size_t entry);

  shm::Control& control_;
  ControlCalls& control_calls_;
  Ring& ring_;
  std::mutex attaching_; // before lock_
  std::mutex lock_;
  std::atomic<bool> closed_ = false; // seq_cst: set, and then looked who is inside
  std::array<Entry, shm::most_attached_windows> entries_;
  std::map<Name, Refused> refused_;
  std::atomic<std::uint32_t> freed_ = 0; // Control::windows_freed, as it was looked at last
};

} // namespace parc::client
