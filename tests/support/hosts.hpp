// SPDX-License-Identifier: BSD-3-Clause
// Several hosts on loopback: a kernel each with its own name, port and runtime directory, one key, one
// configuration. Nothing of the user's who runs the tests is read or written.
#pragma once

#include "system/fd.hpp"
#include "tests/support/process.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace parc::test {

class Hosts;

// Connects to a Unix socket, as programs and tools do to their kernel.
Fd visit(const std::string& path);

class Host {
public:
  Host(const Hosts& all, std::string name, std::uint16_t port);
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host();

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string runtime_dir() const;
  [[nodiscard]] Process& kernel() { return *kernel_; }
  void start(); // waits until it answers; throws with what it said when it does not
  [[nodiscard]] std::string log() const;

private:
  // parc run starts a kernel where none runs: also where a test has just killed ours, and that one would not
  // die with the test.
  void kill_strangers_kernel();

  const Hosts& all_;
  std::string name_;
  std::uint16_t port_;
  std::unique_ptr<Process> kernel_;
};

// How programs of one host exchange messages: the values of `local`, and "cross": direct, but long messages
// from and to where the programs have them.
inline constexpr std::array neighbours_ways{"direct", "cross", "signal", "wait", "kernel"};
[[nodiscard]] inline std::vector<std::string> options_of(const std::string& way) { // of a kernel
  if (way == "cross") return {"--cross-memory", "on"};
  return {"--local", way, "--cross-memory", "off"};
}

class Hosts {
public:
  // Named a, b, c ..., behind z host26 ...; their kernels run. `options` are given to each; `more_hosts` are
  // lines for [hosts]; `way` gives the port by which the kernel on another is reached.
  using Way = std::function<std::uint16_t(std::uint16_t port)>;
  explicit Hosts(
      std::size_t count, std::vector<std::string> options = {}, const std::string& more_hosts = {},
      const Way& way = [](std::uint16_t port) { return port; });
  Hosts(const Hosts&) = delete;
  Hosts& operator=(const Hosts&) = delete;
  ~Hosts();

  Host& operator[](std::size_t index) { return *hosts_[index]; }
  [[nodiscard]] const std::string& directory() const { return directory_; }
  [[nodiscard]] const std::vector<std::string>& options() const { return options_; }

  // WORDS, with this environment().
  [[nodiscard]] Process start(std::vector<std::string> words);
  // parc COMMAND --runtime-dir (of a host, the first by default) WORDS...
  [[nodiscard]] Process parc(const std::string& command, std::vector<std::string> words, std::size_t on = 0);
  [[nodiscard]] nlohmann::json status(std::size_t on = 0); // what parc status --json says
  // parcd WORDS..., beside those that run.
  [[nodiscard]] Process parcd(std::vector<std::string> words);
  [[nodiscard]] Process run(std::vector<std::string> words, std::size_t on = 0) {
    return parc("run", std::move(words), on);
  }

  [[nodiscard]] std::string logs() const; // of all kernels, for a test that failed

  // Processes of jobs that any of these kernels started, as the environment says that they were given.
  [[nodiscard]] std::vector<pid_t> ranks() const;
  // None of them calculates: each sleeps in a system call.
  [[nodiscard]] bool ranks_sleep() const;

  // Environment that keeps a process away from the user's own.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> environment() const;

private:
  std::string directory_;
  std::vector<std::string> options_;
  std::vector<std::unique_ptr<Host>> hosts_;
  unsigned processes_ = 0;
};

std::ostream& operator<<(std::ostream& to, const Hosts& hosts); // their logs

} // namespace parc::test
