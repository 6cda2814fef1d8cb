/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An iterative two-dimensional Poisson solver (PES of erMPI 2005) as a plain MPI program. Each rank has as
 * many contiguous rows of the square; in every step it updates them, sends the first and the last to the
 * neighbours above and below, and receives from them the two ghost rows of the next step. Two corners are
 * held at 1, two at 0. The result is the same for any number of ranks.
 *
 *     mpicc -O2 poisson.c -o poisson && mpirun -np 4 poisson [COLUMNS [ROWS [SWEEPS [STEPS]]]]
 *
 * ROWS are those of all ranks; SWEEPS is how often each row is calculated in a step.
 */
#include "result.h"

typedef struct Slab {
  int columns, all_rows;
  int first, rows; /* of the square; row 0 and row rows+1 here are the neighbours' */
  int sweeps;
  double *now, *next;
  int above, below; /* ranks */
} Slab;

static double* row_of(const Slab* slab, double* rows, int row) {
  return rows + (size_t)row * (size_t)slab->columns;
}

/* The mean of the neighbours that there are; the corners keep what they have. */
static void calculate_row(const Slab* slab, int row) {
  const int y = slab->first + row - 1, last = slab->columns - 1;
  const double* const here = row_of(slab, slab->now, row);
  const double* const above = here - slab->columns;
  const double* const below = here + slab->columns;
  double* const to = row_of(slab, slab->next, row);
  if (y == 0 || y + 1 == slab->all_rows) {
    const double* const beside = y == 0 ? below : above;
    for (int x = 1; x < last; ++x) to[x] = (here[x - 1] + here[x + 1] + beside[x]) / 3;
    return;
  }
  to[0] = (above[0] + below[0] + here[1]) / 3;
  for (int x = 1; x < last; ++x) to[x] = (here[x - 1] + here[x + 1] + above[x] + below[x]) * 0.25;
  to[last] = (above[last] + below[last] + here[last - 1]) / 3;
}

static void exchange(Slab* slab) {
  enum { down, up };
  const int n = slab->columns, last = slab->rows;
  MPI_Request ghosts[2];
  MPI_Irecv(row_of(slab, slab->next, 0), n, MPI_DOUBLE, slab->above, down, MPI_COMM_WORLD, &ghosts[0]);
  MPI_Irecv(row_of(slab, slab->next, last + 1), n, MPI_DOUBLE, slab->below, up, MPI_COMM_WORLD, &ghosts[1]);
  MPI_Send(row_of(slab, slab->next, 1), n, MPI_DOUBLE, slab->above, up, MPI_COMM_WORLD);
  MPI_Send(row_of(slab, slab->next, last), n, MPI_DOUBLE, slab->below, down, MPI_COMM_WORLD);
  MPI_Waitall(2, ghosts, MPI_STATUSES_IGNORE);
}

/* From top to bottom: the upper ghost is needed first, the lower one last. */
static void step(void* state) {
  Slab* const slab = state;
  for (int row = 1; row <= slab->rows; ++row)
    for (int sweep = 0; sweep < slab->sweeps; ++sweep) calculate_row(slab, row);
  exchange(slab);
  double* const old = slab->now;
  slab->now = slab->next;
  slab->next = old;
}

static Slab make_slab(int columns, int all_rows, int sweeps, int rank, int size) {
  const int first = (int)((long)all_rows * rank / size), end = (int)((long)all_rows * (rank + 1) / size);
  const size_t cells = (size_t)columns * (size_t)(end - first + 2);
  Slab slab = {columns,
               all_rows,
               first,
               end - first,
               sweeps,
               room_for(cells, sizeof(double)),
               room_for(cells, sizeof(double)),
               rank > 0 ? rank - 1 : MPI_PROC_NULL,
               rank + 1 < size ? rank + 1 : MPI_PROC_NULL};
  for (int field = 0; field < 2; ++field) {
    double* const rows = field == 0 ? slab.now : slab.next;
    if (first == 0) row_of(&slab, rows, 1)[0] = 1;
    if (end == all_rows) row_of(&slab, rows, slab.rows)[columns - 1] = 1;
  }
  return slab;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int columns = number(argc, argv, 1, 512), rows = number(argc, argv, 2, columns);
  const int steps = number(argc, argv, 4, 20);
  if (columns < 2 || rows < 2 * size) MPI_Abort(MPI_COMM_WORLD, 2);
  Slab slab = make_slab(columns, rows, number(argc, argv, 3, 1), rank, size);

  const double step_ms = time_steps(step, &slab, steps);
  say("poisson", steps, step_ms,
      digest_of(row_of(&slab, slab.now, 1), (size_t)columns * (size_t)slab.rows,
                (size_t)columns * (size_t)slab.first));
  free(slab.now);
  free(slab.next);
  MPI_Finalize();
  return 0;
}
