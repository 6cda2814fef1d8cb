// SPDX-License-Identifier: BSD-3-Clause
// parc clean: what killed kernels and programs of ours left. Nothing that belongs to a living kernel is
// touched.
#include "shm/leftovers.hpp"
#include "system/orphans.hpp"
#include "system/runtime_dir.hpp"
#include "tools/parc/commands.hpp"

#include <array>
#include <cerrno>
#include <iostream>
#include <unistd.h>

namespace parc::tools {
namespace {

int fail(const Error& error) {
  std::cerr << "parc: " << error.text << '\n';
  return status_failure;
}

// The lock stays: see daemon/instance.hpp.
void remove_files(const RuntimeDir& dir) {
  const std::array<std::string, 4> files{dir.socket(), dir.pid_file(), dir.counters(),
                                         dir.counters() + ".new"};
  for (const std::string& file : files)
    if (unlink(file.c_str()) == 0) std::cout << "removed " << file << " of a dead kernel\n";
}

Result<void> clean_directory(const RuntimeDir& dir) {
  PARC_TRY(running, running_kernel(dir));
  // A process that was to die with this kernel's predecessor is left over, whether a kernel runs or not.
  if (const unsigned ended = end_orphans(dir, running.value_or(0)); ended != 0)
    std::cout << "ended " << ended << " processes of jobs whose kernel is dead\n";
  if (!running) remove_files(dir);
  return success();
}

} // namespace

int clean(const std::string& runtime_dir) {
  const auto dir = find_runtime_dir(runtime_dir);
  if (dir) {
    if (auto cleaned = clean_directory(dir.value()); !cleaned) return fail(cleaned.error());
  } else if (dir.error().code != ENOENT) {
    return fail(dir.error());
  }
  const auto segments = shm::remove_leftovers();
  if (!segments) return fail(segments.error());
  if (segments.value() != 0) std::cout << "removed " << segments.value() << " shared-memory segments\n";
  return 0;
}

} // namespace parc::tools
