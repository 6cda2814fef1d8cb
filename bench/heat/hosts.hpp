// SPDX-License-Identifier: BSD-3-Clause
// The hosts that the demo measures on: those of an emulation (the demo runs inside `wanlink run`), or, where
// none can be made, this machine under the names of two, on loopback.
#pragma once

#include "bench/heat/process.hpp"
#include "system/error.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace parc::heat::demo {

// A program that was built beside the demo.
[[nodiscard]] std::string program(const std::string& name);

struct RelayCounters {
  std::uint64_t packets = 0;
  std::uint64_t late = 0; // delivered more than 1 ms after they were due
  double cpu_seconds = 0;

  // More than one packet in a hundred: the figures taken meanwhile are not those of the link.
  [[nodiscard]] static bool was_late(const RelayCounters& before, const RelayCounters& after);
};

// A directory for what kernels on loopback keep. It has a fixed name, so that what a killed demo left is
// removed by the next, and is locked, so that no second demo removes it meanwhile.
class LoopbackDirectory {
public:
  [[nodiscard]] static Result<LoopbackDirectory> make(const std::string& path);
  LoopbackDirectory(LoopbackDirectory&&) = default;
  LoopbackDirectory& operator=(LoopbackDirectory&&) = default;
  ~LoopbackDirectory();
  [[nodiscard]] const std::string& path() const { return path_; }

private:
  LoopbackDirectory() = default;
  std::string path_;
  Fd lock_; // the directory itself
};

class Hosts {
public:
  [[nodiscard]] static Result<Hosts> of_emulation(std::size_t count);
  [[nodiscard]] static Result<Hosts> on_loopback(std::size_t count, const std::string& directory);

  [[nodiscard]] std::size_t count() const { return names_.size(); }
  [[nodiscard]] bool emulated() const { return !directory_; }

  // The command as it is to be started to run on that host.
  [[nodiscard]] Command on(std::size_t host, const Command& command) const;
  [[nodiscard]] Command kernel(std::size_t host) const; // parcd with what it needs to reach the others
  [[nodiscard]] std::string places() const;             // heat --places
  [[nodiscard]] std::string slots() const;              // parc run --hosts: one rank a host

  // Nothing where there is no emulation.
  [[nodiscard]] Result<std::optional<RelayCounters>> relay() const;

private:
  Hosts() = default;

  std::vector<std::string> names_;
  std::vector<std::string> places_;
  std::vector<int> kernel_ports_; // on loopback only, as the next
  std::optional<LoopbackDirectory> directory_;
};

// A kernel on every host, for as long as the object lives.
class Kernels {
public:
  struct Settings {
    std::optional<bool> realtime = {}; // empty: where it is permitted
    int socket_buffer = 0;             // bytes; 0: the system's
    Command options = {};              // more of parcd's
  };
  // Returns when all answer.
  [[nodiscard]] static Result<Kernels> start(const Hosts& hosts, const Settings& settings);
  void stop();
  Kernels(Kernels&&) = default;
  Kernels& operator=(Kernels&&) = default;
  ~Kernels() { stop(); }

  [[nodiscard]] pid_t process(std::size_t host) const { return kernels_[host].id(); }

private:
  Kernels() = default;
  std::vector<Child> kernels_;
};

} // namespace parc::heat::demo
