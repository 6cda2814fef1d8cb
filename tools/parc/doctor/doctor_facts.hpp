// SPDX-License-Identifier: BSD-3-Clause
// What parc doctor looks at on this host, each fact read once. Files are looked for below a root, so that
// tests lay out a /proc, /sys and /etc of their own; what a file does not say is left out.
#pragma once

#include "system/observe/counters.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>
#include <vector>

namespace parc::tools::diagnosis {

inline constexpr std::uint64_t unlimited = UINT64_MAX;

class Root {
public:
  explicit Root(std::string path = {}) : path_(std::move(path)) {}
  [[nodiscard]] std::string of(const std::string& path) const { return path_ + path; }
  [[nodiscard]] bool has(const std::string& path) const;
  [[nodiscard]] std::string text(const std::string& path) const; // empty: not there
  // The words of its first line.
  [[nodiscard]] std::vector<std::string> words(const std::string& path) const;
  [[nodiscard]] std::optional<std::uint64_t> number(const std::string& path) const;
  [[nodiscard]] std::string link(const std::string& path) const;
  [[nodiscard]] std::vector<std::string> names_in(const std::string& path) const; // sorted

private:
  std::string path_;
};

struct User {
  uid_t id = 0;
  std::string name;
  [[nodiscard]] bool is_root() const { return id == 0; }
};
[[nodiscard]] User this_user();

struct Limit {
  std::uint64_t soft = unlimited, hard = unlimited;
};

// Of a process: "self", or the number of the kernel that runs.
struct ProcessFacts {
  bool known = false; // it can be seen at all
  char state = '?';   // as ps shows it
  Limit files, processes, address_space, realtime;
  std::uint64_t files_open = 0;
  std::vector<unsigned> cores;
  std::string cgroup; // the paths of all its hierarchies
  std::optional<std::uint64_t> tasks_max, tasks;
  std::optional<double> core_quota; // that its control group gets of all cores
  std::string ipc_namespace;
  bool in_user_namespace = false;
  bool replaced = false; // its program's file was
};
[[nodiscard]] ProcessFacts read_process(const Root& root, const std::string& process);

struct LimitFacts {
  std::optional<std::uint64_t> shmmni, shmmax, shmall;
  std::uint64_t segments = 0, segment_bytes = 0; // of everybody
  std::uint64_t page = 4096, memory = 0;         // bytes
  std::uint64_t tasks_of_user = 0;               // processes and threads
  std::size_t cores_online = 1;
};
[[nodiscard]] LimitFacts read_limits(const Root& root, const User& user);

struct TcpFacts {
  std::optional<std::uint64_t> rmem_max, wmem_max;
  std::optional<std::uint64_t> tcp_rmem, tcp_wmem; // the largest that a socket gets by itself
  std::string congestion;
  std::vector<std::string> allowed;   // to everybody
  std::vector<std::string> available; // to root
  std::optional<bool> slow_start_after_idle, window_scaling;
};
[[nodiscard]] TcpFacts read_tcp(const Root& root);

// What TCP is looked at for.
struct Path {
  std::string to; // a host; empty: none is known, and this is an example
  std::uint64_t rtt_us = 50'000;
};

struct SessionFacts {
  bool systemd = false;                        // it runs this system
  bool linger = false;                         // of this user
  std::map<std::string, std::string> logind;   // [Login], as its files say
  std::map<std::string, std::string> defaults; // what its main file names as built in
  std::string hidepid;                         // of /proc
  std::optional<std::uint64_t> ptrace_scope;   // of Yama
  int cross_memory_error = 0;                  // of a process that reads its child's memory
  [[nodiscard]] std::string setting(const std::string& key, const std::string& otherwise) const;
};
[[nodiscard]] SessionFacts read_session(const Root& root, const User& user);
// errno of a trial, or 0.
[[nodiscard]] int try_cross_memory();

// As parcd -T prints them: those of the kernel that runs, or that would run.
struct Settings {
  struct Address {
    std::string address;
    std::uint16_t port = 0;
  };
  std::string name, key_file, advertise, congestion = "auto", realtime = "auto", cross_memory = "auto";
  std::vector<std::string> listen;
  std::uint64_t send_buffer = 0, receive_buffer = 0, connect_timeout_s = 5;
  std::map<std::string, Address> hosts; // that are dialed
  std::map<std::string, std::string> prefixes;
};
[[nodiscard]] Result<Settings> parse_settings(const std::string& toml);

struct KeyFacts {
  std::string path;
  bool there = false, is_file = false;
  bool of_relay = false; // of a host that only relays
  uid_t owner = 0;
  unsigned mode = 0;
  int error = 0; // why it could not be looked at
};
[[nodiscard]] KeyFacts read_key_facts(const std::string& path);

struct KernelFacts {
  std::string runtime_dir;         // empty: there is none, or it was refused
  std::string runtime_dir_refused; // a sentence
  std::string lock_refused;        // a sentence
  bool runs = false;               // somebody holds the lock
  pid_t process = 0;               // 0: it is not in our process namespace
  bool answers = false;
  std::optional<CounterSnapshot> counters;
  std::string parc_version; // ours
};
[[nodiscard]] KernelFacts read_kernel(const std::string& runtime_dir);

struct SettingsFacts {
  std::optional<Settings> settings;
  std::string refused;      // by parcd -T
  std::string cannot_start; // by parcd -t
};
// By running parcd as the kernel `process` was run, or as one would be (0).
[[nodiscard]] SettingsFacts read_settings(const std::string& runtime_dir, pid_t process);

} // namespace parc::tools::diagnosis
