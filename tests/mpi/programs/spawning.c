// SPDX-License-Identifier: BSD-3-Clause
// Programs that are started by this one, and halves of it that meet by a port. WORDS after the name are what
// the children are started with, before this program's path.
#include "report.h"

enum { children = 2, length = 50000 };

static void be_child(MPI_Comm parent) {
  static unsigned char in[length];
  int value = -1, parents = 0;
  MPI_Comm_remote_size(parent, &parents);
  MPI_Bcast(&value, 1, MPI_INT, 0, parent);
  expect(value == 4711);
  MPI_Recv(in, length, MPI_CHAR, parents - 1, 1, parent, MPI_STATUS_IGNORE);
  expect(holds(in, length, (unsigned)rank));
  MPI_Send(in, length, MPI_CHAR, 0, 2, parent);
  MPI_Comm all;
  MPI_Intercomm_merge(parent, 1, &all);
  int mine = 1, sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, all);
  expect(sum == parents + ranks);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&parent);
  MPI_Finalize();
}

static void start_children(const char* command, char** words) {
  MPI_Comm between, all;
  int value = 4711, mine = 1, sum = 0;
  int errors[children] = {-1, -1};
  MPI_Comm_spawn(command, words, children, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, errors);
  for (int i = 0; i < children; ++i) expect(errors[i] == MPI_SUCCESS);
  MPI_Bcast(&value, 1, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, between);
  static unsigned char bytes[length];
  for (int to = 0; rank == ranks - 1 && to < children; ++to) {
    fill(bytes, length, (unsigned)to);
    MPI_Send(bytes, length, MPI_CHAR, to, 1, between);
  }
  for (int from = 0; rank == 0 && from < children; ++from) {
    MPI_Recv(bytes, length, MPI_CHAR, from, 2, between, MPI_STATUS_IGNORE);
    expect(holds(bytes, length, (unsigned)from));
  }
  MPI_Intercomm_merge(between, 0, &all);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, all);
  expect(sum == ranks + children);
  say("with children: %d\n", sum);
  MPI_Comm_free(&all);
  MPI_Comm_disconnect(&between);
}

static void meet_by_port(void) {
  char port[MPI_MAX_PORT_NAME] = "";
  const int asks = rank >= ranks / 2;
  MPI_Comm half, between;
  MPI_Comm_split(MPI_COMM_WORLD, asks, rank, &half);
  if (rank == 0) {
    MPI_Open_port(MPI_INFO_NULL, port);
    MPI_Send(port, sizeof port, MPI_CHAR, ranks / 2, 6, MPI_COMM_WORLD);
  }
  if (rank == ranks / 2) MPI_Recv(port, sizeof port, MPI_CHAR, 0, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  if (asks)
    MPI_Comm_connect(port, MPI_INFO_NULL, 0, half, &between);
  else
    MPI_Comm_accept(port, MPI_INFO_NULL, 0, half, &between);
  int mine = rank, sum = 0;
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, between);
  say("sum of those met: %d\n", sum);
  MPI_Comm_disconnect(&between);
  if (rank == 0) MPI_Close_port(port);
  MPI_Comm_free(&half);
}

int main(int count, char** words) {
  MPI_Comm parent;
  report_begin(&count, &words);
  MPI_Comm_get_parent(&parent);
  if (parent != MPI_COMM_NULL) {
    be_child(parent);
    return 0;
  }
  if (count < 2) {
    start_children(words[0], MPI_ARGV_NULL);
  } else {
    // WORDS, then this program itself.
    char** const all = allocate((size_t)(count + 1) * sizeof(char*));
    for (int i = 2; i < count; ++i) all[i - 2] = words[i];
    all[count - 2] = words[0];
    start_children(words[1], all);
    free(all);
  }
  meet_by_port();
  report_end();
  return 0;
}
