// SPDX-License-Identifier: BSD-3-Clause
// One rank aborts, with 17 or its word, while the others wait for it, each in another way.
#include "report.h"

int main(int count, char** words) {
  report_begin(&count, &words);
  MPI_Barrier(MPI_COMM_WORLD);
  int value = 0;
  if (rank == 1) MPI_Abort(MPI_COMM_WORLD, count > 1 ? atoi(words[1]) : 17);
  if (rank == 2) MPI_Recv(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (rank == 3) MPI_Ssend(&value, 1, MPI_INT, 1, 0, MPI_COMM_WORLD);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Finalize();
  return 0;
}
