// SPDX-License-Identifier: BSD-3-Clause
// Rank 0 says when a receive has returned, and then looks at what it brought; rank 1 has sent all of it
// before. The first word says with which call it receives.
#include "report.h"

enum { bytes = 32 << 20, beside = 1000 };

int main(int count, char** words) {
  report_begin(&count, &words);
  expect(count == 2);
  const char* const call = words[1];
  unsigned char* const memory = allocate(bytes + 2 * beside);
  unsigned char* const buffer = memory + beside; // shares its first and its last page
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 1) {
    fill(buffer, bytes, 5);
    MPI_Send(buffer, bytes, MPI_BYTE, 0, 1, MPI_COMM_WORLD);
    MPI_Finalize();
    return 0;
  }
  MPI_Status status;
  MPI_Request request;
  if (strcmp(call, "recv") == 0) {
    MPI_Recv(buffer, bytes, MPI_BYTE, MPI_ANY_SOURCE, 1, MPI_COMM_WORLD, &status);
  } else if (strcmp(call, "sendrecv") == 0) {
    MPI_Sendrecv(memory, 1, MPI_BYTE, MPI_PROC_NULL, 1, buffer, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD,
                 &status);
  } else {
    MPI_Irecv(buffer, bytes, MPI_BYTE, 1, 1, MPI_COMM_WORLD, &request);
    if (strcmp(call, "wait") == 0)
      MPI_Wait(&request, &status);
    else
      MPI_Waitall(1, &request, &status);
  }
  int length = 0;
  MPI_Get_count(&status, MPI_BYTE, &length);
  memory[0] = 1; // beside the buffer: waits for nothing
  memory[beside + bytes] = 2;
  printf("returned with %d bytes of rank %d\n", length, status.MPI_SOURCE);
  fflush(stdout);
  expect(holds(buffer, bytes, 5));
  printf("all of it is right\n");
  free(memory);
  MPI_Finalize();
  return 0;
}
