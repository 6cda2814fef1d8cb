/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the programs of this directory have in common: numbers on the command line, steps that are timed, and
 * a result that is the same bit for bit on any network. It goes to stdout, and what a step took to stderr.
 */
#pragma once

#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Word PLACE of the command line as a number above 0, or OTHERWISE. */
static inline int number(int argc, char** argv, int place, int otherwise) {
  const int given = place < argc ? atoi(argv[place]) : otherwise;
  return given > 0 ? given : otherwise;
}

static inline void* room_for(size_t count, size_t size) {
  void* const memory = calloc(count > 0 ? count : 1, size);
  if (!memory) MPI_Abort(MPI_COMM_WORLD, 1);
  return memory;
}

/* Connections are made, windows open, in steps before the clock starts. Returns the milliseconds of a step.
 */
enum { warm_up = 3 };
static inline double time_steps(void (*step)(void*), void* state, int steps) {
  for (int i = 0; i < warm_up; ++i) step(state);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin = MPI_Wtime();
  for (int i = 0; i < steps; ++i) step(state);
  return (MPI_Wtime() - begin) / steps * 1e3;
}

/* The bits of all values, each turned by its place; FIRST is that of the first. */
static inline uint64_t digest_of(const double* values, size_t count, uint64_t first) {
  uint64_t digest = 0;
  for (size_t i = 0; i < count; ++i) {
    const unsigned turn = (unsigned)((first + i) % 61 + 1);
    uint64_t bits;
    memcpy(&bits, &values[i], sizeof bits);
    digest ^= bits << turn | bits >> (64 - turn);
  }
  return digest;
}

/* Every rank's digest goes into the line of rank 0, whose step is told too. */
static inline void say(const char* program, int steps, double step_ms, uint64_t digest) {
  int rank, ranks;
  uint64_t all = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Reduce(&digest, &all, 1, MPI_UINT64_T, MPI_BXOR, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  printf("%s: %d ranks, %d steps, result %016llX\n", program, ranks, steps, (unsigned long long)all);
  fprintf(stderr, "%s: %.3f ms a step\n", program, step_ms);
}
