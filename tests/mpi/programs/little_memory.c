// SPDX-License-Identifier: BSD-3-Clause
// Two ranks that may map little more than what they have exchange much more than that. First all receives are
// begun, of anybody or of the other, then all sends: each waits for the other's.
//
//   little_memory MIB    which they may map more; with too little an error is right, a wait is not
#include "report.h"

#include <sys/resource.h>
#include <unistd.h>

enum { messages = 20, bytes = 4 << 20 };

static void limit_memory(size_t more) {
  unsigned long pages = 0;
  FILE* const file = fopen("/proc/self/statm", "r");
  expect(file != NULL && fscanf(file, "%lu", &pages) == 1 && fclose(file) == 0);
  struct rlimit few;
  expect(getrlimit(RLIMIT_AS, &few) == 0);
  few.rlim_cur = pages * (rlim_t)getpagesize() + more;
  expect(setrlimit(RLIMIT_AS, &few) == 0);
}

int main(int count, char** words) {
  report_begin(&count, &words);
  char *in[messages], *out[messages];
  MPI_Request requests[2 * messages];
  const int other = 1 - rank;
  for (int i = 0; i < messages; ++i) {
    in[i] = allocate(bytes);
    out[i] = allocate(bytes);
    fill(out[i], bytes, (unsigned)(2 * i + rank));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  limit_memory((size_t)atoi(words[1]) << 20);
  for (int i = 0; i < messages; ++i)
    MPI_Irecv(in[i], bytes, MPI_BYTE, i % 2 ? other : MPI_ANY_SOURCE, i, MPI_COMM_WORLD, &requests[i]);
  for (int i = 0; i < messages; ++i)
    MPI_Isend(out[i], bytes, MPI_BYTE, other, i, MPI_COMM_WORLD, &requests[messages + i]);
  MPI_Waitall(2 * messages, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < messages; ++i) expect(holds(in[i], bytes, (unsigned)(2 * i + other)));
  say("right\n");
  report_end();
  return 0;
}
