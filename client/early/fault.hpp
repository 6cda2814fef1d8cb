// SPDX-License-Identifier: BSD-3-Clause
// SIGSEGV: faults on guarded pages are ours; all others go to the program's own handler, or crash as they
// would without us. Installed with the first early release, never before.
#pragma once

#include <csignal>

namespace parc::client {

class Guards;

// From here on faults are looked up in these guards; one per process. Nothing when it is done already.
void catch_faults(Guards& guards);

// Those; nullptr: none.
[[nodiscard]] Guards* caught_guards();

// What the program wants done with faults of its own, in place of what it wanted before. False: SIGSEGV is
// not ours yet.
[[nodiscard]] bool set_program_action(const struct sigaction* action, struct sigaction* before);

// The next fault on that page makes it accessible: what the cost of a fault is measured with.
void open_when_touched(void* page);

// Before the guards go: there are none left. The handler stays, and passes everything on.
void forget_faults();

} // namespace parc::client
