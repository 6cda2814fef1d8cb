// SPDX-License-Identifier: BSD-3-Clause
// Messages between kernels: spawning, output, exit status, departures. They travel as ordinary messages of
// the reserved context of job 0, each a JSON object of bounded length, optionally followed by raw bytes
// (program output).
//
// Invariants: at most max_unsent bytes wait for one link, callers ask room() before they read more output;
// what a peer sends is parsed as untrusted input.
#pragma once

#include "protocol/engine.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace parc::daemon {

class Kernel;

class Control {
public:
  static constexpr std::size_t max_message = 4u << 20; // a job's arguments and environment fit
  using Receive = std::function<void(std::uint32_t link, nlohmann::json message, std::string bytes)>;

  Control(Kernel& kernel, Receive receive);
  ~Control();

  // Queues a message for the kernel at the other end. In order per link; lost when the link breaks (Jobs
  // hears of that).
  void send(std::uint32_t link, const nlohmann::json& message, std::string bytes = {});

  // From the kernel's Listener.
  void begun(std::uint64_t cookie, const protocol::Outcome& outcome);
  void finished(std::uint64_t cookie, const protocol::Outcome& outcome);
  void link_ready(std::uint32_t link); // posts reads for it

private:
  struct Read;
  struct Write;
  void post(Read& read);

  Kernel& kernel_;
  Receive receive_;
  std::vector<std::unique_ptr<Read>> reads_;
  std::map<std::uint64_t, std::unique_ptr<Write>> writes_;
  std::uint64_t last_write_ = 0;
};

} // namespace parc::daemon
