// SPDX-License-Identifier: BSD-3-Clause
// Waits for a message that nobody sends, until the test has killed a kernel: an error that is returned ends
// the job with 18, none ends it never.
#include "report.h"

int main(int count, char** words) {
  report_begin(&count, &words);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    printf("waiting\n");
    fflush(stdout);
  }
  int value = 0;
  const int code = MPI_Recv(&value, 1, MPI_INT, rank == 0 ? 1 : 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (code != MPI_SUCCESS) MPI_Abort(MPI_COMM_WORLD, 18);
  MPI_Finalize();
  return 0;
}
