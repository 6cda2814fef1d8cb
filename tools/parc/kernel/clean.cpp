// SPDX-License-Identifier: BSD-3-Clause
// parc clean: what killed kernels and programs of ours left. Nothing that belongs to a living kernel is
// touched.
#include "shm/leftovers.hpp"
#include "system/fd.hpp"
#include "system/orphans.hpp"
#include "system/runtime_dir.hpp"
#include "tools/parc/kernel/commands.hpp"

#include <array>
#include <cerrno>
#include <fcntl.h>
#include <iostream>
#include <memory>
#include <unistd.h>

namespace parc::tools {
namespace {

int fail(const Error& error) {
  std::cerr << "parc: " << error.text << '\n';
  return status_failure;
}

// The lock stays: see daemon/base/instance.hpp.
void remove_files(const RuntimeDir& dir) {
  remove_job_directories(dir);
  for (const std::string& file : files_of_kernel(dir))
    if (unlink(file.c_str()) == 0) std::cout << "removed " << file << " of a dead kernel\n";
}

// The lock of a dead kernel: while it is held none starts there. One that is just starting has it, or sees
// that it is gone (daemon/base/instance.hpp).
Fd take_lock(const RuntimeDir& dir) {
  Fd file(open(dir.lock().c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC));
  if (file && !try_lock(file)) file.reset();
  return file;
}

void end_processes(const RuntimeDir& dir) {
  if (const unsigned ended = end_orphans(dir); ended != 0)
    std::cout << "ended " << ended << " processes of jobs whose kernel is dead\n";
}

Result<void> clean_directory(const RuntimeDir& dir) {
  if (const Fd lock = take_lock(dir)) {
    end_processes(dir);
    if (!dir.of_batch_job()) remove_files(dir);
    return success();
  }
  PARC_TRY(running, running_kernel(dir));
  // A process that was to die with this kernel's predecessor is left over, too.
  if (running) end_processes(dir);
  return success();
}

void clean_batch_job(const RuntimeDir& dir) {
  const Fd lock = take_lock(dir);
  if (!lock) return;
  end_processes(dir);
  remove_runtime_dir(dir);
  std::cout << "removed " << dir.path() << " of a dead kernel\n";
}

int clean(const std::string& runtime_dir) {
  const auto dir = find_runtime_dir(runtime_dir);
  if (dir) {
    if (auto cleaned = clean_directory(dir.value()); !cleaned) return fail(cleaned.error());
  } else if (dir.error().code != ENOENT) {
    return fail(dir.error());
  }
  for (const RuntimeDir& each : find_batch_job_dirs(runtime_dir)) clean_batch_job(each);
  const auto segments = shm::remove_leftovers();
  if (!segments) return fail(segments.error());
  if (segments.value() != 0) std::cout << "removed " << segments.value() << " shared-memory segments\n";
  return 0;
}

} // namespace

Command clean_command() {
  const auto directory = std::make_shared<std::string>();
  return {
      .name = "clean",
      .help = "Remove what killed kernels and programs left",
      .options =
          [directory](CLI::App& app) { add_runtime_dir(app, *directory, "The runtime directory to clean"); },
      .run = [directory] { return clean(*directory); }};
}

} // namespace parc::tools
