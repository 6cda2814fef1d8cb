// SPDX-License-Identifier: BSD-3-Clause
// Making the counter file and giving out its rows. The file's blocks are reserved when it is made: a full
// file system is an error then, and never a SIGBUS at some later store.
#include "daemon/base/counters.hpp"

#include "system/fd.hpp"
#include "system/identity.hpp"

#include <cerrno>
#include <cstdio>
#include <ctime>
#include <fcntl.h>
#include <new>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace parc::daemon {
namespace {

template <class Slot, class Rows, class Fill> Slot take_row(Rows& rows, Fill fill) {
  for (auto& row : rows) {
    if (row.stamp.in_use.get() != 0) continue;
    Slot::change(row, 1, fill);
    return Slot(row);
  }
  return Slot();
}

std::string unfinished(const RuntimeDir& dir) {
  return dir.counters() + ".new";
}

Result<Fd> make_unfinished(const RuntimeDir& dir) {
  const std::string path = unfinished(dir);
  unlink(path.c_str()); // of a kernel that was killed right here
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd) return system_error("cannot make the counters {}", path);
  if (const int failure = posix_fallocate(fd.get(), 0, sizeof(counters::File)); failure != 0) {
    unlink(path.c_str());
    return error(failure, "cannot reserve {} bytes for the counters {}: {}", sizeof(counters::File),
                 dir.counters(), std::strerror(failure));
  }
  return fd;
}

// `at`: in the place of what is mapped there.
void* map(const Fd& fd, void* at) {
  return mmap(at, sizeof(counters::File), PROT_READ | PROT_WRITE,
              MAP_SHARED | (at != nullptr ? MAP_FIXED : 0), fd.get(), 0);
}

std::uint64_t inode_of(const Fd& fd) {
  struct stat status {};
  return fstat(fd.get(), &status) == 0 ? status.st_ino : 0;
}

Error not_mapped(const RuntimeDir& dir) {
  auto failure = system_error("cannot map the counters {}", dir.counters());
  unlink(unfinished(dir).c_str());
  return failure;
}

Result<void> finish(const RuntimeDir& dir) {
  if (std::rename(unfinished(dir).c_str(), dir.counters().c_str()) == 0) return success();
  auto failure = system_error("cannot put the counters at {}", dir.counters());
  unlink(unfinished(dir).c_str());
  return failure;
}

} // namespace

void Counters::Unmap::operator()(counters::File* file) const {
  munmap(file, sizeof *file);
}

Result<Counters> Counters::create(const RuntimeDir& dir, const Owner& owner) {
  PARC_TRY(fd, make_unfinished(dir));
  void* mapped = map(fd, nullptr);
  if (mapped == MAP_FAILED) return not_mapped(dir);
  const std::uint64_t inode = inode_of(fd);
  Counters made(std::move(fd), new (mapped) counters::File);
  auto& file = *made.file_;
  file.inode.set(inode);
  file.magic.set(counters::magic);
  file.version.set(counters::version);
  file.size.set(sizeof(counters::File));
  file.counters.set(counter_count);
  file.pid.set(static_cast<std::uint64_t>(getpid()));
  file.pid_start.set(process_start_time(getpid()));
  file.started_s.set(static_cast<std::uint64_t>(std::time(nullptr)));
  file.identity.set(owner.identity);
  file.port.set(owner.port);
  file.host.set(owner.host);
  file.program.set(PARC_VERSION);
  file.scheduling.set(owner.scheduling);
  file.listens.set(owner.listens);
  for (std::size_t i = 0; i < owner.predecessors.size(); ++i) file.predecessors[i].set(owner.predecessors[i]);
  PARC_TRY(finish(dir));
  return made;
}

// The kernel alone writes into it, in this thread: nothing changes between the copy and the new mapping.
Result<bool> Counters::put_back(const RuntimeDir& dir) {
  if (is_at(descriptor_, dir.counters())) return false;
  PARC_TRY(fd, make_unfinished(dir));
  if (pwrite(fd.get(), file_.get(), sizeof *file_, 0) != static_cast<ssize_t>(sizeof *file_) ||
      map(fd, file_.get()) == MAP_FAILED)
    return not_mapped(dir);
  file_->inode.set(inode_of(fd));
  descriptor_ = std::move(fd);
  PARC_TRY(finish(dir));
  return true;
}

LinkCounters Counters::link(std::string_view peer, std::uint64_t identity, LinkState state) {
  return take_row<LinkCounters>(file_->links, [&](counters::LinkRow& row) {
    row.peer.set(peer);
    row.identity.set(identity);
    row.state.set(static_cast<std::uint64_t>(state));
    row.since_s.set(static_cast<std::uint64_t>(std::time(nullptr)));
    for (auto* cell : {&row.bytes_in, &row.bytes_out, &row.credit, &row.rtt_us, &row.way, &row.encrypted,
                       &row.unacknowledged, &row.carriers, &row.messages_in, &row.messages_out,
                       &row.resent_bytes, &row.stalls, &row.queue, &row.streams})
      cell->set(0);
  });
}

JobCounters Counters::job(std::uint64_t id, std::uint64_t ranks, JobState state) {
  return take_row<JobCounters>(file_->jobs, [&](counters::JobRow& row) {
    row.id.set(id);
    row.ranks.set(ranks);
    row.state.set(static_cast<std::uint64_t>(state));
  });
}

SessionCounters Counters::session(std::uint64_t job, std::uint64_t rank, pid_t pid, int segment) {
  return take_row<SessionCounters>(file_->sessions, [&](counters::SessionRow& row) {
    row.job.set(job);
    row.rank.set(rank);
    row.pid.set(static_cast<std::uint64_t>(pid));
    row.segment.set(static_cast<std::uint64_t>(segment));
    for (auto* cell :
         {&row.reads, &row.writes, &row.messages_in, &row.messages_out, &row.bytes_in, &row.bytes_out})
      cell->set(0);
  });
}

} // namespace parc::daemon
