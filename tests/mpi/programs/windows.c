// SPDX-License-Identifier: BSD-3-Clause
// One-sided: put, get and accumulate by fences, by post and start, and by locks.
#include "report.h"

static const MPI_Comm world = MPI_COMM_WORLD;
enum { cells = 20000 };
static int* window_cells;
static MPI_Win window;

static void clear(void) {
  MPI_Barrier(world);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, window);
  memset(window_cells, 0, cells * sizeof(int));
  MPI_Win_unlock(rank, window);
  MPI_Barrier(world);
}

static void fences(void) {
  static int out[cells], in[cells];
  clear();
  for (int i = 0; i < cells; ++i) out[i] = rank * cells + i;
  MPI_Win_fence(MPI_MODE_NOPRECEDE, window);
  MPI_Put(out, cells, MPI_INT, right_of_me(), 0, cells, MPI_INT, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < cells; ++i) expect(window_cells[i] == left_of_me() * cells + i);
  MPI_Get(in, cells, MPI_INT, left_of_me(), 0, cells, MPI_INT, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < cells; ++i) expect(in[i] == (rank + ranks - 2) % ranks * cells + i);
  for (int to = 0; to < ranks; ++to) MPI_Accumulate(out, 100, MPI_INT, to, 5, 100, MPI_INT, MPI_SUM, window);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, window);
  for (int i = 0; i < 100; ++i) {
    const int added = cells * ranks * (ranks - 1) / 2 + ranks * i;
    expect(window_cells[5 + i] == left_of_me() * cells + 5 + i + added);
  }
  say("fences: %llx\n", digest(window_cells, cells * sizeof(int)));
}

static void post_and_start(void) {
  MPI_Group everyone, sources, targets;
  const int left = left_of_me(), right = right_of_me();
  static int out[cells];
  clear();
  MPI_Comm_group(world, &everyone);
  MPI_Group_incl(everyone, 1, &left, &sources);
  MPI_Group_incl(everyone, 1, &right, &targets);
  for (int round = 1; round <= 5; ++round) {
    for (int i = 0; i < cells; ++i) out[i] = round * rank + i;
    MPI_Win_post(sources, 0, window);
    MPI_Win_start(targets, 0, window);
    MPI_Put(out, cells, MPI_INT, right, 0, cells, MPI_INT, window);
    MPI_Win_complete(window);
    MPI_Win_wait(window);
    for (int i = 0; i < cells; ++i) expect(window_cells[i] == round * left + i);
  }
  MPI_Group_free(&targets);
  MPI_Group_free(&sources);
  MPI_Group_free(&everyone);
  say("post and start: %llx\n", digest(window_cells, cells * sizeof(int)));
}

static void locks(void) {
  enum { rounds = 50 };
  clear();
  const int one = 1;
  for (int i = 0; i < rounds; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, i % ranks, 0, window);
    MPI_Accumulate(&one, 1, MPI_INT, i % ranks, 0, 1, MPI_INT, MPI_SUM, window);
    MPI_Put(&rank, 1, MPI_INT, i % ranks, 1 + rank, 1, MPI_INT, window);
    MPI_Win_unlock(i % ranks, window);
  }
  MPI_Barrier(world);
  int sum = 0, all = 0;
  MPI_Win_lock_all(0, window);
  for (int from = 0; from < ranks; ++from) {
    int got[2] = {-1, -1};
    MPI_Get(got, 2, MPI_INT, from, 0, 2, MPI_INT, window);
    MPI_Win_flush(from, window);
    sum += got[0];
    all += got[1];
  }
  MPI_Win_unlock_all(window);
  expect(sum == rounds * ranks && all == 0);
  say("locks: %d\n", sum);
}

static void counted(void) {
  enum { rounds = 40 };
  clear();
  const int one = 1;
  int last = -1, old = -1;
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < rounds; ++i) {
    int before = -1;
    MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    expect(before > last); // nobody else gets the same number
    last = before;
  }
  MPI_Compare_and_swap(&one, &(int){0}, &old, MPI_INT, right_of_me(), 3, window);
  MPI_Win_flush(right_of_me(), window);
  MPI_Win_unlock_all(window);
  MPI_Barrier(world);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  expect(old == 0 && window_cells[3] == 1 && (rank != 0 || window_cells[0] == rounds * ranks));
  MPI_Win_unlock(rank, window);
  say("counted: %d\n", window_cells[0]);
}

static void use_window(void) {
  fences();
  post_and_start();
  locks();
  counted();
  MPI_Win_free(&window);
}

// Between ranks of one host only, who reach it as memory.
static void shared(void) {
  MPI_Comm here;
  int mine = 0, all = 0;
  MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);
  MPI_Comm_rank(here, &mine);
  MPI_Comm_size(here, &all);
  MPI_Win_allocate_shared(cells * sizeof(int), sizeof(int), MPI_INFO_NULL, here, &window_cells, &window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < cells; ++i) window_cells[i] = rank * cells + i;
  MPI_Win_fence(0, window);
  const int right = (mine + 1) % all;
  MPI_Aint bytes = 0;
  int unit = 0, *theirs = NULL, number = -1;
  MPI_Win_shared_query(window, right, &bytes, &unit, &theirs);
  MPI_Sendrecv(&rank, 1, MPI_INT, (mine + all - 1) % all, 0, &number, 1, MPI_INT, right, 0, here,
               MPI_STATUS_IGNORE);
  expect(bytes == cells * sizeof(int) && unit == sizeof(int));
  for (int i = 0; i < cells; ++i) expect(theirs[i] == number * cells + i);
  MPI_Win_fence(0, window);
  MPI_Win_free(&window);
  MPI_Comm_free(&here);
}

int main(int count, char** words) {
  report_begin(&count, &words);
  MPI_Alloc_mem(cells * sizeof(int), MPI_INFO_NULL, &window_cells);
  MPI_Win_create(window_cells, cells * sizeof(int), sizeof(int), MPI_INFO_NULL, world, &window);
  use_window();
  MPI_Free_mem(window_cells);
  MPI_Win_allocate(cells * sizeof(int), sizeof(int), MPI_INFO_NULL, world, &window_cells, &window);
  use_window();
  shared();
  report_end();
  return 0;
}
