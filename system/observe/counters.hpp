// SPDX-License-Identifier: BSD-3-Clause
// What a kernel counts, in a file of its runtime directory that it maps: tools read it without asking
// anybody, also when the kernel is dead, and the next kernel who it follows. Here is the layout, which both
// sides share, and the reader.
//
// One writer, the kernel's thread; any number of readers, which only read. Every value is a 64-bit cell,
// stored and loaded relaxed: cells are true one by one, and nothing orders one after another. A row (link,
// job, session) changes owner under its stamp: odd while the kernel fills or frees it, so that a reader never
// takes the name of one owner for the figures of the next; stamp stores and the fences around them are
// release on the writer's side and acquire on the reader's. The file is filled under another name and
// renamed, so that no reader meets half of one.
#pragma once

#include "system/error.hpp"
#include "system/identity.hpp"
#include "system/runtime_dir.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace parc {

enum class Counter : std::uint16_t {
  Turns,
  Sleeps,
  Polls,
  Naps,
  GaveWay,
  Wakes,
  TrainsIn,
  TrainsOut,
  FragmentsIn,
  FragmentsOut,
  BytesIn,
  BytesOut,
  MessagesIn,
  MessagesOut,
  MessagesLocal,
  Unexpected,
  UnexpectedBytes,
  PoolBytes,
  PoolPeak,
  CopyBytes,
  Sessions,
  SessionsTotal,
  SessionsRefused,
  LinksRefused,
  Links,
  Jobs,
  SpawnsHeld,
  LogLinesDropped,
};

struct CounterRow {
  Counter counter;
  std::string_view label;  // also the key in JSON
  std::string_view metric; // for Prometheus, behind parc_kernel_; "_total" at its end: it only rises
  std::string_view unit;
  std::string_view help;
};

inline constexpr std::array counter_table{
    CounterRow{Counter::Turns, "turns", "turns_total", "", "rounds of the kernel's loop"},
    CounterRow{Counter::Sleeps, "sleeps", "sleeps_total", "", "times the kernel went to sleep"},
    CounterRow{Counter::Polls, "polls", "polls_total", "",
               "times the kernel looked again, as a program polls"},
    CounterRow{Counter::Naps, "naps", "naps_total", "", "times the kernel napped, to find more at once"},
    CounterRow{Counter::GaveWay, "gave_way", "gave_way_total", "",
               "times the kernel let a computation on its core go on"},
    CounterRow{Counter::Wakes, "wakes", "wakes_total", "", "times the kernel woke a sleeping program"},
    CounterRow{Counter::TrainsIn, "trains_in", "received_trains_total", "", "trains received"},
    CounterRow{Counter::TrainsOut, "trains_out", "sent_trains_total", "", "trains sent"},
    CounterRow{Counter::FragmentsIn, "fragments_in", "received_fragments_total", "", "fragments received"},
    CounterRow{Counter::FragmentsOut, "fragments_out", "sent_fragments_total", "", "fragments sent"},
    CounterRow{Counter::BytesIn, "bytes_in", "received_bytes_total", "B",
               "payload received from other hosts"},
    CounterRow{Counter::BytesOut, "bytes_out", "sent_bytes_total", "B", "payload sent to other hosts"},
    CounterRow{Counter::MessagesIn, "messages_in", "received_messages_total", "",
               "messages of programs received from other hosts"},
    CounterRow{Counter::MessagesOut, "messages_out", "sent_messages_total", "",
               "messages of programs sent to other hosts"},
    CounterRow{Counter::MessagesLocal, "messages_local", "local_messages_total", "",
               "messages between programs of this host"},
    CounterRow{Counter::Unexpected, "unexpected", "unexpected_messages_total", "",
               "messages that came before their read was posted"},
    CounterRow{Counter::UnexpectedBytes, "unexpected_bytes", "unexpected_bytes_total", "B",
               "their bytes, each copied once more"},
    CounterRow{Counter::PoolBytes, "pool_bytes", "pool_bytes", "B", "pool in use"},
    CounterRow{Counter::PoolPeak, "pool_peak", "pool_peak_bytes", "B", "the most pool ever in use"},
    CounterRow{Counter::CopyBytes, "copy_bytes", "copied_bytes_total", "B",
               "bytes copied between programs of this host"},
    CounterRow{Counter::Sessions, "sessions", "attached_programs", "", "programs attached"},
    CounterRow{Counter::SessionsTotal, "sessions_total", "attached_programs_total", "",
               "programs attached since the start"},
    CounterRow{Counter::SessionsRefused, "sessions_refused", "refused_sessions_total", "",
               "programs refused, or cut off for a malformed request"},
    CounterRow{Counter::LinksRefused, "links_refused", "refused_links_total", "",
               "links refused, or closed for a malformed frame"},
    CounterRow{Counter::Links, "links", "links", "", "links to other hosts, also those that are made again"},
    CounterRow{Counter::Jobs, "jobs", "jobs", "", "jobs with ranks here"},
    CounterRow{Counter::SpawnsHeld, "spawns_held", "held_spawns", "",
               "spawns that wait for the output of those before them"},
    CounterRow{Counter::LogLinesDropped, "log_lines_dropped", "dropped_log_lines_total", "",
               "log lines that nobody took in time"},
};
inline constexpr std::size_t counter_count = counter_table.size();
static_assert(static_cast<std::size_t>(Counter::LogLinesDropped) + 1 == counter_count,
              "a counter without a row");
