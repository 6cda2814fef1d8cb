// SPDX-License-Identifier: BSD-3-Clause
// The kernel's side of its counter file: it alone writes. Every call is a plain store into the mapping; none
// blocks or fails. A row belongs to the object that holds its handle and is freed with it; where a table is
// full, the handle counts into a row that nobody sees, so that no caller needs to care.
#pragma once

#include "system/fd.hpp"
#include "system/observe/counters.hpp"

#include <memory>

namespace parc::daemon {

// A handle that holds one row of a table and frees it when it goes, which must be before its Counters.
template <class Row> class CounterSlot {
public:
  CounterSlot() : row_(&spare()) {} // counts into a row that nobody sees
  explicit CounterSlot(Row& row) : row_(&row) {}
  CounterSlot(CounterSlot&& other) noexcept : row_(std::exchange(other.row_, &spare())) {}
  CounterSlot& operator=(CounterSlot&& other) noexcept {
    std::swap(row_, other.row_);
    return *this;
  }
  ~CounterSlot() {
    if (row_ != &spare()) change(*row_, 0, [](Row&) {});
  }
  Row* operator->() const { return row_; }

  // Gives the row a new owner, or none, in one step for every reader.
  template <class Fill> static void change(Row& row, std::uint64_t in_use, Fill fill) {
    const auto stamp = row.stamp.value.load(std::memory_order_relaxed);
    row.stamp.value.store(stamp + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    fill(row);
    row.stamp.in_use.set(in_use);
    row.stamp.value.store(stamp + 2, std::memory_order_release);
  }

private:
  static Row& spare() {
    static Row row;
    return row;
  }
  Row* row_;
};

using LinkCounters = CounterSlot<counters::LinkRow>;
using JobCounters = CounterSlot<counters::JobRow>;
using SessionCounters = CounterSlot<counters::SessionRow>;

class Counters {
public:
  struct Owner {
    std::string host;
    std::uint64_t identity = 0;
    std::uint16_t port = 0;
    std::string scheduling; // SchedulingClass::describe()
    std::string listens;    // Listeners::words
    Predecessors predecessors{};
  };

  // Puts a new counter file, all zeros, in the place of the one before. The caller holds the directory's
  // lock.
  [[nodiscard]] static Result<Counters> create(const RuntimeDir& dir, const Owner& owner);
  // Makes the file again where it was removed, with all that is in it; every row stays where it is. True: it
  // had been removed.
  [[nodiscard]] Result<bool> put_back(const RuntimeDir& dir);

  void add(Counter counter, std::uint64_t more = 1) { cell(counter).add(more); }
  void subtract(Counter counter, std::uint64_t less = 1) { cell(counter).subtract(less); }
  void set(Counter counter, std::uint64_t value) { cell(counter).set(value); }
  void raise(Counter counter, std::uint64_t value) { cell(counter).raise(value); } // to at least this
  [[nodiscard]] std::uint64_t get(Counter counter) { return cell(counter).get(); }

  [[nodiscard]] counters::ErrorTable& errors() { return file_->errors; }

  // Takes a row for a link, job or session that has begun just now.
  [[nodiscard]] LinkCounters link(std::string_view peer, std::uint64_t identity, LinkState state);
  [[nodiscard]] JobCounters job(std::uint64_t id, std::uint64_t ranks, JobState state);
  [[nodiscard]] SessionCounters session(std::uint64_t job, std::uint64_t rank, pid_t pid, int segment);

private:
  struct Unmap {
    void operator()(counters::File* file) const;
  };
  Counters(Fd descriptor, counters::File* file) : descriptor_(std::move(descriptor)), file_(file) {}
  counters::Cell& cell(Counter counter) { return file_->values[static_cast<std::size_t>(counter)]; }

  Fd descriptor_; // tells whether the file at its path is this one
  std::unique_ptr<counters::File, Unmap> file_;
};

} // namespace parc::daemon
