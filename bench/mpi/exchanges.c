/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Exchanges as those of NAS FT, IS and MG make them, with a calculation beside, for bench/mpi/kernels:
 *
 *     exchanges ft [POINTS [STEPS]]   POINTS^2 complex numbers are transposed in every step, all to all
 *     exchanges is [KEYS [STEPS]]     KEYS a rank are sorted into ranges, which other ranks have
 *     exchanges mg [POINTS [STEPS]]   faces of a cube of POINTS^3 on every level of a V cycle
 *
 * Prints the milliseconds of a step and a sum that is the same over any transport.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, ranks;

static void* room_for(size_t bytes) {
  void* const memory = calloc(bytes, 1);
  if (!memory) MPI_Abort(MPI_COMM_WORLD, 1);
  return memory;
}

/* ---- FT: rows of a rank; each step works on them and turns rows into columns. */

typedef struct {
  double re, im;
} Complex;
static Complex *grid, *turned;

static void ft_begin(int points) {
  const size_t rows = (size_t)(points / ranks), n = (size_t)points;
  grid = room_for(rows * n * sizeof *grid);
  turned = room_for(rows * n * sizeof *turned);
  for (size_t i = 0; i < rows * n; ++i)
    grid[i] = (Complex){(double)((i * 7 + (size_t)rank) % 13), (double)(i % 5)};
}

/* One pass of butterflies a level, as a fast Fourier transform has, without its factors' exactness. */
static void butterflies(Complex* row, int n) {
  for (int half = 1; half < n; half *= 2)
    for (int i = 0; i < n; ++i) {
      if ((i & half) || i + half >= n) continue;
      const Complex a = row[i], b = row[i + half];
      row[i] = (Complex){0.5 * (a.re + b.re), 0.5 * (a.im + b.im)};
      row[i + half] = (Complex){0.5 * (a.re - b.re), 0.5 * (a.im - b.im)};
    }
}

static double ft_step(int points) {
  const int rows = points / ranks;
  for (int row = 0; row < rows; ++row) butterflies(grid + (size_t)row * (size_t)points, points);
  /* Blocks for each rank, transposed. */
  for (int to = 0; to < ranks; ++to)
    for (int column = 0; column < rows; ++column)
      for (int row = 0; row < rows; ++row)
        turned[((size_t)to * (size_t)rows + (size_t)column) * (size_t)rows + (size_t)row] =
            grid[(size_t)row * (size_t)points + (size_t)(to * rows + column)];
  MPI_Alltoall(turned, 2 * rows * rows, MPI_DOUBLE, grid, 2 * rows * rows, MPI_DOUBLE, MPI_COMM_WORLD);
  for (int from = 0; from < ranks; ++from) /* rows again */
    for (int row = 0; row < rows; ++row)
      memcpy(turned + (size_t)row * (size_t)points + (size_t)(from * rows),
             grid + ((size_t)from * (size_t)rows + (size_t)row) * (size_t)rows, (size_t)rows * sizeof *grid);
  Complex* const other = grid;
  grid = turned;
  turned = other;
  return grid[(size_t)rows].re;
}

/* ---- IS */

static int *keys, *sorted, *received;
enum { buckets = 1024, key_bits = 19 };

static void is_begin(int count) {
  keys = room_for((size_t)count * sizeof(int));
  sorted = room_for((size_t)count * sizeof(int));
  received = room_for(4 * (size_t)count * sizeof(int));
  uint32_t random = 12345u + (uint32_t)rank * 977u;
  for (int i = 0; i < count; ++i) {
    random = random * 1664525u + 1013904223u;
    keys[i] = (int)(random >> (32 - key_bits));
  }
}

static int rank_of_bucket(int bucket) {
  return bucket * ranks / buckets;
}

