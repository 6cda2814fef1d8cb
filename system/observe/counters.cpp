// SPDX-License-Identifier: BSD-3-Clause
// Reading the counters of a kernel, alive or dead.
#include "system/observe/counters.hpp"

#include "system/fd.hpp"

#include <cerrno>
#include <fcntl.h>
#include <optional>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace parc {
namespace {

using namespace counters;

// What `copy` makes of a row, or nothing when the row is free. A kernel that was killed between two stamps
// leaves an odd one for ever: such a row counts as free.
template <class Row, class Copy> auto stable(const Row& row, Copy copy)
    -> std::optional<decltype(copy(row))> {
  for (int attempt = 0; attempt < 100; ++attempt) {
    const auto before = row.stamp.value.load(std::memory_order_acquire);
    if (before % 2 != 0) continue;
    if (row.stamp.in_use.get() == 0) return std::nullopt;
    auto value = copy(row);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (row.stamp.value.load(std::memory_order_relaxed) == before) return value;
  }
  return std::nullopt;
}

template <class Rows, class Out, class Copy> void collect(const Rows& rows, Out& out, Copy copy) {
  for (const auto& row : rows)
    if (auto value = stable(row, copy)) out.push_back(*std::move(value));
}

CounterSnapshot::Link copy_link(const LinkRow& row) {
  return {.peer = row.peer.get(),
          .state = static_cast<LinkState>(row.state.get()),
          .way = static_cast<LinkWay>(row.way.get()),
          .encrypted = row.encrypted.get() != 0,
          .identity = row.identity.get(),
          .bytes_in = row.bytes_in.get(),
          .bytes_out = row.bytes_out.get(),
          .credit = row.credit.get(),
          .rtt_us = row.rtt_us.get(),
          .unacknowledged = row.unacknowledged.get(),
          .since_s = row.since_s.get(),
          .carriers = row.carriers.get(),
          .messages_in = row.messages_in.get(),
          .messages_out = row.messages_out.get(),
          .resent_bytes = row.resent_bytes.get(),
          .stalls = row.stalls.get(),
          .queue = row.queue.get(),
          .streams = row.streams.get()};
}

CounterSnapshot::Job copy_job(const JobRow& row) {
  return {row.id.get(), row.ranks.get(), static_cast<JobState>(row.state.get())};
}

CounterSnapshot::Session copy_session(const SessionRow& row) {
  return {.job = row.job.get(),
          .rank = row.rank.get(),
          .pid = row.pid.get(),
          .reads = row.reads.get(),
          .writes = row.writes.get(),
          .segment = row.segment.get(),
          .messages_in = row.messages_in.get(),
          .messages_out = row.messages_out.get(),
          .bytes_in = row.bytes_in.get(),
          .bytes_out = row.bytes_out.get()};
}

CounterSnapshot::Error copy_error(const ErrorRow& row) {
  return {.kind = static_cast<ErrorKind>(row.kind.get()),
          .code = static_cast<std::int64_t>(row.code.get()),
          .count = row.count.get(),
          .first_s = row.first_s.get(),
          .last_s = row.last_s.get(),
          .text = row.text.get()};
}

} // namespace

std::string_view name(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::Request: return "request";
  case ErrorKind::Program: return "program";
  case ErrorKind::Job: return "job";
  case ErrorKind::Link: return "link";
  case ErrorKind::Refused: return "refused";
  }
  return "unknown";
}

std::string_view name(LinkWay way) {
  switch (way) {
  case LinkWay::Direct: return "direct";
  case LinkWay::Ssh: return "ssh";
  case LinkWay::Relay: return "relay";
  }
  return "?";
}

std::string_view name(LinkState state) {
  switch (state) {
  case LinkState::Up: return "up";
  case LinkState::Reconnecting: return "reconnecting";
  }
  return "unknown";
}

