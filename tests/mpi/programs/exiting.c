// SPDX-License-Identifier: BSD-3-Clause
// Rank 0 exits in the handler of a signal, as codes do at the end of their time, whatever MPI is doing then.
#include "report.h"

#include <signal.h>
#include <sys/time.h>

static void end(int number) {
  (void)number;
  exit(7);
}

int main(int count, char** words) {
  report_begin(&count, &words);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    const struct itimerval soon = {{0, 0}, {0, 20000}};
    signal(SIGALRM, end);
    setitimer(ITIMER_REAL, &soon, NULL);
  }
  int value = 0;
  if (count > 1) MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  static int many[20000];
  for (;;)
    MPI_Sendrecv_replace(many, 20000, MPI_INT, 1 - rank, 0, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
