/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heat equation as a plain MPI program: nothing in it knows of parc. Each rank has some rows of the plate
 * and exchanges one with each neighbour every step, around the calculation (hidden) or before it (blocking).
 *
 *     mpicc -O2 heat.c -o heat && mpirun -np 2 heat [hidden|blocking] [COLUMNS [ROWS [SWEEPS [STEPS]]]]
 *
 * ROWS are those of a rank; SWEEPS is how often the inner rows are relaxed in a step. Prints what a step took
 * and a sum over the plate that is the same bit for bit on any network.
 */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Plate {
  int columns, rows; /* inner ones; row 0 and row rows+1 are the neighbours' */
  double *now, *next;
  int above, below; /* ranks */
} Plate;

static double* row_of(const Plate* plate, double* rows, int row) {
  return rows + (size_t)row * (size_t)plate->columns;
}

static void relax_row(const Plate* plate, int row) {
  const double* here = row_of(plate, plate->now, row);
  const double* up = here - plate->columns;
  const double* down = here + plate->columns;
  double* to = row_of(plate, plate->next, row);
  const int last = plate->columns - 1;
  to[0] = here[0];
  for (int i = 1; i < last; ++i)
    to[i] = here[i] + 0.1 * (up[i] + down[i] + here[i - 1] + here[i + 1] - 4 * here[i]);
  to[last] = here[last];
}

static void relax_inner(const Plate* plate, int sweeps) {
  for (int sweep = 0; sweep < sweeps; ++sweep)
    for (int row = 2; row < plate->rows; ++row) relax_row(plate, row);
}

static void relax_borders(Plate* plate) {
  relax_row(plate, 1);
  relax_row(plate, plate->rows);
  double* const old = plate->now;
  plate->now = plate->next;
  plate->next = old;
}

static void step_hidden(Plate* plate, int sweeps) {
  const int n = plate->columns, last = plate->rows;
  MPI_Request requests[4];
  MPI_Irecv(row_of(plate, plate->now, 0), n, MPI_DOUBLE, plate->above, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(row_of(plate, plate->now, last + 1), n, MPI_DOUBLE, plate->below, 1, MPI_COMM_WORLD,
            &requests[1]);
  MPI_Isend(row_of(plate, plate->now, 1), n, MPI_DOUBLE, plate->above, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(row_of(plate, plate->now, last), n, MPI_DOUBLE, plate->below, 0, MPI_COMM_WORLD, &requests[3]);
  relax_inner(plate, sweeps);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  relax_borders(plate);
}

static void step_blocking(Plate* plate, int sweeps) {
  const int n = plate->columns, last = plate->rows;
  MPI_Sendrecv(row_of(plate, plate->now, last), n, MPI_DOUBLE, plate->below, 0, row_of(plate, plate->now, 0),
               n, MPI_DOUBLE, plate->above, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(row_of(plate, plate->now, 1), n, MPI_DOUBLE, plate->above, 1,
               row_of(plate, plate->now, last + 1), n, MPI_DOUBLE, plate->below, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  relax_inner(plate, sweeps);
  relax_borders(plate);
}

static Plate make_plate(int columns, int rows, int rank, int size) {
  const size_t cells = (size_t)columns * (size_t)(rows + 2);
  Plate plate = {columns,
                 rows,
                 malloc(cells * sizeof(double)),
                 malloc(cells * sizeof(double)),
                 rank > 0 ? rank - 1 : MPI_PROC_NULL,
                 rank + 1 < size ? rank + 1 : MPI_PROC_NULL};
  if (!plate.now || !plate.next) MPI_Abort(MPI_COMM_WORLD, 1);
  for (size_t i = 0; i < cells; ++i) plate.now[i] = (double)((i * 2654435761u + (size_t)rank * 97) % 1000);
  memcpy(plate.next, plate.now, cells * sizeof(double));
  return plate;
}

/* Of the bits of all inner rows, in an order that does not count. */
static uint64_t sum_of(const Plate* plate) {
  uint64_t sum = 0, all = 0;
  const double* cells = row_of(plate, plate->now, 1);
  for (size_t i = 0; i < (size_t)plate->columns * (size_t)plate->rows; ++i) {
    uint64_t bits;
    memcpy(&bits, &cells[i], sizeof bits);
    sum += (bits ^ (bits >> 29)) * (2 * i + 0x9e3779b97f4a7c15u);
  }
  MPI_Allreduce(&sum, &all, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return all;
}

static int number(int argc, char** argv, int place, int otherwise) {
  const int given = place < argc ? atoi(argv[place]) : otherwise;
  return given > 0 ? given : otherwise;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int blocking = argc > 1 && strcmp(argv[1], "blocking") == 0;
  const int columns = number(argc, argv, 2, 10000), rows = number(argc, argv, 3, 32);
  const int sweeps = number(argc, argv, 4, 1), steps = number(argc, argv, 5, 20);
  Plate plate = make_plate(columns, rows, rank, size);
  void (*const step)(Plate*, int) = blocking ? step_blocking : step_hidden;

  double calculation = MPI_Wtime();
  relax_inner(&plate, sweeps);
  calculation = MPI_Wtime() - calculation;
  for (int i = 0; i < 3; ++i) step(&plate, sweeps); /* connections are made, windows open */
  MPI_Barrier(MPI_COMM_WORLD);
  double time = MPI_Wtime();
  for (int i = 0; i < steps; ++i) step(&plate, sweeps);
  time = MPI_Wtime() - time;
  const uint64_t sum = sum_of(&plate);
  if (rank == 0)
    printf("%s: %d ranks, rows of %zu bytes: %.3f ms a step, its calculation alone %.3f ms, sum %016llx\n",
           blocking ? "blocking" : "hidden", size, (size_t)columns * sizeof(double), time / steps * 1e3,
           calculation * 1e3, (unsigned long long)sum);
  free(plate.now);
  free(plate.next);
  MPI_Finalize();
  return 0;
}
