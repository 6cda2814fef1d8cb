/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls of libparc that erMPI's programs (examples/poisson, nbody, m3) and bench/rendezvous make, over
 * MPI: in place of libparc.so.0 it lets the same binaries run under mpirun, so that a comparison with Open
 * MPI and MPICH measures the same program. Compiled with each MPI's own mpicc by bench/mpi/compare and
 * bench/rendezvous/rendezvous; no part of what is installed.
 */
#include <mpi.h>
#include <parc/parc.h>
#include <stdlib.h>

enum { most_operations = 4096 };
static MPI_Request requests[most_operations];
static int next_operation = 1;

static int sized(size_t bytes) {
  return bytes <= 0x7fffffff ? (int)bytes : MPI_Abort(MPI_COMM_WORLD, 1);
}

PARC_API int parc_open(parc_context** context) {
  *context = (parc_context*)requests;
  return MPI_Init(NULL, NULL) == MPI_SUCCESS ? PARC_OK : PARC_ENOKERNEL;
}
PARC_API int parc_close(parc_context* context) {
  (void)context;
  return MPI_Finalize() == MPI_SUCCESS ? PARC_OK : PARC_EPEER;
}
PARC_API int parc_rank(const parc_context* context) {
  (void)context;
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}
PARC_API int parc_size(const parc_context* context) {
  (void)context;
  int size;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return size;
}
PARC_API double parc_clock(void) {
  return MPI_Wtime();
}
PARC_API const char* parc_error_detail(void) {
  return "an MPI call failed";
}

PARC_API void* parc_alloc(parc_context* context, size_t bytes) {
  (void)context;
  return malloc(bytes);
}

static int take_operation(void) {
  const int operation = next_operation;
  next_operation = next_operation + 1 < most_operations ? next_operation + 1 : 1;
  return operation;
}
PARC_API parc_op parc_initread(parc_context* context, int peer, int tag, void* buffer, size_t bytes) {
  (void)context;
  const int operation = take_operation();
  MPI_Irecv(buffer, sized(bytes), MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[operation]);
  return operation;
}
PARC_API parc_op parc_initwrite(parc_context* context, int peer, int tag, const void* buffer, size_t bytes) {
  (void)context;
  const int operation = take_operation();
  MPI_Isend(buffer, sized(bytes), MPI_BYTE, peer, tag, MPI_COMM_WORLD, &requests[operation]);
  return operation;
}
PARC_API int parc_write(parc_context* context, int peer, int tag, const void* buffer, size_t bytes) {
  (void)context;
  return MPI_Send(buffer, sized(bytes), MPI_BYTE, peer, tag, MPI_COMM_WORLD) == MPI_SUCCESS ? PARC_OK
                                                                                            : PARC_EPEER;
}
PARC_API int parc_wait(parc_context* context, parc_op operation, parc_status* status) {
  (void)context, (void)status;
  return operation == PARC_OP_NULL || MPI_Wait(&requests[operation], MPI_STATUS_IGNORE) == MPI_SUCCESS
             ? PARC_OK
             : PARC_EPEER;
}
PARC_API int parc_waitall(parc_context* context, int count, parc_op* operations, parc_status* statuses) {
  (void)statuses;
  for (int i = 0; i < count; i++) {
    const int result = parc_wait(context, operations[i], NULL);
    operations[i] = PARC_OP_NULL;
    if (result != PARC_OK) return result;
  }
  return PARC_OK;
}
PARC_API int parc_barrier(parc_context* context) {
  (void)context;
  return MPI_Barrier(MPI_COMM_WORLD) == MPI_SUCCESS ? PARC_OK : PARC_EPEER;
}
PARC_API int parc_settle(parc_context* context, const void* memory, size_t bytes) {
  (void)context, (void)memory, (void)bytes;
  return PARC_OK;
}
PARC_API int parc_cancel(parc_context* context, parc_op operation) {
  (void)context;
  return MPI_Cancel(&requests[operation]) == MPI_SUCCESS ? PARC_OK : PARC_EINVAL;
}
