// SPDX-License-Identifier: BSD-3-Clause
// Messages between kernels: spawning, output, exit status, departures. They travel as ordinary messages of a
// space of their own, each a JSON object, optionally followed by raw bytes (program output).
//
// Every link has a probe posted; when it has found a message, a read with room for exactly that message
// follows. So a peer takes room for one message, and one that stalls in the middle of it holds up nobody
// else. What a peer sends is parsed as untrusted input. Senders bound what they queue: output by credit of
// its own, the rest by being answers.
#pragma once

#include "daemon/base/cookie.hpp"
#include "daemon/base/loop.hpp"
#include "protocol/engine.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace parc::daemon {

class Control {
public:
  static constexpr std::size_t max_message = 4u << 20; // a job's arguments and environment fit
  using Receive = std::function<void(std::uint32_t link, nlohmann::json message, std::string bytes)>;

  Control(Loop& loop, protocol::Engine& engine, Receive receive); // called at a step's end

  // Once for every link that comes up, with the name of its host.
  void listen(std::uint32_t link, const std::string& host);
  // Queues a message for the kernel at the other end. In order per link; lost when the link breaks (Jobs
  // hears of that).
  void send(std::uint32_t link, const nlohmann::json& message, const std::string& bytes = {});

  // From the kernel's Listener.
  void finished(Cookie cookie, const protocol::Outcome& outcome);

private:
  struct Inbox {
    std::string host;
    bool probing = true;
    bool lost = false; // its link broke in the middle of a message: those behind it are not delivered
    std::string room;  // for the message that the probe found
  };
  void probe(std::uint32_t link, Inbox& inbox);
  void advance(std::uint32_t link, const protocol::Outcome& outcome);
  void deliver(std::uint32_t link, const std::string& host, std::string_view incoming);

  Loop& loop_;
  protocol::Engine& engine_;
  Receive receive_;
  std::map<std::uint32_t, Inbox> inboxes_;      // by link
  std::map<std::uint64_t, std::string> writes_; // by number, until the engine is done with them
  std::uint64_t last_write_ = 0;
};

} // namespace parc::daemon
