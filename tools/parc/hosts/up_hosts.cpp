// SPDX-License-Identifier: BSD-3-Clause
#include "tools/parc/hosts/up_hosts.hpp"

#include "jobs/hostfile.hpp"
#include "system/runtime_dir.hpp"

#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace parc::tools {
namespace {

// None: no kernel runs there.
std::optional<RuntimeDir> where(const std::string& runtime_dir) {
  const auto dir = find_runtime_dir(runtime_dir);
  if (!dir) return {};
  const auto process = running_kernel(dir.value());
  return process && process.value() ? std::optional(dir.value()) : std::nullopt;
}

// Those who change it take turns.
Result<Fd> lock(const RuntimeDir& dir) {
  Fd file(open(dir.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file || flock(file.get(), LOCK_EX) != 0) return system_error("cannot lock {}", dir.path());
  return file;
}

// Whoever reads it at this moment reads the old one or the new one.
Result<void> write(const RuntimeDir& dir, const std::vector<HostSlots>& hosts) {
  const std::string path = dir.up_hosts();
  if (hosts.empty()) {
    unlink(path.c_str());
    return success();
  }
  std::string text;
  for (const HostSlots& host : hosts) text += to_line(host);
  const std::string fresh = path + ".new";
  const Fd file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file || ::write(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size()) ||
      std::rename(fresh.c_str(), path.c_str()) != 0)
    return system_error("cannot write {}", path);
  return success();
}

std::vector<HostSlots> read(const RuntimeDir& dir) {
  auto hosts = read_hostfile(dir.up_hosts());
  return hosts ? std::move(hosts).value() : std::vector<HostSlots>();
}

} // namespace

std::vector<HostSlots> up_hosts(const std::string& runtime_dir) {
  const auto dir = where(runtime_dir);
  return dir ? read(*dir) : std::vector<HostSlots>();
}

Result<void> add_up_hosts(const std::string& runtime_dir, std::span<const HostSlots> hosts) {
  const auto dir = where(runtime_dir);
  if (!dir) return success();
  PARC_TRY(turn, lock(*dir));
  (void)turn; // until this is over
  std::vector<HostSlots> all = read(*dir);
  for (const HostSlots& host : hosts) {
    const auto known = std::ranges::find(all, host.name, &HostSlots::name);
    if (known == all.end())
      all.push_back(host);
    else
      *known = host;
  }
  return write(*dir, all);
}

Result<void> remove_up_hosts(const std::string& runtime_dir, std::span<const std::string> names) {
  const auto dir = where(runtime_dir);
  if (!dir) return success();
  PARC_TRY(turn, lock(*dir));
  (void)turn; // until this is over
  std::vector<HostSlots> all = read(*dir);
  const auto gone = std::erase_if(
      all, [&](const HostSlots& host) { return std::ranges::find(names, host.name) != names.end(); });
  return gone != 0 ? write(*dir, all) : success();
}

} // namespace parc::tools
