// SPDX-License-Identifier: BSD-3-Clause
// What one-sided calls take rank 0, of rank 1 that waits in MPI or computes 300 ms: windows WHAT BYTES COUNT,
// one of get, put and add. Prints microseconds: the median of each, then the median beside a target that
// computes.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static MPI_Win window;
static char* buffer;

static void call(const char* what, int bytes) {
  const long one = 1;
  MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
  if (strcmp(what, "get") == 0)
    MPI_Get(buffer, bytes, MPI_CHAR, 1, 0, bytes, MPI_CHAR, window);
  else if (strcmp(what, "put") == 0)
    MPI_Put(buffer, bytes, MPI_CHAR, 1, 0, bytes, MPI_CHAR, window);
  else
    MPI_Fetch_and_op(&one, buffer, MPI_LONG, 1, 0, MPI_SUM, window);
  MPI_Win_unlock(1, window);
}

static double timed(const char* what, int bytes) {
  const double begin = MPI_Wtime();
  call(what, bytes);
  return (MPI_Wtime() - begin) * 1e6;
}

static int by_size(const void* one, const void* other) {
  const double a = *(const double*)one, b = *(const double*)other;
  return (a > b) - (a < b);
}
static double median(double* times, int count) {
  qsort(times, (size_t)count, sizeof *times, by_size);
  return times[count / 2];
}

static void compute(double seconds) {
  volatile double sum = 0;
  for (const double end = MPI_Wtime() + seconds; MPI_Wtime() < end;)
    for (int i = 0; i < 10000; ++i) sum = sum + 1.0 / (i + 1);
}

int main(int words, char** word) {
  enum { beside = 5 };
  int rank = 0;
  MPI_Init(&words, &word);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* const what = word[1];
  const int bytes = atoi(word[2]), count = atoi(word[3]);
  char* const memory = calloc((size_t)bytes + 8, 1);
  buffer = calloc((size_t)bytes + 8, 1);
  double* const times = malloc((size_t)count * sizeof *times);
  double busy[beside];
  MPI_Win_create(memory, bytes + 8, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0)
    for (int i = -5; i < count; ++i) {
      const double time = timed(what, bytes);
      if (i >= 0) times[i] = time;
    }
  for (int i = 0; i < beside; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) {
      compute(0.02); // the other one does
      busy[i] = timed(what, bytes);
    } else if (rank == 1) {
      compute(0.3);
    }
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) printf("%.1f %.1f\n", median(times, count), median(busy, beside));
  MPI_Win_free(&window);
  MPI_Finalize();
  free(memory), free(buffer), free(times);
}
