// SPDX-License-Identifier: BSD-3-Clause
// What a program polls beside its own descriptors (parc_descriptor): the kernel's pipe, and a bell of ours
// for when a thread of this program has taken the kernel's bell off the pipe. Both are behind one epoll
// descriptor, which is made when it is asked for. Threads: one at a time (Sleep's lock).
#pragma once

#include "system/error.hpp"
#include "system/fd.hpp"

namespace parc::client {

class Descriptor {
public:
  [[nodiscard]] Result<int> open(int kernels_pipe);
  void ring();    // readable, until silence()
  void silence(); // as far as it is our bell
  void close();   // in a forked child, too. Async-signal-safe.

private:
  Fd both_, bell_;
};

} // namespace parc::client
