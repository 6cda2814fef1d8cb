// SPDX-License-Identifier: BSD-3-Clause
// One of several programs of a job: which of them, by MPI_APPNUM, and with what words. With the word "spawn",
// rank 0's job starts others by MPI_Comm_spawn_multiple.
#include "report.h"

static int number_of_app(void) {
  int* number = NULL;
  int there = 0;
  MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_APPNUM, &number, &there);
  return there ? *number : -1;
}

static void spawn_others(char* self) {
  enum { one = 1, two = 2, all = one + two };
  char* commands[] = {self, self};
  char *first[] = {"a", NULL}, *second[] = {"b", "c", NULL};
  char** words[] = {first, second};
  const int counts[] = {one, two};
  MPI_Info infos[] = {MPI_INFO_NULL, MPI_INFO_NULL};
  int errors[all] = {-1, -1, -1};
  MPI_Comm between;
  MPI_Comm_spawn_multiple(2, commands, words, counts, infos, 0, MPI_COMM_WORLD, &between, errors);
  for (int i = 0; i < all; ++i) expect(errors[i] == MPI_SUCCESS);
  int told[2 * all] = {0};
  MPI_Gather(NULL, 0, MPI_INT, told, 2, MPI_INT, rank == 0 ? MPI_ROOT : MPI_PROC_NULL, between);
  for (int i = 0; rank == 0 && i < all; ++i)
    say("child %d: app %d, %d words\n", i, told[2 * i], told[2 * i + 1]);
  MPI_Comm_disconnect(&between);
}

int main(int count, char** words) {
  report_begin(&count, &words);
  MPI_Comm parent;
  MPI_Comm_get_parent(&parent);
  int mine[] = {number_of_app(), count - 1};
  if (parent != MPI_COMM_NULL) {
    MPI_Gather(mine, 2, MPI_INT, NULL, 0, MPI_INT, 0, parent);
    MPI_Comm_disconnect(&parent);
    MPI_Finalize();
    return 0;
  }
  const char* const variable = getenv("PARC_TEST_APP");
  if (count > 1 && strcmp(words[1], "spawn") == 0)
    spawn_others(words[0]);
  else
    say("app %d, %d words, %s\n", mine[0], mine[1], variable ? variable : "no variable");
  report_end();
  return 0;
}
