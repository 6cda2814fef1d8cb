// SPDX-License-Identifier: BSD-3-Clause
// The walk over the system's table of segments.
#include "shm/leftovers.hpp"

#include "shm/segment.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <ctime>
#include <fstream>
#include <ios>
#include <limits>
#include <sys/shm.h>
#include <unistd.h>

namespace parc::shm {
namespace {

constexpr const char* table = "/proc/sysvipc/shm";

struct Row { // in the order of the table's columns
  std::int32_t key = 0;
  int id = 0;
  unsigned mode = 0;
  std::uint64_t bytes = 0;
  pid_t creator = 0, last = 0;
  unsigned attached = 0;
  uid_t user = 0, group = 0, creator_user = 0, creator_group = 0;
  std::int64_t attach_time = 0, detach_time = 0, creation_time = 0;
  std::uint64_t resident = 0, swapped = 0; // bytes
};

std::istream& operator>>(std::istream& in, Row& row) {
  in >> row.key >> row.id >> std::oct >> row.mode >> std::dec >> row.bytes >> row.creator >> row.last >>
      row.attached >> row.user >> row.group >> row.creator_user >> row.creator_group >> row.attach_time >>
      row.detach_time >> row.creation_time >> row.resident >> row.swapped;
  return in;
}

bool is_dead(pid_t process) {
  return kill(process, 0) != 0 && errno == ESRCH; // signal 0: only asks whether there is one
}

bool is_key_of(pid_t process, std::uint32_t key) {
  for (std::uint32_t number = 0; number < keys_of_process; ++number)
    if (key_of(process, number) == key) return true;
  return false;
}

bool is_leftover(const Row& row) {
  return row.user == geteuid() && row.creator_user == geteuid() && (row.mode & 0777) == 0600 &&
         row.creator > 0 && is_key_of(row.creator, static_cast<std::uint32_t>(row.key)) &&
         row.attached == 0 && (row.last == 0 || row.last == row.creator) && row.resident == 0 &&
         row.swapped == 0 && is_dead(row.creator);
}

template <class Condition> Result<unsigned> remove_where(Condition condition) {
  std::ifstream rows(table);
  rows.ignore(std::numeric_limits<std::streamsize>::max(), '\n'); // the columns' names
  if (!rows) return error(EIO, "cannot read the table of shared-memory segments, {}", table);
  unsigned removed = 0;
  for (Row row; rows >> row;)
    if (condition(row) && is_leftover(row) && shmctl(row.id, IPC_RMID, nullptr) == 0) ++removed;
  return removed;
}

} // namespace

Result<unsigned> remove_leftovers(std::chrono::seconds age) {
  return remove_where([&](const Row& row) { return std::time(nullptr) - row.creation_time >= age.count(); });
}

Result<unsigned> remove_leftovers_of(const std::vector<pid_t>& creators) {
  return remove_where(
      [&](const Row& row) { return std::ranges::find(creators, row.creator) != creators.end(); });
}

} // namespace parc::shm
