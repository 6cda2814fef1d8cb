/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One-sided calls between two ranks of one host, for bench/mpi/neighbour_windows; the same program over
 * libparc (-DPARC) and over MPI, where each call is followed by a flush:
 *
 *     neighbour_windows get|put|fetch_add BYTES ROUNDS
 *
 * Prints the median of seven times ROUNDS calls, in nanoseconds each. Buffers and window are parc_alloc's,
 * and MPI_Win_allocate's and malloc's.
 */
#include "either.h"

#include <string.h>

enum { passes = 7 };
static size_t bytes;
static char* buffer;

#ifdef PARC
static const parc_place place = {1, 7, 0};
static void make_memory(size_t room) {
  char* const window = parc_alloc(parc, room);
  buffer = parc_alloc(parc, room);
  need(window != NULL && buffer != NULL);
  memset(window, 1, room);
  need(parc_expose(parc, place.window, window, room, PARC_MAY_GET | PARC_MAY_PUT) == PARC_OK);
}
static void get(void) {
  need(parc_get(parc, &place, buffer, bytes) == PARC_OK);
}
static void put(void) {
  need(parc_put(parc, &place, buffer, bytes) == PARC_OK);
}
static void fetch_add(void) {
  int64_t before = 0;
  need(parc_fetch_add(parc, &place, 1, &before) == PARC_OK);
}
static void close_all(void) {
  meet();
  parc_close(parc);
}
#else
static MPI_Win window;
static void make_memory(size_t room) {
  char* memory = NULL;
  MPI_Win_allocate((MPI_Aint)room, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  memset(memory, 1, room);
  buffer = malloc(room);
  if (buffer == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  meet();
  MPI_Win_lock_all(0, window);
}
static void get(void) {
  MPI_Get(buffer, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, window);
  MPI_Win_flush(1, window);
}
static void put(void) {
  MPI_Put(buffer, (int)bytes, MPI_BYTE, 1, 0, (int)bytes, MPI_BYTE, window);
  MPI_Win_flush(1, window);
}
static void fetch_add(void) {
  long one = 1, before = 0;
  MPI_Fetch_and_op(&one, &before, MPI_LONG, 1, 0, MPI_SUM, window);
  MPI_Win_flush(1, window);
}
static void close_all(void) {
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  MPI_Finalize();
}
#endif

static int by_value(const void* a, const void* b) {
  const double left = *(const double*)a, right = *(const double*)b;
  return (left > right) - (left < right);
}

int main(int argc, char** argv) {
  open_all(&argc, &argv);
  if (argc != 4) return 2;
  bytes = strtoul(argv[2], NULL, 10);
  const long rounds = strtol(argv[3], NULL, 10);
  void (*const call)(void) = strcmp(argv[1], "get") == 0   ? get
                             : strcmp(argv[1], "put") == 0 ? put
                                                           : fetch_add;
  make_memory(bytes < 8 ? 8 : bytes);
  memset(buffer, 2, bytes);
  meet();
  if (rank == 0) {
    double times[passes];
    call();
    for (int pass = 0; pass < passes; ++pass) {
      const double begin = now();
      for (long i = 0; i < rounds; ++i) call();
      times[pass] = (now() - begin) * 1e9 / (double)rounds;
    }
    qsort(times, passes, sizeof *times, by_value);
    printf("%.2f\n", times[passes / 2]);
  }
  close_all();
  return 0;
}
