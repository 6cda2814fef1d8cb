/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport.h"

#include <mpi.h>
#include <stdlib.h>

struct Transfer {
  MPI_Request request;
};
static int other;

int transport_begin(int count, char** words, int own) {
  (void)own;
  int rank, size;
  MPI_Init(&count, &words);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (size != 2) fail("there are %d ranks", size);
  other = 1 - rank;
  return rank;
}

void* transport_memory(size_t bytes) {
  void* memory = NULL;
  MPI_Alloc_mem((MPI_Aint)bytes, MPI_INFO_NULL, &memory);
  return memory;
}

Transfer* transport_send(const void* data, size_t bytes, int tag) {
  Transfer* const made = new_memory(sizeof *made);
  MPI_Isend(data, (int)bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, &made->request);
  return made;
}

Transfer* transport_receive(void* data, size_t bytes, int tag) {
  Transfer* const made = new_memory(sizeof *made);
  MPI_Irecv(data, (int)bytes, MPI_BYTE, other, tag, MPI_COMM_WORLD, &made->request);
  return made;
}

void transport_wait(Transfer* transfer) {
  MPI_Wait(&transfer->request, MPI_STATUS_IGNORE);
  free(transfer);
}

void transport_end(void) {
  MPI_Finalize();
}
