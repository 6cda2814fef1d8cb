// SPDX-License-Identifier: BSD-3-Clause
// Threads of each rank (MPI_THREAD_MULTIPLE), each with a communicator of its own and a sum that is reported.
#include "report.h"

#include <pthread.h>

struct thread {
  pthread_t id;
  int number;
  MPI_Comm own;
  unsigned long long sum;
};

static inline int run_threads(int count, char** words, void* (*const parts[])(void*), int threads) {
  int provided = -1;
  MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  expect(provided == MPI_THREAD_MULTIPLE);
  struct thread* const each = allocate((size_t)threads * sizeof *each);
  for (int i = 0; i < threads; ++i) {
    each[i].number = i;
    MPI_Comm_dup(MPI_COMM_WORLD, &each[i].own);
  }
  for (int i = 0; i < threads; ++i) expect(pthread_create(&each[i].id, NULL, parts[i], &each[i]) == 0);
  for (int i = 0; i < threads; ++i) {
    expect(pthread_join(each[i].id, NULL) == 0);
    say("thread %d: %llu\n", i, each[i].sum);
    MPI_Comm_free(&each[i].own);
  }
  free(each);
  report_end();
  return 0;
}
