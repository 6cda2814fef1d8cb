// SPDX-License-Identifier: BSD-3-Clause
// The runtime directory: where a kernel and the programs and tools of its host meet. Both sides find it by
// the same rules, in this order:
//   1. --runtime-dir                 taken as it is
//   2. PARC_RUNTIME_DIR              taken as it is
//   3. $XDG_RUNTIME_DIR/parc         if XDG_RUNTIME_DIR is a directory of ours
//   4. /tmp/parc-UID
// In 3 and 4, inside a batch job, a subdirectory job-ID of it, so that jobs that share a host do not share a
// kernel. Invariant: a RuntimeDir has been checked: a directory of ours, mode 0700, on a local file system,
// with a path short enough for a socket in it.
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace parc {

class RuntimeDir {
public:
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string lock() const { return path_ + "/lock"; }
  [[nodiscard]] std::string socket() const { return path_ + "/kernel.sock"; }
  // Where kernels that come through a tunnel are heard, and the near end of such a tunnel from here: of this
  // process alone, as another may have the directory while this one's jobs end.
  [[nodiscard]] std::string link_socket() const { return path_ + "/link.sock"; }
  [[nodiscard]] std::string tunnel_socket(unsigned number) const;
  [[nodiscard]] std::string counters() const { return path_ + "/counters"; }
  [[nodiscard]] std::string pid_file() const { return path_ + "/kernel.pid"; }
  // Files of a job of MPI on this host.
  [[nodiscard]] std::string job_directory(std::uint64_t job) const;
  [[nodiscard]] std::string up_hosts() const { return path_ + "/up-hosts"; } // a hostfile, by parc up
  // Whether it is a batch job's subdirectory, where nobody looks any more when its kernel has ended.
  [[nodiscard]] bool of_batch_job() const { return of_batch_job_; }

private:
  friend Result<RuntimeDir> make_runtime_dir(std::string_view flag);
  friend Result<RuntimeDir> find_runtime_dir(std::string_view flag);
  friend std::vector<RuntimeDir> find_batch_job_dirs(std::string_view flag);
  RuntimeDir(std::string path, bool of_batch_job) : path_(std::move(path)), of_batch_job_(of_batch_job) {}
  std::string path_;
  bool of_batch_job_;
};

// The runtime directory's path by these rules, unchecked: it may be missing or unfit. `flag`, here and below:
// --runtime-dir, or empty.
[[nodiscard]] std::string runtime_dir_path(std::string_view flag = {});

// Makes the directory where it is missing, and in a batch job its parent, and checks both; for parcd. Parents
// above that must be there.
[[nodiscard]] Result<RuntimeDir> make_runtime_dir(std::string_view flag = {});

// Makes and checks a directory again that was removed meanwhile, with the parent of a batch job's.
[[nodiscard]] Result<void> make_again(const RuntimeDir& dir);

// Whether the open `file` is still the one at `path`.
[[nodiscard]] bool is_at(const Fd& file, const std::string& path);

// Finds and checks the directory, and makes nothing; for programs and tools. ENOENT: it is missing, so no
// kernel runs.
[[nodiscard]] Result<RuntimeDir> find_runtime_dir(std::string_view flag = {});

// The directories of batch jobs that had a kernel on this host (rules 3 and 4); none under rules 1 and 2.
[[nodiscard]] std::vector<RuntimeDir> find_batch_job_dirs(std::string_view flag = {});

// What a kernel has made there and is there now, but the lock.
[[nodiscard]] std::vector<std::string> files_of_kernel(const RuntimeDir& dir);

// Removes what jobs have left there that a kernel was killed with. The caller holds its lock.
void remove_job_directories(const RuntimeDir& dir);

// Removes the directory, with all that a kernel leaves in it. The caller holds its lock, which goes last.
void remove_runtime_dir(const RuntimeDir& dir);

// Takes the directory's lock, open as `file`. It is held until this process closes any descriptor of that
// file (fcntl(2)), not only this one. False: another process has it, or errno says what is wrong.
[[nodiscard]] bool try_lock(const Fd& file);

// The process that holds the directory's lock, a kernel that lives; 0: it is in another PID namespace; none:
// no kernel runs. Disturbs nobody, but must not be asked by the holder itself: closing the file here would
// let go of its lock (fcntl(2)).
[[nodiscard]] Result<std::optional<pid_t>> running_kernel(const RuntimeDir& dir);

} // namespace parc
