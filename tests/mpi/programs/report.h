// SPDX-License-Identifier: BSD-3-Clause
// What the programs of this directory share. Each rank writes down what it has found; report_end prints that
// on rank 0, in the order of the ranks: the same text whatever carries the messages. What is wrong ends the
// job at once.
#pragma once

#include <mpi.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;
static char report_text[65536];
static size_t report_length;

#define expect(right)                                                                                        \
  do {                                                                                                       \
    if (right) break;                                                                                        \
    fprintf(stderr, "rank %d of %d: %s:%d: not so: %s\n", rank, ranks, __FILE__, __LINE__, #right);          \
    MPI_Abort(MPI_COMM_WORLD, 1);                                                                            \
    abort();                                                                                                 \
  } while (0)

__attribute__((format(printf, 1, 2))) static inline void say(const char* format, ...) {
  va_list values;
  va_start(values, format);
  const size_t room = sizeof report_text - report_length;
  const int length = vsnprintf(report_text + report_length, room, format, values);
  va_end(values);
  expect(length >= 0 && (size_t)length < room);
  report_length += (size_t)length;
}

static inline unsigned char pattern(size_t at, unsigned seed) {
  return (unsigned char)(seed * 59 + at * 7 + (at >> 8) * 13 + (at >> 16) * 3);
}

static inline void fill(void* buffer, size_t length, unsigned seed) {
  unsigned char* const bytes = buffer;
  for (size_t i = 0; i < length; ++i) bytes[i] = pattern(i, seed);
}

static inline int holds(const void* buffer, size_t length, unsigned seed) {
  const unsigned char* const bytes = buffer;
  for (size_t i = 0; i < length; ++i)
    if (bytes[i] != pattern(i, seed)) return 0;
  return 1;
}

// FNV-1a: what stands in the report in place of many bytes.
static inline unsigned long long digest(const void* buffer, size_t length) {
  const unsigned char* const bytes = buffer;
  uint64_t value = 0xcbf29ce484222325;
  for (size_t i = 0; i < length; ++i) value = (value ^ bytes[i]) * 0x100000001b3;
  return value;
}

static inline void* allocate(size_t length) {
  void* const memory = calloc(length ? length : 1, 1);
  expect(memory != NULL);
  return memory;
}

static inline int right_of_me(void) {
  return (rank + 1) % ranks;
}

static inline int left_of_me(void) {
  return (rank + ranks - 1) % ranks;
}

static inline void report_begin(int* count, char*** words) {
  MPI_Init(count, words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
}

static inline void report_end(void) {
  if (rank != 0) {
    MPI_Send(report_text, (int)report_length, MPI_CHAR, 0, 0, MPI_COMM_WORLD);
  } else {
    for (int from = 0; from < ranks; ++from) {
      int length = (int)report_length;
      if (from != 0) {
        MPI_Status status;
        MPI_Recv(report_text, sizeof report_text, MPI_CHAR, from, 0, MPI_COMM_WORLD, &status);
        MPI_Get_count(&status, MPI_CHAR, &length);
      }
      printf("-- rank %d of %d\n%.*s", from, ranks, length, report_text);
    }
    fflush(stdout);
  }
  MPI_Finalize();
}
