// SPDX-License-Identifier: BSD-3-Clause
// What is different where the traced program is a rank of MPI's, which knows nothing of libparc: its records
// go into a file, calls come from MPI's libraries, peers are known by their addresses, and waiting is looking
// again and again.
#include "client/trace/trace.hpp"

#include "parc/parc.h"
#include "system/environment.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <unistd.h>

namespace parc::client {
namespace {

constexpr std::uint64_t nothing_between = 10'000; // ns of this thread's own work from one look to the next
constexpr int deepest = 32;                       // frames from here to the program

std::string_view first_set(std::initializer_list<const char*> variables) {
  for (const char* const variable : variables)
    if (const char* const value = getenv(variable); value != nullptr && *value != 0) return value;
  return {};
}

// WORLD.RANK.RANKS: of a program that no launcher of MPI's has started, its own world.
std::string name_of_file() {
  std::string world(first_set({"PMIX_NAMESPACE", "SLURM_JOB_ID"}));
  std::string_view rank = first_set({"PMIX_RANK", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"});
  std::string_view ranks = first_set({"OMPI_COMM_WORLD_SIZE", "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"});
  if (world.empty() || rank.empty() || ranks.empty()) {
    world = fmt::format("process-{}", getpid());
    rank = "0";
    ranks = "1";
  }
  std::ranges::replace(world, '/', '_');
  return fmt::format("{}.{}.{}", world, rank, ranks);
}

std::uint64_t worked() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

// What lies between the program and this library, and this library.
bool carries_messages(std::string_view object) {
  object = object.substr(object.rfind('/') + 1); // npos + 1 is 0
  constexpr std::array<std::string_view, 5> carriers{"libparc", "libfabric", "libmpi", "libopen-", "mca_"};
  return std::ranges::any_of(carriers, [&](std::string_view each) { return object.starts_with(each); });
}

Error unwritten(const std::string& path) {
  auto failure = system_error("cannot write the trace of this rank to {}", path);
  failure.code = PARC_EINVAL;
  return failure;
}

} // namespace

thread_local Trace::Looks Trace::looks_{};

Result<Fd> Trace::file_in(const std::string& directory) {
  // On a host that shares no file system with the one of mpirun; what it lies in was there.
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) return unwritten(directory);
  const std::string path = fmt::format("{}/{}", directory, name_of_file());
  Fd file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file) return unwritten(path);
  unsetenv(env_trace); // it is no other program's
  return file;
}

// Where the program has called MPI; `caller` is where MPI has called this library.
std::uint64_t Trace::site_of_call(const void* caller) const {
  const auto otherwise = reinterpret_cast<std::uint64_t>(caller);
  if (!under_mpi_) return otherwise;
  std::array<void*, deepest> frames;
  const auto count = static_cast<std::size_t>(backtrace(frames.data(), deepest));
  for (std::size_t i = 0; i < count; ++i) {
    dl_find_object object{};
    if (_dl_find_object(frames[i], &object) != 0) return otherwise;
    if (!carries_messages(object.dlfo_link_map->l_name)) return reinterpret_cast<std::uint64_t>(frames[i]);
  }
  return otherwise;
}

// Addresses are handed on as they are: the text is the same in all programs.
void Trace::name_peer(int peer, std::string_view address) {
  if (!on()) return;
  std::uint64_t name = 0xcbf29ce484222325; // FNV-1a
  for (const char each : address) name = (name ^ static_cast<unsigned char>(each)) * 0x100000001b3;
  trace::Record record{};
  record.kind = trace::Kind::peer;
  record.begin = trace::now();
  record.peer = peer;
  record.address = name;
  add(record);
}

void Trace::end_looks(Looks& looks, bool found) {
  // One that found something at once is no wait here, and is one where messages take longer.
  if (looks.number > 1 || looks.end - looks.begin > nothing_between || (found && unreleased_)) {
    trace::Record record{};
    record.kind = trace::Kind::call;
    record.call = trace::Call::wait;
    record.begin = looks.begin;
    record.end = looks.end;
    record.site = looks.site;
    add(record);
    write_some();
  }
  looks.number = 0;
}

Trace::Look::Look(Trace& trace, const void* site) : trace_(trace.on() ? &trace : nullptr), site_(site) {
  if (trace_ == nullptr) return;
  Looks& looks = looks_;
  if (looks.number != 0 && worked() - looks.worked > nothing_between) trace_->end_looks(looks, false);
  if (++looks.number != 1) return;
  looks.begin = trace::now();
  looks.site = 0;
}

Trace::Look::~Look() {
  if (trace_ == nullptr) return;
  Looks& looks = looks_;
  looks.end = trace::now();
  if (looks.site == 0 &&
      (looks.number > 1 || looks.end - looks.begin > nothing_between || (found_ && trace_->unreleased_)))
    looks.site = trace_->site_of_call(site_); // not for one that is no wait: it costs more than the look
  if (found_) trace_->end_looks(looks, true);
  looks.worked = worked();
}

} // namespace parc::client
