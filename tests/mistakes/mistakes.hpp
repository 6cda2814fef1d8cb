// SPDX-License-Identifier: BSD-3-Clause
// A mistake, and what it must get: the documented exit status and one sentence that says what, where and what
// to do. And what holds of each: nothing crashes or hangs, nothing is left behind, and the kernels still run
// jobs.
#pragma once

#include <initializer_list>
#include <string>
#include <vector>

namespace parc::test {

struct Mistake {
  const char* name;
  // For bash, in an empty directory, beside kernels of hosts a (PARC_RUNTIME_DIR) and b. The first puts there
  // what the second needs. $DIR has key and parcd.toml of the kernels, which names also c, where nobody
  // listens; $NEW is a runtime directory for another kernel and does not exist; $FULL has room for 16 KiB and
  // 16 files, and `fill` takes the former; $PORT is that of host a; $PLAIN begins a command that obeys file
  // permissions, also of the superuser; `small N` begins one that may write files of N KiB; $PROGRAMS has the
  // programs of tests.
  const char* prepare;
  const char* command;
  int status;
  std::vector<std::string> says; // parts of what it says, all of them in its first line
  int lines = 1;                 // how many it says; 0: none can be said, as the place for it is gone
};

void check(std::initializer_list<Mistake> mistakes);

} // namespace parc::test
