// SPDX-License-Identifier: BSD-3-Clause
// The kernel process: one thread, one loop. It owns the engine and the actors around it (peers, sessions,
// jobs) and is the only place that knows them all.
//
// Invariants: it never blocks but in Rest; each step of the turn has a budget and says how much it did; what
// an actor learns inside another's step is acted on at the step's end (after_step), so no actor is
// re-entered.
#pragma once

#include "daemon/config.hpp"
#include "daemon/control.hpp"
#include "daemon/event.hpp"
#include "daemon/handshake.hpp"
#include "daemon/peers.hpp"
#include "daemon/rest.hpp"
#include "daemon/sessions.hpp"
#include "protocol/engine.hpp"
#include "system/runtime_dir.hpp"
#include "system/scheduling.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace parc::daemon {

class CounterFile;
class Jobs;

class Kernel final : protocol::Listener {
public:
  struct World { // what a kernel starts with; everything in it has been checked
    Config config;
    RuntimeDir runtime_dir;
    Key key;
    SchedulingClass scheduling;
    CounterFile& counters;
  };
  explicit Kernel(World world);
  ~Kernel() override;

  Result<void> start(); // listens on its ports and its Unix socket
  void run();           // until a signal or stop() ends it

  void stop(); // lets running jobs know, then ends run()

  // For the actors.
  event_base* loop() { return loop_.get(); }
  protocol::Engine& engine() { return engine_; }
  const Config& config() const { return world_.config; }
  const LocalHost& self() const { return self_; }
  const RuntimeDir& runtime_dir() const { return world_.runtime_dir; }
  Peers& peers() { return *peers_; }
  Sessions& sessions() { return *sessions_; }
  Control& control() { return *control_; }
  Jobs& jobs() { return *jobs_; }
  // Runs `action` when the current step of the turn has returned.
  void after_step(std::function<void()> action) { pending_.push_back(std::move(action)); }

  void link_lost(std::uint32_t link); // from Peers: the engine has been told already

private:
  std::uint64_t turn();
  void run_pending();
  void count();

  // protocol::Listener; a cookie's top byte says whose operation it is (cookie.hpp).
  void begun(std::uint64_t cookie, const protocol::Outcome& outcome) override;
  void progressed(std::uint64_t cookie, const protocol::Progress& progress) override;
  void finished(std::uint64_t cookie, const protocol::Outcome& outcome) override;
  void drained(std::uint64_t endpoint_cookie) override;

  World world_;
  LocalHost self_;
  EventBase loop_;
  protocol::Engine engine_;
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<Sessions> sessions_;
  std::unique_ptr<Control> control_;
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<Rest> rest_;
  std::vector<std::function<void()>> pending_;
  std::vector<Event> signals_;
  bool stopping_ = false;
};

} // namespace parc::daemon
