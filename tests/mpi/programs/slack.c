// SPDX-License-Identifier: BSD-3-Clause
// By how much timers may be late before MPI is there, and then.
#include "report.h"

#include <sys/prctl.h>

int main(int count, char** words) {
  const int before = prctl(PR_GET_TIMERSLACK);
  report_begin(&count, &words);
  MPI_Barrier(MPI_COMM_WORLD);
  say("%s, then %d ns\n", before > 50000 ? "long" : "short", prctl(PR_GET_TIMERSLACK));
  report_end();
  return 0;
}
