// SPDX-License-Identifier: BSD-3-Clause
// The records of a traced program (system/observe/trace.hpp) on their way to its kernel: kept in memory by
// whoever has something to say, a page fault's handler too, and written to the pipe at the end of libparc's
// calls. A full pipe holds nobody up: what finds no place any more is counted and left out. A rank of MPI's
// that mpirun has started has a file in place of the pipe; the sites of all such ranks are those where the
// program calls MPI (client/trace/trace_mpi.cpp).
//
// Without a trace on() is false and nothing here is touched but where a call came from. Threads: any. add is
// async-signal-safe.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"
#include "system/observe/trace.hpp"

#include <array>
#include <atomic>
#include <boost/lockfree/queue.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace parc::client {

class Trace {
public:
  // The pipe, or the file in the directory, that the environment names; off where it names none.
  [[nodiscard]] static Result<Fd> pipe_from_environment();
  Trace(Fd pipe, const std::string& host);

  [[nodiscard]] bool on() const { return records_.has_value(); }
  // Whether it tells of first touches of pages, and of those of a program none of whose waits is released.
  [[nodiscard]] bool of_pages() const { return of_pages_; }
  [[nodiscard]] bool unreleased() const { return unreleased_; }

  void add(trace::Record record);
  void write_some(); // when it is worth a system call
  void flush();      // as much as the pipe takes
  void close();      // everything; blocks until the kernel has taken it or has gone
  void close_in_child() { pipe_.reset(); }

  // Which of the endpoints of all programs a peer is, as its address says; -1: this program.
  void name_peer(int peer, std::string_view address);

  // While one of these lives this thread looks for what has ended. Looks in a row, with nothing calculated in
  // between, are a wait.
  class Look {
  public:
    Look(Trace& trace, const void* site);
    Look(const Look&) = delete;
    Look& operator=(const Look&) = delete;
    ~Look();
    void found(bool anything) { found_ = anything; }

  private:
    Trace* const trace_; // nullptr: nothing is traced
    const void* const site_;
    bool found_ = false;
  };

  // While one of these lives this thread is in a call of the program's, from `site`.
  class InCall {
  public:
    InCall(Trace* trace, trace::Call call, std::uint64_t id, const void* site);
    InCall(const InCall&) = delete;
    InCall& operator=(const InCall&) = delete;
    ~InCall();

  private:
    Trace* const trace_; // nullptr: nothing is traced, and no call below is there
    const std::uint64_t site_before_;
    trace::Call call_;
    std::uint64_t id_, begin_;
  };
  [[nodiscard]] static std::uint32_t thread();
  // Of the innermost InCall of this thread.
  [[nodiscard]] static std::uint64_t site() { return site_; }

private:
  static constexpr std::size_t capacity = 8192;
  static constexpr std::size_t most_sites = 512;
  using Records = boost::lockfree::queue<trace::Record, boost::lockfree::capacity<capacity>>;

  // Looks of a thread in a row.
  struct Looks {
    std::uint64_t begin, end; // ns
    std::uint64_t worked;     // this thread's processor time at the end, ns
    std::uint64_t site;
    std::uint32_t number; // 0: there are none
  };

  [[nodiscard]] static Result<Fd> file_in(const std::string& directory);
  [[nodiscard]] std::uint64_t site_of_call(const void* caller) const;
  void end_looks(Looks& looks, bool found);
  bool write_batch();
  void note_site(std::uint64_t site);
  struct Batch;
  [[nodiscard]] bool describe(std::uint64_t site, Batch& batch);
  [[nodiscard]] bool name_object(std::uint64_t base, std::string_view name, Batch& batch);

  __attribute__((tls_model("initial-exec"))) static thread_local std::uint64_t site_;
  __attribute__((tls_model("initial-exec"))) static thread_local Looks looks_;

  Fd pipe_;
  const std::string& host_;        // of this rank; said once
  std::optional<Records> records_; // large: touched only where it is used
  std::atomic<std::size_t> waiting_ = 0, lost_ = 0;
  std::atomic_flag writing_;
  std::array<std::atomic<std::uint64_t>, most_sites> sites_{}; // in the order in which they were seen
  std::size_t sites_written_ = 0;                              // under writing_
  std::vector<std::uint64_t> objects_written_;                 // under writing_: where they are loaded
  bool host_written_ = false;                                  // under writing_
  bool under_mpi_ = false;                                     // what calls is a library itself
  bool of_pages_ = false, unreleased_ = false;
};

} // namespace parc::client
