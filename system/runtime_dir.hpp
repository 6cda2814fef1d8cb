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
  [[nodiscard]] std::string counters() const { return path_ + "/counters"; }
  [[nodiscard]] std::string pid_file() const { return path_ + "/kernel.pid"; }
  // The subdirectory of a batch job: when its kernel has ended nobody looks there any more.
  [[nodiscard]] bool of_batch_job() const { return of_batch_job_; }

private:
  friend Result<RuntimeDir> make_runtime_dir(std::string_view flag);
  friend Result<RuntimeDir> find_runtime_dir(std::string_view flag);
  friend std::vector<RuntimeDir> find_batch_job_dirs(std::string_view flag);
  RuntimeDir(std::string path, bool of_batch_job) : path_(std::move(path)), of_batch_job_(of_batch_job) {}
  std::string path_;
  bool of_batch_job_;
};

// Where it is by these rules; whether it is there and fit is not looked at. `flag` is --runtime-dir or empty.
[[nodiscard]] std::string runtime_dir_path(std::string_view flag = {});

// For parcd: makes what is missing of the last two components, then checks.
[[nodiscard]] Result<RuntimeDir> make_runtime_dir(std::string_view flag = {});

// The same for one that was removed meanwhile, with the directory of all jobs where it is of a batch job.
[[nodiscard]] Result<void> make_again(const RuntimeDir& dir);

// Whether that file is still at this path.
[[nodiscard]] bool is_at(const Fd& file, const std::string& path);

// For programs and tools: makes nothing. A missing directory means that no kernel runs.
[[nodiscard]] Result<RuntimeDir> find_runtime_dir(std::string_view flag = {});

// Of all batch jobs that had a kernel on this host, by rule 3 or 4; none where 1 or 2 says where to look.
[[nodiscard]] std::vector<RuntimeDir> find_batch_job_dirs(std::string_view flag = {});

// With all that a kernel leaves there. The caller holds the directory's lock, which goes last.
void remove_runtime_dir(const RuntimeDir& dir);

// Takes the directory's lock, open as `file`, for as long as any descriptor of it is open in this process.
// False: somebody else has it, or errno says what is wrong.
[[nodiscard]] bool try_lock(const Fd& file);

// The process that holds the directory's lock: a kernel that lives; 0: in another PID namespace. Disturbs
// nothing and may be asked by anybody who may read the directory, but for the holder itself: closing the file
// lets go of its lock (fcntl(2)).
[[nodiscard]] Result<std::optional<pid_t>> running_kernel(const RuntimeDir& dir);

} // namespace parc