static_assert(
    [] {
      for (std::size_t i = 0; i < counter_count; ++i)
        if (counter_table[i].counter != static_cast<Counter>(i) || counter_table[i].label.empty())
          return false;
      return true;
    }(),
    "the rows stand in the order of the enum");

enum class LinkState : std::uint64_t { Up, Reconnecting };
enum class LinkWay : std::uint64_t { Direct, Ssh, Relay };
enum class JobState : std::uint64_t { Starting, Running, Ending };
// Whose error it is, and so what its code means.
enum class ErrorKind : std::uint64_t {
  Request, // of a program, which ended so: a PARC_E*
  Program, // has failed: its exit status, 128+N for a signal
  Job,     // has failed: its exit status
  Link,    // was lost, or has lost its connection: an errno
  Refused, // a kernel or program that connected: an errno, or a PARC_E*
};
inline constexpr std::size_t error_kinds = 5;
[[nodiscard]] std::string_view name(ErrorKind kind);
[[nodiscard]] std::string_view name(LinkState state);
[[nodiscard]] std::string_view name(LinkWay way);
[[nodiscard]] std::string_view name(JobState state);

namespace counters {

// A value with one writer: adding needs no locked instruction.
class Cell {
public:
  void set(std::uint64_t value) { value_.store(value, std::memory_order_relaxed); }
  void add(std::uint64_t more) { set(get() + more); }
  void subtract(std::uint64_t less) { set(get() - less); }
  void raise(std::uint64_t value) { set(std::max(get(), value)); }
  [[nodiscard]] std::uint64_t get() const { return value_.load(std::memory_order_relaxed); }

private:
  std::atomic<std::uint64_t> value_{0};
};
static_assert(sizeof(Cell) == 8 && std::atomic<std::uint64_t>::is_always_lock_free);

// Text of up to `size` bytes, longer text cut; padded with zeros.
template <std::size_t size> class Text {
public:
  void set(std::string_view text) {
    std::array<char, size> padded{};
    std::copy_n(text.begin(), std::min(text.size(), size), padded.begin());
    for (std::size_t i = 0; i < words_.size(); ++i) {
      std::uint64_t word;
      std::memcpy(&word, padded.data() + 8 * i, 8);
      words_[i].set(word);
    }
  }
  [[nodiscard]] std::string get() const {
    std::array<char, size> padded;
    for (std::size_t i = 0; i < words_.size(); ++i) {
      const std::uint64_t word = words_[i].get();
      std::memcpy(padded.data() + 8 * i, &word, 8);
    }
    return {padded.begin(), std::find(padded.begin(), padded.end(), '\0')};
  }

private:
  static_assert(size % 8 == 0);
  std::array<Cell, size / 8> words_;
};

struct Stamp {
  std::atomic<std::uint64_t> value{0}; // odd: the row is being changed
  Cell in_use;
};

struct LinkRow {
  Stamp stamp;
  Text<64> peer;
  Cell identity;
  Cell state; // LinkState
  Cell bytes_in;
  Cell bytes_out;
  Cell credit; // bytes that may still be sent unasked
  Cell rtt_us; // the lowest of its path
  Cell way;    // LinkWay
  Cell encrypted;
  Cell streams;        // that it has at this moment
  Cell unacknowledged; // trains
  Cell since_s;        // Unix time: began
  Cell carriers;       // connections so far
  Cell messages_in;
  Cell messages_out;
  Cell resent_bytes; // payload, over another connection than at first
  Cell stalls;       // times that there was more to send than the connection took
  Cell queue;        // envelopes, payload runs and answers that are not acknowledged
};
static_assert(sizeof(LinkRow) == 216);

struct JobRow {
  Stamp stamp;
  Cell id;
  Cell ranks; // of this host
  Cell state; // JobState
};
static_assert(sizeof(JobRow) == 40);

struct SessionRow {
  Stamp stamp;
  Cell job;
  Cell rank;
  Cell pid;
  Cell reads; // in flight
  Cell writes;
  Cell segment; // id of its control segment (shm/layout.hpp), for those who look on
  // Through the kernel; what neighbours exchange without it stands in that segment.
  Cell messages_in;
  Cell messages_out;
  Cell bytes_in;
  Cell bytes_out;
};
static_assert(sizeof(SessionRow) == 96);

inline constexpr std::size_t error_rows = 64;
inline constexpr std::size_t error_text = 440;
struct ErrorRow { // of an error that has been met more than once, too
  Stamp stamp;
  Cell kind; // ErrorKind
  Cell code; // signed
  Cell count;
  Cell first_s; // Unix time
  Cell last_s;
  Text<error_text> text;
};
static_assert(sizeof(ErrorRow) == 496);

struct ErrorTable {
  Cell others;                          // errors whose rows have given way
  std::array<Cell, error_kinds> totals; // of all that were met
  std::array<ErrorRow, error_rows> rows;
};

inline constexpr std::uint64_t magic = 0x73746e7563726170; // "parcunts"
inline constexpr std::uint64_t version = 10;
inline constexpr std::size_t link_rows = 256;
inline constexpr std::size_t job_rows = 64;
inline constexpr std::size_t session_rows = 1024;

struct File {
  Cell magic;
  Cell version;
  Cell size;
  Cell counters; // how many
  Cell pid;
  Cell pid_start;   // process_start_time(pid)
  Cell started_s;   // Unix time
  Cell identity;    // of the host, drawn at this start
  Cell port;        // that it listens on
  Cell inode;       // of this file: another one is a copy
  Text<64> host;    // its name
  Text<64> program; // version of parcd
  Text<64> scheduling;
  Text<128> listens;                                    // where, in words
  std::array<Cell, Predecessors{}.size()> predecessors; // dead, as other hosts hear of its next one
  std::array<Cell, counter_count> values;
  std::array<LinkRow, link_rows> links;
  std::array<JobRow, job_rows> jobs;
  std::array<SessionRow, session_rows> sessions;
  ErrorTable errors;
};
static_assert(offsetof(File, host) == 80 && offsetof(File, values) == 528);

} // namespace counters

