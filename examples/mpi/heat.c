/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heat equation as a plain MPI program: nothing in it knows of parc. Each rank has some rows of the plate
 * and exchanges one with each neighbour every step, around the calculation (hidden) or before it (blocking).
 *
 *     mpicc -O2 heat.c -o heat && mpirun -np 2 heat [hidden|blocking] [COLUMNS [ROWS [SWEEPS [STEPS]]]]
 *
 * ROWS are those of a rank; SWEEPS is how often the inner rows are relaxed in a step.
 */
#include "result.h"

typedef struct Plate {
  int columns, rows; /* inner ones; row 0 and row rows+1 are the neighbours' */
  int sweeps;
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

static void relax_inner(const Plate* plate) {
  for (int sweep = 0; sweep < plate->sweeps; ++sweep)
    for (int row = 2; row < plate->rows; ++row) relax_row(plate, row);
}

static void relax_borders(Plate* plate) {
  relax_row(plate, 1);
  relax_row(plate, plate->rows);
  double* const old = plate->now;
  plate->now = plate->next;
  plate->next = old;
}

static void step_hidden(void* state) {
  Plate* const plate = state;
  const int n = plate->columns, last = plate->rows;
  MPI_Request requests[4];
  MPI_Irecv(row_of(plate, plate->now, 0), n, MPI_DOUBLE, plate->above, 0, MPI_COMM_WORLD, &requests[0]);
  MPI_Irecv(row_of(plate, plate->now, last + 1), n, MPI_DOUBLE, plate->below, 1, MPI_COMM_WORLD,
            &requests[1]);
  MPI_Isend(row_of(plate, plate->now, 1), n, MPI_DOUBLE, plate->above, 1, MPI_COMM_WORLD, &requests[2]);
  MPI_Isend(row_of(plate, plate->now, last), n, MPI_DOUBLE, plate->below, 0, MPI_COMM_WORLD, &requests[3]);
  relax_inner(plate);
  MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
  relax_borders(plate);
}

static void step_blocking(void* state) {
  Plate* const plate = state;
  const int n = plate->columns, last = plate->rows;
  MPI_Sendrecv(row_of(plate, plate->now, last), n, MPI_DOUBLE, plate->below, 0, row_of(plate, plate->now, 0),
               n, MPI_DOUBLE, plate->above, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(row_of(plate, plate->now, 1), n, MPI_DOUBLE, plate->above, 1,
               row_of(plate, plate->now, last + 1), n, MPI_DOUBLE, plate->below, 1, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  relax_inner(plate);
  relax_borders(plate);
}

static Plate make_plate(int columns, int rows, int sweeps, int rank, int size) {
  const size_t cells = (size_t)columns * (size_t)(rows + 2);
  Plate plate = {columns,
                 rows,
                 sweeps,
                 room_for(cells, sizeof(double)),
                 room_for(cells, sizeof(double)),
                 rank > 0 ? rank - 1 : MPI_PROC_NULL,
                 rank + 1 < size ? rank + 1 : MPI_PROC_NULL};
  for (size_t i = 0; i < cells; ++i) plate.now[i] = (double)((i * 2654435761u + (size_t)rank * 97) % 1000);
  memcpy(plate.next, plate.now, cells * sizeof(double));
  return plate;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, size;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const int blocking = argc > 1 && strcmp(argv[1], "blocking") == 0;
  const int steps = number(argc, argv, 5, 20);
  Plate plate = make_plate(number(argc, argv, 2, 10000), number(argc, argv, 3, 32), number(argc, argv, 4, 1),
                           rank, size);

  double calculation = MPI_Wtime();
  relax_inner(&plate);
  calculation = MPI_Wtime() - calculation;
  const double step_ms = time_steps(blocking ? step_blocking : step_hidden, &plate, steps);
  const size_t cells = (size_t)plate.columns * (size_t)plate.rows;
  say("heat", steps, step_ms, digest_of(row_of(&plate, plate.now, 1), cells, (size_t)rank * cells));
  if (rank == 0) fprintf(stderr, "heat: its calculation alone %.3f ms\n", calculation * 1e3);
  free(plate.now);
  free(plate.next);
  MPI_Finalize();
  return 0;
}