std::string_view name(JobState state) {
  switch (state) {
  case JobState::Starting: return "starting";
  case JobState::Running: return "running";
  case JobState::Ending: return "ending";
  }
  return "unknown";
}

Result<CounterReader> CounterReader::open(const RuntimeDir& dir) {
  const std::string path = dir.counters();
  const Fd fd(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!fd) {
    if (errno == ENOENT)
      return error(ENOENT, "no parcd has run here (no counters in {}): start it with parcd --detach",
                   dir.path());
    return system_error("cannot open the counters {}", path);
  }
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) return system_error("cannot examine the counters {}", path);
  // The head is read before the mapping, so that a file of another version is never mapped at a wrong size.
  std::array<std::uint64_t, 4> head{};
  if (pread(fd.get(), head.data(), sizeof head, 0) != static_cast<ssize_t>(sizeof head) || head[0] != magic)
    return error(EBADMSG, "{} does not hold the counters of a parcd; start one there with parcd --detach",
                 path);
  if (head[1] != version || head[2] != sizeof(File) || head[3] != counter_count ||
      status.st_size < static_cast<off_t>(sizeof(File)))
    return error(
        EBADMSG,
        "{} holds counters of version {} ({} of them), and this program reads version {} ({}); use the tools "
        "of the parcd that runs, or start it again",
        path, head[1], head[3], version, counter_count);
  void* mapped = mmap(nullptr, sizeof(File), PROT_READ, MAP_SHARED, fd.get(), 0);
  if (mapped == MAP_FAILED) return system_error("cannot map the counters {}", path);
  return CounterReader(static_cast<const File*>(mapped), status.st_ino, dir);
}

Predecessors CounterSnapshot::for_next() const {
  if (copied) return {};
  if (alive) return predecessors;
  Predecessors all{identity};
  std::copy_n(predecessors.begin(), all.size() - 1, all.begin() + 1);
  return all;
}

CounterReader::~CounterReader() {
  if (file_) munmap(const_cast<File*>(file_), sizeof(File));
}

CounterSnapshot CounterReader::read() const {
  CounterSnapshot snapshot;
  snapshot.copied = file_->inode.get() != inode_;
  snapshot.pid = file_->pid.get();
  // A number may be given again; a number and a start time may not.
  snapshot.alive = process_start_time(static_cast<pid_t>(snapshot.pid)) == file_->pid_start.get();
  snapshot.stopped = snapshot.alive && is_stopped(static_cast<pid_t>(snapshot.pid));
  snapshot.identity = file_->identity.get();
  snapshot.port = file_->port.get();
  snapshot.started_s = file_->started_s.get();
  snapshot.host = file_->host.get();
  snapshot.program = file_->program.get();
  snapshot.scheduling = file_->scheduling.get();
  snapshot.listens = file_->listens.get();
  std::ranges::transform(file_->predecessors, snapshot.predecessors.begin(), &Cell::get);
  for (std::size_t i = 0; i < counter_count; ++i) snapshot.values[i] = file_->values[i].get();
  collect(file_->links, snapshot.links, copy_link);
  collect(file_->jobs, snapshot.jobs, copy_job);
  collect(file_->sessions, snapshot.sessions, copy_session);
  collect(file_->errors.rows, snapshot.errors, copy_error);
  snapshot.other_errors = file_->errors.others.get();
  for (std::size_t i = 0; i < error_kinds; ++i) snapshot.error_totals[i] = file_->errors.totals[i].get();
  return snapshot;
}

CounterSnapshot CounterReader::read_from_outside() const {
  CounterSnapshot snapshot = read();
  if (snapshot.alive) return snapshot;
  const auto holder = running_kernel(dir_);
  snapshot.alive = snapshot.elsewhere = holder && holder.value() && *holder.value() <= 0;
  snapshot.ended = !snapshot.alive && access(dir_.pid_file().c_str(), F_OK) != 0;
  return snapshot;
}

} // namespace parc