static double is_step(int count) {
  int mine[buckets] = {0}, all[buckets], begin[buckets + 1] = {0};
  const int shift = key_bits - 10;
  for (int i = 0; i < count; ++i) ++mine[keys[i] >> shift];
  for (int i = 0; i < buckets; ++i) begin[i + 1] = begin[i] + mine[i];
  int at[buckets];
  memcpy(at, begin, sizeof at);
  for (int i = 0; i < count; ++i) sorted[at[keys[i] >> shift]++] = keys[i];
  MPI_Allreduce(mine, all, buckets, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  int* const send = room_for(4 * (size_t)ranks * sizeof(int));
  int *const receive = send + ranks, *const from = send + 2 * ranks, *const into = send + 3 * ranks;
  for (int i = 0; i < buckets; ++i) send[rank_of_bucket(i)] += mine[i];
  MPI_Alltoall(send, 1, MPI_INT, receive, 1, MPI_INT, MPI_COMM_WORLD);
  for (int i = 1; i < ranks; ++i) {
    from[i] = from[i - 1] + send[i - 1];
    into[i] = into[i - 1] + receive[i - 1];
  }
  if (into[ranks - 1] + receive[ranks - 1] > 4 * count) MPI_Abort(MPI_COMM_WORLD, 1);
  MPI_Alltoallv(sorted, send, from, MPI_INT, received, receive, into, MPI_INT, MPI_COMM_WORLD);
  double sum = all[7];
  for (int i = 0; i < into[ranks - 1] + receive[ranks - 1]; ++i) sum += received[i] % 3;
  free(send);
  return sum;
}

/* ---- MG: slabs of a cube, whose first and last planes neighbours have. */

enum { most_levels = 12 };
static double* level_of[most_levels];
static int levels;

static void mg_begin(int points) {
  for (int n = points; n / ranks >= 2 && levels < most_levels; n /= 2, ++levels) {
    const size_t cells = (size_t)n * (size_t)n * (size_t)(n / ranks + 2);
    level_of[levels] = room_for(cells * sizeof(double));
    for (size_t i = 0; i < cells; ++i) level_of[levels][i] = (double)((i + (size_t)rank) % 17);
  }
}

static void exchange_faces(double* slab, int n) {
  const size_t plane = (size_t)n * (size_t)n;
  const int planes = n / ranks, above = (rank + ranks - 1) % ranks, below = (rank + 1) % ranks;
  MPI_Request requests[2];
  MPI_Irecv(slab, (int)plane, MPI_DOUBLE, above, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(slab + plane * (size_t)(planes + 1), (int)plane, MPI_DOUBLE, below, 1, MPI_COMM_WORLD,
            &requests[1]);
  MPI_Send(slab + plane * (size_t)planes, (int)plane, MPI_DOUBLE, below, 0, MPI_COMM_WORLD);
  MPI_Send(slab + plane, (int)plane, MPI_DOUBLE, above, 1, MPI_COMM_WORLD);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

static void relax(double* slab, int n) {
  const size_t plane = (size_t)n * (size_t)n;
  for (int z = 1; z <= n / ranks; ++z)
    for (size_t i = 1; i + 1 < plane; ++i) {
      double* const here = slab + (size_t)z * plane + i;
      *here = 0.5 * *here + 0.125 * (here[-1] + here[1] + *(here - plane) + here[plane]);
    }
}

static double mg_step(int points) {
  for (int i = 0; i < 2 * levels; ++i) { /* down and up again */
    const int level = i < levels ? i : 2 * levels - 1 - i;
    exchange_faces(level_of[level], points >> level);
    relax(level_of[level], points >> level);
  }
  double mine = level_of[0][(size_t)points * (size_t)points + 5], sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return sum;
}

int main(int count, char** words) {
  static const struct {
    const char* name;
    void (*begin)(int);
    double (*step)(int);
    int size;
  } kinds[] = {
      {"ft", ft_begin, ft_step, 1024}, {"is", is_begin, is_step, 1 << 19}, {"mg", mg_begin, mg_step, 128}};
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; ++i) {
    if (count < 2 || strcmp(words[1], kinds[i].name) != 0) continue;
    const int size = count > 2 ? atoi(words[2]) : kinds[i].size, steps = count > 3 ? atoi(words[3]) : 10;
    if (size < 2 * ranks || size % ranks != 0 || steps < 1) break;
    kinds[i].begin(size);
    double result = kinds[i].step(size), all = 0; /* connections are made */
    MPI_Barrier(MPI_COMM_WORLD);
    const double begin = MPI_Wtime();
    for (int step = 0; step < steps; ++step) result += kinds[i].step(size);
    MPI_Barrier(MPI_COMM_WORLD);
    const double took = MPI_Wtime() - begin;
    MPI_Reduce(&result, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) printf("%.3f ms a step, sum %.9g\n", took / steps * 1e3, all);
    MPI_Finalize();
    return 0;
  }
  if (rank == 0) fprintf(stderr, "exchanges ft|is|mg [SIZE [STEPS]]; the size is a multiple of the ranks\n");
  MPI_Finalize();
  return 2;
}
