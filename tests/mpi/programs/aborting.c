// SPDX-License-Identifier: BSD-3-Clause
// One rank aborts, with 17 or its word, while the others wait for it, each in another way. With a second word
// another rank has crashed before, and that one is told to end.
#include "report.h"

#include <signal.h>
#include <unistd.h>

static volatile sig_atomic_t told;
static void tell(int signal) {
  told = signal;
}

int main(int count, char** words) {
  report_begin(&count, &words);
  if (count > 2 && rank == 1) signal(SIGTERM, tell);
  MPI_Barrier(MPI_COMM_WORLD);
  int value = 0;
  if (count > 2 && rank == 3) raise(SIGKILL);
  while (count > 2 && rank == 1 && !told) usleep(1000);
  if (rank == 1) MPI_Abort(MPI_COMM_WORLD, count > 1 ? atoi(words[1]) : 17);
  if (rank == 2) MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 3) MPI_Ssend(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
