// SPDX-License-Identifier: BSD-3-Clause
// Facts of this host that stand in files.
#include "tools/parc/doctor/doctor_facts.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <pwd.h>
#include <sstream>
#include <sys/stat.h>
#include <unistd.h>

namespace parc::tools::diagnosis {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> words_in(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(std::move(word));
  return words;
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end == text.data()) return {};
  return value;
}

bool is_number(const std::string& name) {
  return !name.empty() && name.find_first_not_of("0123456789") == name.npos;
}

// A line of /proc/PID/limits; its title has a width of its own.
Limit limit_in(const std::string& limits, std::string_view title) {
  std::istringstream lines(limits);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(title)) continue;
    const auto values = words_in(line.substr(title.size()));
    Limit limit;
    if (values.size() >= 2) {
      limit.soft = number_of(values[0]).value_or(unlimited);
      limit.hard = number_of(values[1]).value_or(unlimited);
    }
    return limit;
  }
  return {};
}

// What stands behind "Key:" in a status file.
std::string value_in(const std::string& status, std::string_view key) {
  std::istringstream lines(status);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(key) && line.size() > key.size() && line[key.size()] == ':') {
      const auto begin = line.find_first_not_of(" \t", key.size() + 1);
      return begin == line.npos ? std::string() : line.substr(begin);
    }
  return {};
}

// "0-3,8" as the system writes sets of cores.
std::vector<unsigned> cores_in(const std::string& list) {
  std::vector<unsigned> cores;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto dash = part.find('-');
    const auto first = number_of(part), last = dash == part.npos ? first : number_of(part.substr(dash + 1));
    constexpr std::uint64_t most = 65536;
    for (auto core = first.value_or(1); first && last && core <= std::min(*last, most); ++core)
      cores.push_back(static_cast<unsigned>(core));
  }
  return cores;
}

// A directory of a control group and those above it, up to its hierarchy's.
std::vector<std::string> upwards(const std::string& hierarchy, std::string path) {
  std::vector<std::string> all;
  while (path.size() > 1) {
    all.push_back(hierarchy + path);
    path.erase(path.rfind('/'));
  }
  all.push_back(hierarchy);
  return all;
}

struct ControlGroup {
  std::string hierarchy, path;
};

// Of the one hierarchy, and of that of a controller of the first version.
std::vector<ControlGroup> groups_of(const std::string& cgroup, std::string_view controller) {
  std::vector<ControlGroup> groups;
  std::istringstream lines(cgroup);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (first == line.npos || second == line.npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string path = line.substr(second + 1);
    if (controllers.empty())
      groups.push_back({"/sys/fs/cgroup", path});
    else if (("," + controllers + ",").find("," + std::string(controller) + ",") != std::string::npos)
      groups.push_back({"/sys/fs/cgroup/" + controllers, path});
  }
  return groups;
}

// The control group on the way up that allows fewest more.
void read_tasks(const Root& root, ProcessFacts& facts) {
  for (const ControlGroup& group : groups_of(facts.cgroup, "pids"))
    for (const std::string& path : upwards(group.hierarchy, group.path)) {
      const auto most = root.number(path + "/pids.max"), now = root.number(path + "/pids.current");
      if (!most || !now) continue;
      const auto room = [](std::uint64_t max, std::uint64_t used) { return max - std::min(max, used); };
      if (facts.tasks_max && room(*facts.tasks_max, *facts.tasks) <= room(*most, *now)) continue;
      facts.tasks_max = most;
      facts.tasks = now;
    }
}

std::optional<double> quota_at(const Root& root, const std::string& path) {
  const auto both = root.words(path + "/cpu.max"); // "max 100000"
  const auto quota = both.size() == 2 ? number_of(both[0]) : root.number(path + "/cpu.cfs_quota_us");
  const auto period = both.size() == 2 ? number_of(both[1]) : root.number(path + "/cpu.cfs_period_us");
  if (!quota || !period || *period == 0) return {};
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

void read_quota(const Root& root, ProcessFacts& facts) {
  for (const ControlGroup& group : groups_of(facts.cgroup, "cpu"))
    for (const std::string& path : upwards(group.hierarchy, group.path))
      if (const auto quota = quota_at(root, path))
        facts.core_quota = std::min(facts.core_quota.value_or(*quota), *quota);
}

void read_table_of_segments(const Root& root, LimitFacts& facts) {
  std::istringstream lines(root.text("/proc/sysvipc/shm"));
  std::string line;
  std::getline(lines, line); // the columns' names
  while (std::getline(lines, line)) {
    const auto columns = words_in(line); // key, id, mode, bytes ...
    if (columns.size() < 4) continue;
    ++facts.segments;
    facts.segment_bytes += number_of(columns[3]).value_or(0);
  }
}

std::uint64_t tasks_of(const Root& root, uid_t user) {
  std::uint64_t tasks = 0;
  for (const std::string& name : root.names_in("/proc")) {
    if (!is_number(name)) continue;
    const std::string status = root.text("/proc/" + name + "/status");
    if (number_of(value_in(status, "Uid")) == user)
      tasks += number_of(value_in(status, "Threads")).value_or(1);
  }
  return tasks;
}

} // namespace

