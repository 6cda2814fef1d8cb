// SPDX-License-Identifier: BSD-3-Clause
// Finding and checking the runtime directory. The checks are made on an open descriptor, never following a
// link in the last component: /tmp is shared, and another user may have put something there first.
#include "system/runtime_dir.hpp"

#include "system/environment.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <vector>

namespace parc {
namespace {

constexpr std::string_view batch_job_prefix = "job-";

// The directories to make, outermost first; the last is the runtime directory.
using Candidate = std::vector<std::string>;

std::string_view environment(const char* variable) {
  const char* value = secure_getenv(variable);
  return value ? value : std::string_view{};
}

bool is_own_directory(std::string_view path) {
  struct stat status {};
  return stat(std::string(path).c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid();
}

// "job-ID" inside a batch job, else empty. Identifiers hold dots and brackets ("12[3].server"); what a path
// should not hold becomes an underscore.
std::string batch_job() {
  for (const char* variable : {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"}) {
    const std::string_view id = environment(variable);
    if (id.empty()) continue;
    std::string name(batch_job_prefix);
    for (const char c : id.substr(0, 64)) {
      const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         c == '.' || c == '-' || c == '_';
      name += plain ? c : '_';
    }
    return name;
  }
  return {};
}

// A chosen directory keeps its meaning when the process changes its working directory.
Candidate chosen_directory(std::string_view path) {
  std::error_code failure; // only where the working directory is gone: then the path stays as it was given
  auto absolute = std::filesystem::absolute(path, failure).lexically_normal().string();
  while (absolute.size() > 1 && absolute.back() == '/') absolute.pop_back();
  return {failure ? std::string(path) : absolute};
}

bool is_chosen(std::string_view flag) {
  return !flag.empty() || !environment(env_runtime_dir).empty();
}

// By rule 3 or 4, outside of batch jobs.
std::string standard_directory() {
  const auto session = environment("XDG_RUNTIME_DIR");
  return session.starts_with('/') && is_own_directory(session) ? fmt::format("{}/parc", session)
                                                               : fmt::format("/tmp/parc-{}", geteuid());
}

Candidate resolve(std::string_view flag) {
  if (is_chosen(flag)) return chosen_directory(flag.empty() ? environment(env_runtime_dir) : flag);
  Candidate candidate{standard_directory()};
  if (const auto job = batch_job(); !job.empty()) candidate.push_back(candidate.back() + "/" + job);
  return candidate;
}

// File systems that other hosts see too: sockets, locks and shared mappings do not work there as they must.
const char* network_file_system(unsigned long magic) {
  switch (magic) {
  case 0x6969: return "NFS";
  case 0x517B:
  case 0xFE534D42:
  case 0xFF534D42: return "SMB";
  case 0x5346414F:
  case 0x6B414653: return "AFS";
  case 0x73757245: return "Coda";
  case 0x0BD00BD0: return "Lustre";
  case 0x47504653: return "GPFS";
  case 0x00C36400: return "Ceph";
  case 0x19830326: return "BeeGFS";
  case 0x7461636F: return "OCFS2";
  case 0x01161970: return "GFS2";
  case 0xAAD7AAEA: return "PanFS";
  case 0x20030528: return "OrangeFS";
  case 0x01021997: return "9P";
  default: return nullptr;
  }
}

Result<void> check_directory(const std::string& path) {
  const Fd dir(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir) {
    if (errno == ENOTDIR || errno == ELOOP)
      return error(ENOTDIR,
                   "runtime directory {} is a file or a symbolic link, not a directory; "
                   "remove it or choose another with --runtime-dir",
                   path);
    if (errno == EACCES)
      return error(EACCES, "runtime directory {} belongs to somebody else; choose another with --runtime-dir",
                   path);
    return system_error("cannot open runtime directory {}", path);
  }
  struct stat status {};
  struct statfs file_system {};
  if (fstat(dir.get(), &status) != 0 || fstatfs(dir.get(), &file_system) != 0)
    return system_error("cannot examine runtime directory {}", path);
  if (status.st_uid != geteuid())
    return error(
        EPERM,
        "runtime directory {} belongs to user {}, not to us (user {}); choose another with --runtime-dir",
        path, status.st_uid, geteuid());
  if ((status.st_mode & 0777) != 0700)
    return error(
        EPERM,
        "runtime directory {} has mode {:04o}, and must have 0700 so that nobody else reaches it; "
        "choose another with --runtime-dir, or, where it is parc's alone, correct it with: chmod 700 {}",
        path, status.st_mode & 0777, path);
  if (const char* kind = network_file_system(static_cast<unsigned long>(file_system.f_type)))
    return error(EXDEV,
                 "runtime directory {} lies on a network file system ({}), which other hosts see too; "
                 "choose a local one with --runtime-dir, such as /tmp/parc-{}",
                 path, kind, geteuid());
  return success();
}

constexpr std::string_view tunnel_prefix = "parc-ssh-", job_prefix = "parc-mpi-";

// The user may have other things where a kernel meets its programs.
bool is_job_directory(const std::filesystem::directory_entry& entry) {
  const std::string whole = entry.path().filename();
  std::string_view name = whole;
  if (!name.starts_with(job_prefix)) return false;
  name.remove_prefix(job_prefix.size());
  std::error_code failure;
  return name.size() == 16 && name.find_first_not_of("0123456789abcdef") == name.npos &&
         entry.symlink_status(failure).type() == std::filesystem::file_type::directory;
}

Result<void> check_length(const std::string& socket) {
  constexpr std::size_t limit = sizeof(sockaddr_un::sun_path) - 1;
  if (socket.size() <= limit) return success();
  return error(ENAMETOOLONG,
               "{} is {} bytes long, and a socket's path may have {}; choose a shorter --runtime-dir", socket,
               socket.size(), limit);
}

Result<void> make(const Candidate& candidate) {
  for (const auto& path : candidate) {
    if (mkdir(path.c_str(), 0700) == 0)
      (void)chmod(path.c_str(), 0700); // whatever the umask took away
    else if (errno != EEXIST)
      return error(errno, "cannot make runtime directory {}: {}; choose another with --runtime-dir or {}",
                   path, std::strerror(errno), env_runtime_dir);
    PARC_TRY(check_directory(path));
  }
  return success();
}

} // namespace

std::string runtime_dir_path(std::string_view flag) {
  return resolve(flag).back();
}

Result<RuntimeDir> make_runtime_dir(std::string_view flag) {
  const Candidate candidate = resolve(flag);
  RuntimeDir dir(candidate.back(), candidate.size() > 1);
  PARC_TRY(check_length(dir.socket()));
  PARC_TRY(make(candidate));
  return dir;
}

Result<void> make_again(const RuntimeDir& dir) {
  Candidate candidate{dir.path()};
  if (dir.of_batch_job()) candidate.insert(candidate.begin(), dir.path().substr(0, dir.path().rfind('/')));
  return make(candidate);
}

bool is_at(const Fd& file, const std::string& path) {
  struct stat open {
  }, found{};
  return fstat(file.get(), &open) == 0 && lstat(path.c_str(), &found) == 0 && open.st_dev == found.st_dev &&
         open.st_ino == found.st_ino;
}

Result<RuntimeDir> find_runtime_dir(std::string_view flag) {
  const Candidate candidate = resolve(flag);
  RuntimeDir dir(candidate.back(), candidate.size() > 1);
  PARC_TRY(check_length(dir.socket()));
  struct stat status {};
  if (lstat(dir.path().c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR))
    return error(ENOENT, "no parcd runs here (no runtime directory {}): start it with parcd --detach",
                 dir.path());
  PARC_TRY(check_directory(dir.path()));
  return dir;
}

std::vector<RuntimeDir> find_batch_job_dirs(std::string_view flag) {
  std::vector<RuntimeDir> dirs;
  if (is_chosen(flag) || !check_directory(standard_directory())) return dirs;
  std::error_code failure;
  for (std::filesystem::directory_iterator at(standard_directory(), failure), end; !failure && at != end;
       at.increment(failure))
    if (at->path().filename().string().starts_with(batch_job_prefix) && check_directory(at->path().string()))
      dirs.push_back(RuntimeDir(at->path().string(), true));
  return dirs;
}

std::string RuntimeDir::tunnel_socket(unsigned number) const {
  return fmt::format("{}/{}{}-{}", path_, tunnel_prefix, getpid(), number);
}

std::vector<std::string> files_of_kernel(const RuntimeDir& dir) {
  const std::array<std::string, 7> named{dir.socket(),           dir.link_socket(), dir.pid_file(),
                                         dir.counters(),         dir.up_hosts(),    dir.up_hosts() + ".new",
                                         dir.counters() + ".new"};
  std::vector<std::string> files;
  std::error_code failure;
  for (std::filesystem::directory_iterator at(dir.path(), failure), end; !failure && at != end;
       at.increment(failure))
    if ((at->path().filename().string().starts_with(tunnel_prefix) && at->is_socket(failure)) ||
        std::ranges::find(named, at->path().string()) != named.end())
      files.push_back(at->path().string());
  return files;
}

std::string RuntimeDir::job_directory(std::uint64_t job) const {
  return fmt::format("{}/{}{:016x}", path_, job_prefix, job);
}

void remove_job_directories(const RuntimeDir& dir) {
  std::vector<std::filesystem::path> all;
  std::error_code failure;
  for (std::filesystem::directory_iterator at(dir.path(), failure), end; !failure && at != end;
       at.increment(failure))
    if (is_job_directory(*at)) all.push_back(at->path());
  for (const auto& each : all) std::filesystem::remove_all(each, failure);
}

void remove_runtime_dir(const RuntimeDir& dir) {
  remove_job_directories(dir);
  for (const std::string& file : files_of_kernel(dir)) unlink(file.c_str());
  unlink(dir.lock().c_str());
  rmdir(dir.path().c_str());
}

bool try_lock(const Fd& file) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return fcntl(file.get(), F_SETLK, &lock) == 0;
}

Result<std::optional<pid_t>> running_kernel(const RuntimeDir& dir) {
  const Fd file(open(dir.lock().c_str(), O_RDWR | O_CLOEXEC));
  if (!file) {
    if (errno == ENOENT) return std::optional<pid_t>{};
    return system_error("cannot open {}", dir.lock());
  }
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(file.get(), F_GETLK, &lock) != 0)
    return system_error("cannot ask for the lock of {}", dir.lock());
  if (lock.l_type == F_UNLCK) return std::optional<pid_t>{};
  return std::optional<pid_t>{lock.l_pid};
}

} // namespace parc
