/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What one MPI call takes, for bench/mpi/latency, collectives and idle:
 *
 *     calls pingpong|allreduce|bcast|alltoall BYTES ROUNDS
 *     calls idle|alone PASSES
 *
 * Prints the median of the rounds in microseconds: one way of a message, or a call of the slowest rank, whose
 * BYTES are all that each rank sends. idle: what a calculation of rank 0 takes while the others wait in
 * MPI_Recv; alone: while they have ended.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static char *out, *in;

static void ping_pong(int bytes) {
  if (rank == 0) {
    MPI_Send(out, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD);
    MPI_Recv(in, bytes, MPI_BYTE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  } else if (rank == 1) {
    MPI_Recv(in, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(out, bytes, MPI_BYTE, 0, 0, MPI_COMM_WORLD);
  }
}

static void all_reduce(int bytes) {
  MPI_Allreduce(out, in, bytes / (int)sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
}

static void broadcast(int bytes) {
  MPI_Bcast(out, bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
}

static void all_to_all(int bytes) {
  MPI_Alltoall(out, bytes / ranks, MPI_BYTE, in, bytes / ranks, MPI_BYTE, MPI_COMM_WORLD);
}

static int by_size(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return x < y ? -1 : x > y;
}

static double median_us(void (*call)(int), int bytes, int rounds, double divided) {
  double* const times = malloc((size_t)rounds * sizeof *times);
  for (int round = -rounds / 4 - 2; round < rounds; ++round) { /* the first warm up */
    if (divided == 1) MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    call(bytes);
    double time = MPI_Wtime() - begin, slowest = time;
    if (divided == 1) MPI_Allreduce(&time, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (round >= 0) times[round] = slowest / divided * 1e6;
  }
  qsort(times, (size_t)rounds, sizeof *times, by_size);
  const double median = times[rounds / 2];
  free(times);
  return median;
}

static double calculate_us(int passes) {
  enum { cells = 20000 };
  static volatile double field[cells];
  const double begin = MPI_Wtime();
  for (int pass = 0; pass < passes; ++pass)
    for (int i = 0; i < cells; ++i) field[i] = 0.5 * field[i] + pass;
  return (MPI_Wtime() - begin) * 1e6;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const char* const what = argc > 2 ? argv[1] : "";
  const int size = argc > 2 ? atoi(argv[2]) : 0, rounds = argc > 3 ? atoi(argv[3]) : 1;
  const int calculates = strcmp(what, "idle") == 0 || strcmp(what, "alone") == 0;
  out = calloc((size_t)(calculates ? 1 : size) + 64, 1);
  in = calloc((size_t)(calculates ? 1 : size) + 64, 1);
  if (size < 1 || rounds < 1 || !out || !in) MPI_Abort(MPI_COMM_WORLD, 2);
  double us = 0;
  if (strcmp(what, "pingpong") == 0) us = median_us(ping_pong, size, rounds, 2);
  if (strcmp(what, "allreduce") == 0) us = median_us(all_reduce, size, rounds, 1);
  if (strcmp(what, "bcast") == 0) us = median_us(broadcast, size, rounds, 1);
  if (strcmp(what, "alltoall") == 0) us = median_us(all_to_all, size, rounds, 1);
  if (calculates && rank == 0) us = calculate_us(size);
  if (strcmp(what, "idle") == 0) { /* for rank 0 */
    if (rank != 0) MPI_Recv(in, 1, MPI_BYTE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (int to = 1; rank == 0 && to < ranks; ++to) MPI_Send(out, 1, MPI_BYTE, to, 0, MPI_COMM_WORLD);
  }
  if (rank == 0) printf("%.3f\n", us);
  free(out);
  free(in);
  MPI_Finalize();
  return 0;
}
