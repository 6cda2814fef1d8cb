// SPDX-License-Identifier: BSD-3-Clause
// The Unix socket in the runtime directory. Whoever connects says in one byte what it is: 'P', a program
// started by hand, gets two pipes and becomes a job of one rank; 'T', a tool, is handed to Jobs. Other users
// are turned away (SO_PEERCRED).
#pragma once

#include "daemon/event.hpp"
#include "system/error.hpp"
#include "system/fd.hpp"

#include <list>

namespace parc::daemon {

class Kernel;

class Door {
public:
  explicit Door(Kernel& kernel) : kernel_(kernel) {}
  ~Door();
  Result<void> open();

private:
  struct Visitor {
    Fd socket;
    Event event;
  };
  void accept();
  void hear(std::list<Visitor>::iterator visitor);
  void admit_program(const Fd& socket);

  Kernel& kernel_;
  Fd listener_;
  Event listening_;
  std::list<Visitor> visitors_; // who have not said what they are
};

} // namespace parc::daemon