bool Root::has(const std::string& path) const {
  std::error_code ignored;
  return fs::exists(of(path), ignored);
}

std::string Root::text(const std::string& path) const {
  std::ostringstream text;
  if (std::ifstream file(of(path), std::ios::binary); file) text << file.rdbuf();
  return text.str();
}

std::vector<std::string> Root::words(const std::string& path) const {
  const std::string all = text(path);
  return words_in(all.substr(0, all.find('\n')));
}

std::optional<std::uint64_t> Root::number(const std::string& path) const {
  const auto first = words(path);
  return first.empty() ? std::nullopt : number_of(first[0]);
}

std::string Root::link(const std::string& path) const {
  std::error_code ignored;
  return fs::read_symlink(of(path), ignored).string();
}

std::vector<std::string> Root::names_in(const std::string& path) const {
  std::error_code failure;
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(of(path), failure))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

User this_user() {
  const uid_t id = geteuid();
  const passwd* const entry = getpwuid(id);
  return {.id = id, .name = entry != nullptr ? entry->pw_name : std::to_string(id)};
}

ProcessFacts read_process(const Root& root, const std::string& process) {
  const std::string proc = "/proc/" + process;
  ProcessFacts facts;
  const std::string status = root.text(proc + "/status");
  if (status.empty()) return facts;
  facts.known = true;
  if (const std::string state = value_in(status, "State"); !state.empty()) facts.state = state[0];
  const std::string limits = root.text(proc + "/limits");
  facts.files = limit_in(limits, "Max open files");
  facts.processes = limit_in(limits, "Max processes");
  facts.address_space = limit_in(limits, "Max address space");
  facts.realtime = limit_in(limits, "Max realtime priority");
  facts.files_open = root.names_in(proc + "/fd").size();
  facts.cores = cores_in(value_in(status, "Cpus_allowed_list"));
  facts.cgroup = root.text(proc + "/cgroup");
  read_tasks(root, facts);
  read_quota(root, facts);
  facts.ipc_namespace = root.link(proc + "/ns/ipc");
  const auto users = root.words(proc + "/uid_map");
  facts.in_user_namespace = users.size() == 3 && !(users[0] == "0" && users[2] == "4294967295");
  facts.replaced = root.link(proc + "/exe").ends_with(" (deleted)");
  return facts;
}

LimitFacts read_limits(const Root& root, const User& user) {
  LimitFacts facts;
  facts.shmmni = root.number("/proc/sys/kernel/shmmni");
  facts.shmmax = root.number("/proc/sys/kernel/shmmax");
  facts.shmall = root.number("/proc/sys/kernel/shmall");
  read_table_of_segments(root, facts);
  facts.page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  facts.memory = number_of(value_in(root.text("/proc/meminfo"), "MemTotal")).value_or(0) << 10;
  facts.tasks_of_user = tasks_of(root, user.id);
  const auto online = cores_in(root.text("/sys/devices/system/cpu/online"));
  facts.cores_online = std::max<std::size_t>(online.size(), 1);
  return facts;
}

TcpFacts read_tcp(const Root& root) {
  const std::string core = "/proc/sys/net/core/", ipv4 = "/proc/sys/net/ipv4/";
  const auto largest = [&](const char* name) -> std::optional<std::uint64_t> {
    const auto three = root.words(ipv4 + name);
    return three.size() == 3 ? number_of(three[2]) : std::nullopt;
  };
  const auto yes = [&](const char* name) -> std::optional<bool> {
    const auto value = root.number(ipv4 + name);
    return value ? std::optional(*value != 0) : std::nullopt;
  };
  TcpFacts facts;
  facts.rmem_max = root.number(core + "rmem_max");
  facts.wmem_max = root.number(core + "wmem_max");
  facts.tcp_rmem = largest("tcp_rmem");
  facts.tcp_wmem = largest("tcp_wmem");
  const auto congestion = root.words(ipv4 + "tcp_congestion_control");
  facts.congestion = congestion.empty() ? std::string() : congestion[0];
  facts.allowed = root.words(ipv4 + "tcp_allowed_congestion_control");
  facts.available = root.words(ipv4 + "tcp_available_congestion_control");
  facts.slow_start_after_idle = yes("tcp_slow_start_after_idle");
  facts.window_scaling = yes("tcp_window_scaling");
  return facts;
}

} // namespace parc::tools::diagnosis
