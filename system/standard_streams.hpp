// SPDX-License-Identifier: BSD-3-Clause
// Descriptors 0, 1 and 2 of a tool: open from the first line of its main on, and what it printed is out, or
// is known to be lost, at its end. A file that grows beyond the limit (ulimit -f) is refused in words, and
// kills nobody. Threads: none but main's.
#pragma once

namespace parc {

// Opens every standard stream that is closed on /dev/null: otherwise the first socket or file to be opened
// would take its number, and get what is printed. Ignores SIGXFSZ, and gives SIGCHLD its default action.
// Called first in main.
void open_standard_streams();

// Gives SIGXFSZ and SIGCHLD the actions that this process was started with; called before exec.
void give_signals_back();

// Flushes and closes stdout, last in main. Returns the exit status: `status`, or `failed` in place of 0 when
// not all output could be written; a sentence on stderr says so in the name of `program`.
[[nodiscard]] int end_of_output(const char* program, int status, int failed);

// Ends this process as SIGPIPE does, also where that is ignored: whoever read its output has gone, which is
// no failure.
[[noreturn]] void end_without_reader();

} // namespace parc
