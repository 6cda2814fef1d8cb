// SPDX-License-Identifier: BSD-3-Clause
// The Unix socket in the runtime directory, and what is said first there (control/words/door.hpp): a program
// started by hand gets two pipes and becomes a job of one rank; a tool is handed on; a program that joins a
// named job, too, when it has said what it wants. Other users are turned away (SO_PEERCRED). Who comes while
// many have not said all that waits in the backlog.
#pragma once

#include "daemon/base/acceptor.hpp"
#include "daemon/base/complaint.hpp"
#include "daemon/base/event.hpp"
#include "daemon/base/loop.hpp"
#include "daemon/base/unix_listener.hpp"
#include "system/error.hpp"
#include "system/fd.hpp"

#include <functional>
#include <list>
#include <optional>
#include <string>

namespace parc::daemon {

class Door {
public:
  struct Events {
    std::function<void(Fd from_program, Fd to_program)> program;
    std::function<void(Fd socket)> tool;
    std::function<void(Fd socket, std::string wants)> joiner; // empty: more than door::most_wanted bytes
    std::function<void()> turned_away;                        // somebody of another user
  };
  Door(Loop& loop, std::string path, Events events);
  Result<void> open();
  // Listens again where its socket was removed. True: it was.
  Result<bool> put_back();

private:
  struct Visitor {
    Fd socket;
    Event event;
    Loop::Time came;
    std::optional<Timer> patience;
    std::string said;
    bool heard = false; // goes at the step's end
  };
  enum class Said { a_part, all, nothing };
  bool room();
  void accept(Fd socket);
  void hear(std::list<Visitor>::iterator visitor, bool in_time);
  static Said listen_to(Visitor& visitor);
  void admit_program(const Fd& socket);
  Result<void> give_pipes(const Fd& socket);

  Loop& loop_;
  UnixListener socket_;
  Events events_;
  std::list<Visitor> visitors_; // who have not said all, the oldest first
  Acceptor acceptor_;
  Complaint turned_away_, strangers_;
};

} // namespace parc::daemon
