// SPDX-License-Identifier: BSD-3-Clause
// The kernel process: one thread, one loop. It owns the engine and the actors around it (peers, sessions,
// jobs, tools) and is the only place that knows them all: it gives each what it uses, and tells one what
// another has to say.
//
// Invariants: it never blocks but in IdlePolicy; each step of the turn has a budget and says how much it did;
// what an actor has to tell others waits for the step's end (Loop::after_step), so no actor is re-entered.
#pragma once

#include "daemon/base/complaint.hpp"
#include "daemon/base/counters.hpp"
#include "daemon/base/event.hpp"
#include "daemon/base/idle_policy.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/base/post.hpp"
#include "daemon/base/runtime_watch.hpp"
#include "daemon/base/unix_listener.hpp"
#include "daemon/link/peers.hpp"
#include "daemon/link/socket_stream.hpp"
#include "daemon/link/tls_stream.hpp"
#include "daemon/process/start_process.hpp"
#include "daemon/program/door.hpp"
#include "daemon/program/sessions.hpp"
#include "daemon/relay/relays.hpp"
#include "daemon/settings/config.hpp"
#include "daemon/ssh/ssh_tunnels.hpp"
#include "protocol/engine.hpp"
#include "system/identity.hpp"
#include "system/runtime_dir.hpp"
#include "system/scheduling.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

namespace parc::daemon {

class Instance;
class Jobs;
class Joins;
class Spawners;
class Tools;

class Kernel final : protocol::Listener {
public:
  struct World { // what a kernel starts with; all of it has been checked
    Config config;
    RuntimeDir runtime_dir;
    Keys keys;
    SchedulingClass scheduling;
    struct Fresh {
      Config config;
      Keys keys;
    };
    std::function<std::optional<Fresh>()> reload; // SIGHUP; none: it is wrong, and that has been said
    std::function<std::uint64_t()> log_lines_dropped;
    Instance* instance = nullptr; // none: nobody looks after the runtime directory
    std::uint64_t identity = drawn_identity(random_number());
    // Of who simulates what is around a kernel; else the system's.
    const Loop::Time* time = nullptr;
    std::unique_ptr<StreamMaker> streams = {};
    Processes processes = {};
  };
  explicit Kernel(World world);
  ~Kernel() override;

  Result<void> start();    // listens on its ports and its Unix socket
  void run();              // until SIGTERM, SIGINT or stop()
  std::uint64_t turn();    // once round, as run() does; returns how much it did
  void stop();             // lets running jobs know, then ends run()
  bool prepare_to_sleep(); // where a turn did nothing; true: there is something to be done before

  // For who drives it in place of run(), and gives it peers, programs and tools in place of its doors.
  Loop& loop() { return loop_; }
  protocol::Engine& engine() { return engine_; }
  Peers& peers() { return *peers_; }
  Sessions& sessions() { return *sessions_; }
  Post& post() { return post_; }
  Jobs& jobs() { return *jobs_; }
  Joins& joins() { return *joins_; }
  Tools& tools() { return *tools_; }
  [[nodiscard]] bool stopped() const { return stopped_; }

private:
  void choose_core();
  std::uint64_t end_step(std::uint64_t work);
  void publish();
  void reload();
  void use(const Keys& keys);
  void save_memory();
  [[nodiscard]] bool none() const; // neither a program nor a job nor a tool is here
  void look_whether_idle();
  void look_whether_all_is_said();
  void link_lost(std::uint32_t link);
  void look_after_runtime_dir();
  [[nodiscard]] Result<bool> hear_tunnels();
  [[nodiscard]] Result<bool> put_back_runtime_dir();
  void watch_signal(int signal, std::function<void()> action);

  // protocol::Listener; cookies say whose operations they are of (cookie.hpp).
  void begun(std::uint64_t cookie, const protocol::Outcome& outcome) override;
  void progressed(std::uint64_t cookie, const protocol::Progress& progress) override;
  void finished(std::uint64_t cookie, const protocol::Outcome& outcome) override;
  void backlog_changed(std::uint64_t endpoint_cookie) override;
  void drained(std::uint64_t endpoint_cookie) override;
  void departed(std::uint64_t endpoint, protocol::Departure how) override;
  void peer_departed(const protocol::Address& peer) override;
  void unread(std::uint64_t endpoint, const protocol::Address& from,
              const protocol::Outcome& message) override;
  bool place(std::uint64_t endpoint_cookie, const protocol::Place& place, bool acquainted,
             protocol::Pieces& memory, std::uint64_t& hold) override;
  void let_go(std::uint64_t hold) override;

  World world_;
  Loop loop_;
  protocol::Engine engine_;
  std::unique_ptr<Counters> counters_;          // outlives the rows that actors hold
  SocketStreams sockets_{loop_, world_.config}; // not used where the streams are simulated
  [[nodiscard]] StreamMaker& plain_streams() { return world_.streams ? *world_.streams : sockets_; }
  Relays relays_{loop_, post_, plain_streams()};
  std::optional<TlsStreams> encrypted_; // none: the configuration wants none
  SshTunnels tunnels_{loop_, world_.processes, world_.config, world_.runtime_dir};
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<Sessions> sessions_;
  Post post_;
  std::unique_ptr<Jobs> jobs_;
  std::unique_ptr<Spawners> spawners_;
  std::unique_ptr<Joins> joins_;
  std::unique_ptr<Tools> tools_;
  Door door_;
  UnixListener link_socket_; // for kernels that come through a tunnel
  std::unique_ptr<IdlePolicy> idle_policy_;
  std::uint64_t core_chosen_at_ = 0; // turns
  std::vector<Event> signals_;
  Timer acknowledge_; // short messages, where nothing else is said meanwhile
  Timer idle_;
  std::uint64_t programs_before_ = 0; // when idle_ rang
  bool displaced_ = false;            // another kernel has the runtime directory
  std::optional<RuntimeWatch> watch_; // of that
  Timer last_words_;                  // for them to leave, when all is said
  Timer farewell_;                    // limits how long a shutdown waits for what is still to be said
  Complaint no_memory_;
  bool stopping_ = false;
  bool stopped_ = false;
};

} // namespace parc::daemon
