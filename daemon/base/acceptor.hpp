// SPDX-License-Identifier: BSD-3-Clause
// The listening sockets of a kernel, TCP and Unix. Whoever there is no room for waits in the socket's backlog
// and is not turned away: while its owner has no room, or the process no descriptor, nothing is accepted and
// the sockets are not watched, so that a waiting connection does not keep the kernel awake.
#pragma once

#include "daemon/base/complaint.hpp"
#include "daemon/base/event.hpp"
#include "daemon/base/loop.hpp"
#include "system/fd.hpp"

#include <functional>
#include <vector>

namespace parc::daemon {

// A cold start brings every host, or every program of a host, at once.
inline constexpr int accept_backlog = 1024;

class Acceptor {
public:
  struct Events {               // called from the event loop
    std::function<bool()> room; // for one more; may make it
    std::function<void(Fd)> accepted;
  };
  Acceptor(Loop& loop, Events events);
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  void listen(Fd listener);         // non-blocking
  void listen_instead(Fd listener); // of all before, whose backlog is taken first
  void resume();                    // its owner may have room again

private:
  struct Listener {
    Fd socket;
    Event readable;
  };
  void accept(int listener);
  void pause();

  Loop& loop_;
  Events events_;
  std::vector<Listener> listeners_;
  Timer pause_; // looks again after a while: what took the last descriptor may be anybody
  bool paused_ = false;
  Complaint exhausted_;
};

} // namespace parc::daemon
