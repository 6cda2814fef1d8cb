// SPDX-License-Identifier: BSD-3-Clause
// What is spawned does not start ("nothing"), or aborts while its spawner waits for it ("aborting").
#include "report.h"

int main(int count, char** words) {
  report_begin(&count, &words);
  MPI_Comm parent, between = MPI_COMM_NULL;
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    if (rank == 1) MPI_Abort(MPI_COMM_WORLD, 23);
    MPI_Barrier(parent);
  } else if (count == 2 && strcmp(words[1], "nothing") == 0) {
    // Each rank for itself: Open MPI 4 does not tell the others that the root's has failed.
    MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
    const int code = MPI_Comm_spawn("/nonexistent/program", MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_SELF,
                                    &between, MPI_ERRCODES_IGNORE);
    say("spawned: %d\n", code == MPI_SUCCESS);
  } else {
    MPI_Comm_spawn(words[0], MPI_ARGV_NULL, 2, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between,
                   MPI_ERRCODES_IGNORE);
    MPI_Barrier(between);
  }
  report_end();
  return 0;
}
