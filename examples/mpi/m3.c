/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A stream of matrices (M3 of erMPI 2005) as a plain MPI program. In every step the master (rank 0) makes a
 * matrix A, sends each slave a slice of its rows, and gathers C = A * B in slices; B is broadcast once.
 *
 *     mpicc -O2 m3.c -o m3 && mpirun -np 3 m3 [SIZE [STEPS]]
 */
#include "result.h"

typedef struct Stream {
  int size; /* rows and columns */
  int rank, slaves;
  int number;         /* of the matrix */
  double* a;          /* all of it, or a slave's slice */
  double* b;          /* transposed */
  double* c;          /* as A; a slice's only */
  double* results[2]; /* of the master, in turn: the next is asked for while the last may still arrive */
  MPI_Request* requests;
} Stream;

static int first_of(const Stream* stream, int slave) {
  return (int)((long)stream->size * (slave - 1) / stream->slaves);
}

static int rows_of(const Stream* stream, int slave) {
  return first_of(stream, slave + 1) - first_of(stream, slave);
}

static double* slice_of(const Stream* stream, double* matrix, int slave) {
  return matrix + (size_t)first_of(stream, slave) * (size_t)stream->size;
}

static void fill(double* matrix, int size, int down, int across, int more, double least) {
  for (int row = 0; row < size; ++row)
    for (int column = 0; column < size; ++column)
      *matrix++ = (double)((row * down + column * across + more) % size) / size + least;
}

static void master_step(void* state) {
  Stream* const stream = state;
  double* const c = stream->results[++stream->number % 2];
  fill(stream->a, stream->size, 31, 17, 7 * stream->number, 0);
  for (int slave = 1; slave <= stream->slaves; ++slave)
    MPI_Irecv(slice_of(stream, c, slave), rows_of(stream, slave) * stream->size, MPI_DOUBLE, slave, 0,
              MPI_COMM_WORLD, &stream->requests[slave - 1]);
  for (int slave = 1; slave <= stream->slaves; ++slave)
    MPI_Send(slice_of(stream, stream->a, slave), rows_of(stream, slave) * stream->size, MPI_DOUBLE, slave, 0,
             MPI_COMM_WORLD);
  MPI_Waitall(stream->slaves, stream->requests, MPI_STATUSES_IGNORE);
}

/* Row by row, as they arrive. */
static void slave_step(void* state) {
  Stream* const stream = state;
  const int n = stream->size, rows = rows_of(stream, stream->rank);
  MPI_Recv(stream->a, rows * n, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  for (int row = 0; row < rows; ++row)
    for (int column = 0; column < n; ++column) {
      const double* const left = stream->a + (size_t)row * (size_t)n;
      const double* const right = stream->b + (size_t)column * (size_t)n;
      double sum = 0;
      for (int k = 0; k < n; ++k) sum += left[k] * right[k];
      stream->c[(size_t)row * (size_t)n + (size_t)column] = sum;
    }
  MPI_Send(stream->c, rows * n, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  Stream stream = {.size = number(argc, argv, 1, 256)};
  const int steps = number(argc, argv, 2, 20);
  MPI_Comm_rank(MPI_COMM_WORLD, &stream.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &stream.slaves);
  if (--stream.slaves == 0) MPI_Abort(MPI_COMM_WORLD, 2);
  const int master = stream.rank == 0, rows = master ? stream.size : rows_of(&stream, stream.rank);
  const size_t all = (size_t)stream.size * (size_t)stream.size, own = (size_t)stream.size * (size_t)rows;
  stream.a = room_for(own, sizeof(double));
  stream.b = room_for(all, sizeof(double));
  stream.c = room_for(master ? 0 : own, sizeof(double));
  for (int i = 0; i < 2; ++i) stream.results[i] = room_for(master ? all : 0, sizeof(double));
  stream.requests = room_for((size_t)stream.slaves, sizeof *stream.requests);
  if (master) fill(stream.b, stream.size, 13, 29, 0, -0.5);
  MPI_Bcast(stream.b, stream.size * stream.size, MPI_DOUBLE, 0, MPI_COMM_WORLD);

  const double step_ms = time_steps(master ? master_step : slave_step, &stream, steps);
  say("m3", steps, step_ms, master ? digest_of(stream.results[stream.number % 2], all, 0) : 0);
  free(stream.a);
  free(stream.b);
  free(stream.c);
  for (int i = 0; i < 2; ++i) free(stream.results[i]);
  free(stream.requests);
  MPI_Finalize();
  return 0;
}
