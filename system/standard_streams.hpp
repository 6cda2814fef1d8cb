// SPDX-License-Identifier: BSD-3-Clause
// Descriptors 0, 1 and 2 of a tool: open from the first line of its main on, and what it printed is out, or
// is known to be lost, at its end. A file that grows beyond the limit (ulimit -f) is refused in words, and
// kills nobody. Threads: none but main's.
#pragma once

namespace parc {

// First thing in main: one that is closed becomes /dev/null's. Otherwise the first socket or file that is
// opened takes its number, and what is printed goes there.
void open_standard_streams();

// Before another program takes the place of this one: it gets the signals as this one got them.
void give_signals_back();

// Last thing in main: flushes and closes stdout, and returns the exit status, `failed` in place of 0 when not
// all of it could be written; a sentence on stderr says so in the name of `program`.
[[nodiscard]] int end_of_output(const char* program, int status, int failed);

// Whoever read what is printed has gone, which is no failure: ends this process as SIGPIPE does, also where
// that was ignored when it began.
[[noreturn]] void end_without_reader();

} // namespace parc