// A copy of it all at one moment.
struct CounterSnapshot {
  struct Link {
    std::string peer;
    LinkState state{};
    LinkWay way{};
    bool encrypted = false;
    std::uint64_t identity = 0, bytes_in = 0, bytes_out = 0, credit = 0, rtt_us = 0, unacknowledged = 0,
                  since_s = 0, carriers = 0, messages_in = 0, messages_out = 0, resent_bytes = 0, stalls = 0,
                  queue = 0, streams = 0;
  };
  struct Job {
    std::uint64_t id = 0, ranks = 0;
    JobState state{};
  };
  struct Session {
    std::uint64_t job = 0, rank = 0, pid = 0, reads = 0, writes = 0, segment = 0, messages_in = 0,
                  messages_out = 0, bytes_in = 0, bytes_out = 0;
  };
  struct Error {
    ErrorKind kind{};
    std::int64_t code = 0;
    std::uint64_t count = 0, first_s = 0, last_s = 0;
    std::string text;
  };

  bool copied = false;    // from another place
  bool alive = false;     // the kernel that wrote them still runs
  bool stopped = false;   // it does, but for a signal or a debugger
  bool elsewhere = false; // it does, in another PID namespace: pid means nothing here
  bool ended = false;     // it does not, and took its files away: it was not killed
  [[nodiscard]] const char* end_word() const { return ended ? "ended" : "DEAD"; }
  std::uint64_t pid = 0, identity = 0, port = 0, started_s = 0;
  std::string host, program, scheduling, listens;
  Predecessors predecessors{};
  std::array<std::uint64_t, counter_count> values{};
  std::vector<Link> links;
  std::vector<Job> jobs;
  std::vector<Session> sessions;
  std::vector<Error> errors;
  std::uint64_t other_errors = 0;                        // that found no place among them
  std::array<std::uint64_t, error_kinds> error_totals{}; // by kind, with those

  // Of whoever starts next: not who lives, and lost no more than its place; nor anybody of another place.
  [[nodiscard]] Predecessors for_next() const;
  [[nodiscard]] std::uint64_t operator[](Counter counter) const {
    return values[static_cast<std::size_t>(counter)];
  }
};

// For tools. Blocks nobody and is not blocked; may be kept open and read again and again.
class CounterReader {
public:
  // A missing file means that no kernel ever ran on this runtime directory.
  [[nodiscard]] static Result<CounterReader> open(const RuntimeDir& dir);
  CounterReader(CounterReader&& other) noexcept
      : file_(std::exchange(other.file_, nullptr)), inode_(other.inode_), dir_(std::move(other.dir_)) {}
  CounterReader& operator=(CounterReader&& other) noexcept {
    std::swap(file_, other.file_);
    std::swap(inode_, other.inode_);
    std::swap(dir_, other.dir_);
    return *this;
  }
  ~CounterReader();

  [[nodiscard]] CounterSnapshot read() const;
  // The same, and one in another PID namespace is told from a dead one by its lock. Never in a kernel, which
  // would lose its own (running_kernel()).
  [[nodiscard]] CounterSnapshot read_from_outside() const;

private:
  CounterReader(const counters::File* file, std::uint64_t inode, RuntimeDir dir)
      : file_(file), inode_(inode), dir_(std::move(dir)) {}
  const counters::File* file_;
  std::uint64_t inode_;
  RuntimeDir dir_;
};

} // namespace parc
