// SPDX-License-Identifier: BSD-3-Clause
// Processes made by vfork, in threads that wait until exec in place of the kernel's loop.
//
// A fork copies the page tables of the kernel, to be thrown away by exec: it was a third of what starting a
// rank costs. vfork does without, but its caller goes on only after exec has read the program: from a file
// server, in its own good time. The process dies with the thread that made it (PR_SET_PDEATHSIG), so those
// stay as long as the kernel does; there are as many as programs were ever between vfork and exec at once.
#pragma once

#include "system/error.hpp"

#include <functional>
#include <sys/types.h>

namespace parc::daemon {

// Said by a process when it needs nothing more of what its maker has open.
using Ready = std::function<void()>;

// Makes a process that runs `child`, and says its number as soon as that is ready or gone. `child` must not
// return; it is kept until the process has gone to another program or ended. It shares all memory with the
// threads of the kernel, which run on, except where a sanitizer makes a fork of it: it makes
// async-signal-safe calls only and writes to nothing but its own stack. All signals are blocked in it.
[[nodiscard]] Result<pid_t> make_process(std::function<void(const Ready& ready)> child);

} // namespace parc::daemon
