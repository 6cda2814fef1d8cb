// SPDX-License-Identifier: BSD-3-Clause
// Two jobs that meet by a name: "serve NAME" publishes a port, "call NAME" looks for it until it is there.
#include "report.h"

#include <time.h>

static int look_up(const char* name, char* port) {
  const int code = MPI_Lookup_name(name, MPI_INFO_NULL, port);
  int class = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &class);
  expect(class == MPI_SUCCESS || class == MPI_ERR_NAME);
  return class == MPI_SUCCESS;
}

static void talk(MPI_Comm between) {
  int theirs = 0, mine = rank + 1, sum = 0;
  MPI_Comm_remote_size(between, &theirs);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, between);
  expect(sum == theirs * (theirs + 1) / 2);
  enum { length = 50000 };
  static unsigned char in[length], out[length];
  fill(out, length, (unsigned)rank);
  if (rank < theirs) {
    MPI_Sendrecv(out, length, MPI_CHAR, rank, 1, in, length, MPI_CHAR, rank, 1, between, MPI_STATUS_IGNORE);
    expect(holds(in, length, (unsigned)rank));
  }
  say("met %d\n", theirs);
}

int main(int count, char** words) {
  report_begin(&count, &words);
  expect(count == 3);
  const int serves = strcmp(words[1], "serve") == 0;
  char port[MPI_MAX_PORT_NAME] = "";
  MPI_Comm between;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (serves) {
    if (rank == 0) {
      MPI_Open_port(MPI_INFO_NULL, port);
      expect(!look_up(words[2], port));
      expect(MPI_Publish_name(words[2], MPI_INFO_NULL, port) == MPI_SUCCESS);
      expect(MPI_Publish_name(words[2], MPI_INFO_NULL, port) != MPI_SUCCESS);
    }
    expect(MPI_Comm_accept(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between) == MPI_SUCCESS);
  } else {
    const struct timespec pause = {0, 20000000};
    while (rank == 0 && !look_up(words[2], port)) nanosleep(&pause, NULL);
    expect(MPI_Comm_connect(port, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between) == MPI_SUCCESS);
  }
  talk(between);
  MPI_Comm_disconnect(&between);
  if (serves && rank == 0) {
    expect(MPI_Unpublish_name(words[2], MPI_INFO_NULL, port) == MPI_SUCCESS);
    expect(!look_up(words[2], port));
    MPI_Close_port(port);
  }
  report_end();
  return 0;
}
