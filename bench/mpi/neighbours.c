/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between two ranks of one host, for bench/mpi/neighbours; the same program over libparc (-DPARC)
 * and over MPI:
 *
 *     neighbours pingpong|anybody|stream|both BYTES ROUNDS [malloc]
 *
 * pingpong: one way of a message, there and back, by blocking calls. anybody: the same, received from any
 * source. stream: windows of messages that are all started and then waited for, each window acknowledged; the
 * time for each message. both: each fills a buffer and sends it to the other at the same time; how long that
 * takes. Prints the median and the best of seven times ROUNDS, in
 * nanoseconds, and the cores on which the two were at the end. With libparc the buffers are parc_alloc's, or
 * malloc's.
 */
#define _GNU_SOURCE
#include "either.h"

#include <sched.h>
#include <string.h>

enum { window = 64, passes = 7 };
static int source;
static size_t bytes;
static char* buffer;

#ifdef PARC
enum { anybody = PARC_ANY_SOURCE };
static parc_op operations[window];
static void close_all(void) {
  parc_close(parc);
}
static void* allocate(size_t size, int plain) {
  return plain ? malloc(size) : parc_alloc(parc, size);
}
static void send(size_t size) {
  need(parc_write(parc, 1 - rank, 0, buffer, size) == PARC_OK);
}
static void receive(size_t size) {
  need(parc_read(parc, source, 0, buffer, size, NULL) == PARC_OK);
}
static void start_send(int i) {
  need((operations[i] = parc_initwrite(parc, 1 - rank, 0, buffer + (size_t)i * bytes, bytes)) > 0);
}
static void start_receive(int i) {
  need((operations[i] = parc_initread(parc, 1 - rank, 0, buffer + (size_t)i * bytes, bytes)) > 0);
}
static void finish(int count) {
  need(parc_waitall(parc, count, operations, NULL) == PARC_OK);
}
#else
enum { anybody = MPI_ANY_SOURCE };
static MPI_Request operations[window];
static MPI_Status statuses[window];
static void close_all(void) {
  MPI_Finalize();
}
static void* allocate(size_t size, int plain) {
  return (void)plain, malloc(size);
}
static void send(size_t size) {
  MPI_Send(buffer, (int)size, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD);
}
static void receive(size_t size) {
  MPI_Recv(buffer, (int)size, MPI_BYTE, source, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}
static void start_send(int i) {
  MPI_Isend(buffer + (size_t)i * bytes, (int)bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, operations + i);
}
static void start_receive(int i) {
  MPI_Irecv(buffer + (size_t)i * bytes, (int)bytes, MPI_BYTE, 1 - rank, 0, MPI_COMM_WORLD, operations + i);
}
static void finish(int count) {
  MPI_Waitall(count, operations, statuses);
}
#endif

static void ping_pong(void) {
  if (rank == 0) {
    send(bytes);
    receive(bytes);
  } else {
    receive(bytes);
    send(bytes);
  }
}

static int at_once(void) {
  return bytes > 1 << 20 ? 4 : window;
}

static void stream(void) {
  const int count = at_once();
  for (int i = 0; i < count; ++i) {
    if (rank == 0)
      start_send(i);
    else
      start_receive(i);
  }
  finish(count);
  if (rank == 0)
    receive(0);
  else
    send(0);
}

static void both(void) {
  static int turn;
  memset(buffer + bytes, ++turn, bytes); /* as a program that sends what it has computed */
  start_receive(0);
  start_send(1);
  finish(2);
}

static int other_core(void) { /* for rank 0 */
  int core = sched_getcpu();
  memcpy(buffer, &core, sizeof core);
  rank == 0 ? receive(sizeof core) : send(sizeof core);
  memcpy(&core, buffer, sizeof core);
  return core;
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

int main(int argc, char** argv) {
  open_all(&argc, &argv);
  const char* const what = argc > 1 ? argv[1] : "pingpong";
  void (*const once)(void) = strcmp(what, "stream") == 0 ? stream
                             : strcmp(what, "both") == 0 ? both
                                                         : ping_pong;
  const int rounds = argc > 3 ? atoi(argv[3]) : 1000, parts = once == stream ? at_once()
                                                              : once == both ? 1
                                                                             : 2;
  source = strcmp(what, "anybody") == 0 ? anybody : 1 - rank;
  bytes = argc > 2 ? strtoul(argv[2], NULL, 0) : 8;
  buffer = allocate(bytes * window + 64, argc > 4);
  memset(buffer, rank, bytes * window);
  double times[passes];
  for (int pass = 0; pass < passes; ++pass) {
    for (int i = 0; i < rounds / 10 + 2; ++i) once();
    meet();
    const double begin = now();
    for (int i = 0; i < rounds; ++i) once();
    times[pass] = (now() - begin) / rounds / parts * 1e9;
  }
  qsort(times, passes, sizeof *times, by_size);
  const int core = sched_getcpu(), other = other_core();
  if (rank == 0) printf("%.0f %.0f %d %d\n", times[passes / 2], times[0], core, other);
  close_all();
  return 0;
}
