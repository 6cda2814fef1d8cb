// SPDX-License-Identifier: BSD-3-Clause
// The last rank leaves without MPI_Finalize, and with success, while the others wait for it.
#include "report.h"

int main(int count, char** words) {
  report_begin(&count, &words);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == ranks - 1) _Exit(0);
  MPI_Finalize();
  return 0;
}
