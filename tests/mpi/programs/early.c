// SPDX-License-Identifier: BSD-3-Clause
// Rank 0 says when a receive or a get has returned, and then uses what it brought. The first word says with
// which call it receives or gets, the second, where there is one, what it does then.
#include "report.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

enum { bytes = 32 << 20, part = 6 << 20, beside = 1000 }; // Open MPI gets 8 MiB at a time

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

static MPI_Win window_over(unsigned char* buffer) {
  MPI_Win window;
  MPI_Win_create(buffer, buffer ? part : 0, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  return window;
}

static void get_of(const char* call, unsigned char* buffer, int from, MPI_Win window) {
  MPI_Win_lock(MPI_LOCK_SHARED, from, 0, window);
  if (strcmp(call, "get") == 0) {
    MPI_Get(buffer, part, MPI_BYTE, from, 0, part, MPI_BYTE, window);
    MPI_Win_unlock(from, window);
  } else if (strcmp(call, "flush") == 0) {
    MPI_Get(buffer, part, MPI_BYTE, from, 0, part, MPI_BYTE, window);
    MPI_Win_flush(from, window);
  } else {
    MPI_Request request;
    MPI_Rget(buffer, part, MPI_BYTE, from, 0, part, MPI_BYTE, window, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  }
}

// What is printed waits for a get that was released: it says so by a byte of a file.
static volatile unsigned char* map_sign(void) {
  const int file = open("early.sign", O_RDWR | O_CREAT, 0600);
  expect(file >= 0 && ftruncate(file, 1) == 0);
  void* const sign = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  expect(sign != MAP_FAILED);
  close(file);
  return sign;
}

// What was got into is a window itself afterwards.
static void gets(const char* call, unsigned char* buffer) {
  volatile unsigned char* const sign = map_sign();
  if (rank == 1) fill(buffer, part, 5);
  MPI_Win window = window_over(rank == 1 ? buffer : NULL);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    get_of(call, buffer, 1, window);
    *sign = '!';
    expect(holds(buffer, part, 5));
    printf("all of it is right\n");
    if (strcmp(call, "get") != 0) MPI_Win_unlock(1, window);
  }
  MPI_Win_free(&window);
  window = window_over(rank == 0 ? buffer : NULL);
  if (rank == 1) {
    memset(buffer, 0, part);
    get_of("get", buffer, 0, window);
    expect(holds(buffer, part, 5));
  }
  MPI_Win_free(&window);
}

int main(int count, char** words) {
  report_begin(&count, &words);
  expect(count >= 2);
  const char* const call = words[1];
  unsigned char* const memory = allocate(2 * (bytes + beside) + beside);
  unsigned char* const buffer = memory + beside; // shares its first and its last page
  if (strstr(call, "get") != NULL || strcmp(call, "flush") == 0) {
    gets(call, buffer);
    free(memory);
    MPI_Finalize();
    return 0;
  }
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
