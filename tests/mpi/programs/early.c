// SPDX-License-Identifier: BSD-3-Clause
// Rank 0 says when a receive has returned, and then uses what it brought. The first word says with which call
// it receives, the second, where there is one, what it does then.
#include "report.h"

enum { bytes = 32 << 20, beside = 1000 };

// Nothing that a call of MPI or of the system does with the buffer sees it as it was before.
static void use(const char* how, unsigned char* buffer) {
  MPI_Status status;
  int length = 0;
  if (strcmp(how, "file") == 0) {
    MPI_File file;
    expect(MPI_File_open(MPI_COMM_SELF, "early.data",
                         MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                         &file) == MPI_SUCCESS);
    expect(MPI_File_write_at(file, 0, buffer, bytes, MPI_BYTE, &status) == MPI_SUCCESS);
    MPI_Get_count(&status, MPI_BYTE, &length);
    expect(length == bytes);
    memset(buffer, 0, bytes);
    expect(MPI_File_read_at(file, 0, buffer, bytes, MPI_BYTE, &status) == MPI_SUCCESS);
    MPI_File_close(&file);
  } else if (strcmp(how, "echo") == 0) {
    MPI_Sendrecv(buffer, bytes, MPI_BYTE, 0, 2, buffer + bytes + beside, bytes, MPI_BYTE, 0, 2, MPI_COMM_SELF,
                 &status);
    memset(buffer, 0, bytes);
    memcpy(buffer, buffer + bytes + beside, bytes);
  }
}

int main(int count, char** words) {
  report_begin(&count, &words);
  expect(count >= 2);
  const char* const call = words[1];
  unsigned char* const memory = allocate(2 * (bytes + beside) + beside);
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
  if (count > 2) use(words[2], buffer);
  expect(holds(buffer, bytes, 5));
  printf("all of it is right\n");
  free(memory);
  MPI_Finalize();
  return 0;
}
