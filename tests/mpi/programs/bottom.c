// SPDX-License-Identifier: BSD-3-Clause
// A collective operation whose buffers are MPI_BOTTOM, with addresses in the types. Open MPI's mtl/ofi names
// no memory then: the job has to end.
#include "report.h"

int main(int count, char** words) {
  report_begin(&count, &words);
  int values[2][3] = {{rank, rank, rank}, {-1, -1, -1}}, counts[2][2] = {{0, 0}, {0, 0}}, at[2] = {0, 0};
  MPI_Datatype types[2][2];
  for (int i = 0; i < 2; i++) {
    MPI_Aint address;
    MPI_Get_address(values[i], &address);
    MPI_Type_create_hindexed_block(1, 3, &address, MPI_INT, &types[i][0]);
    MPI_Type_commit(&types[i][0]);
    types[i][1] = types[i][0];
    counts[i][1 - rank] = 1;
  }
  MPI_Alltoallw(MPI_BOTTOM, counts[0], at, types[0], MPI_BOTTOM, counts[1], at, types[1], MPI_COMM_WORLD);
  if (values[1][0] == 1 - rank && values[1][2] == 1 - rank) printf("right\n");
  MPI_Finalize();
  return 0;
}
