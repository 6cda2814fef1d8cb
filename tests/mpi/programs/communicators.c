// SPDX-License-Identifier: BSD-3-Clause
// Communicators of parts of the world, in other orders, between groups and on grids: messages with the same
// source and tag must not meet.
#include "report.h"

static const MPI_Comm world = MPI_COMM_WORLD;

static int sum_of(MPI_Comm of, int value) {
  int sum = 0;
  MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, of);
  return sum;
}

static void split_and_dup(void) {
  MPI_Comm half, twin;
  int place = 0, size = 0, result = MPI_UNEQUAL;
  MPI_Comm_split(world, rank % 2, -rank, &half); // backwards
  MPI_Comm_rank(half, &place);
  MPI_Comm_size(half, &size);
  expect(size == (ranks + 1 - rank % 2) / 2 && place == size - 1 - rank / 2);
  say("half: %d of %d, sum %d\n", place, size, sum_of(half, rank));
  MPI_Comm_dup(world, &twin);
  MPI_Comm_compare(world, twin, &result);
  expect(result == MPI_CONGRUENT);
  // One receive in each; what was sent first comes second.
  MPI_Request requests[2];
  int in[2] = {-1, -1}, first = 100 + rank, second = 200 + rank;
  MPI_Irecv(&in[0], 1, MPI_INT, left_of_me(), 1, twin, &requests[0]);
  MPI_Irecv(&in[1], 1, MPI_INT, left_of_me(), 1, world, &requests[1]);
  MPI_Send(&first, 1, MPI_INT, right_of_me(), 1, world);
  MPI_Send(&second, 1, MPI_INT, right_of_me(), 1, twin);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  expect(in[0] == 200 + left_of_me() && in[1] == 100 + left_of_me());
  MPI_Comm_free(&twin);
  MPI_Comm_free(&half);
  MPI_Comm none;
  MPI_Comm_split(world, rank == 0 ? MPI_UNDEFINED : 0, 0, &none);
  expect((none == MPI_COMM_NULL) == (rank == 0));
  if (rank != 0) MPI_Comm_free(&none);
}

static void groups(void) {
  MPI_Group everyone, some, others, both;
  MPI_Comm made;
  int size = 0, place = 0;
  const int ends[2] = {ranks - 1, 0};
  MPI_Comm_group(world, &everyone);
  MPI_Group_incl(everyone, 2, ends, &some);
  MPI_Group_excl(everyone, 2, ends, &others);
  MPI_Group_union(some, others, &both);
  MPI_Group_size(both, &size);
  expect(size == ranks);
  int theirs = -1;
  const int zero = 0;
  MPI_Group_translate_ranks(both, 1, &zero, everyone, &theirs);
  expect(theirs == ranks - 1);
  MPI_Comm_create(world, both, &made);
  MPI_Comm_rank(made, &place);
  int value = rank;
  MPI_Bcast(&value, 1, MPI_INT, 0, made);
  expect(value == ranks - 1);
  say("group: %d\n", place);
  MPI_Comm_free(&made);
  MPI_Comm_create_group(world, some, 5, &made);
  if (rank == 0 || rank == ranks - 1) {
    say("ends: %d\n", sum_of(made, rank + 1));
    MPI_Comm_free(&made);
  }
  MPI_Group_free(&everyone);
  MPI_Group_free(&some);
  MPI_Group_free(&others);
  MPI_Group_free(&both);
}

static void between_groups(void) {
  MPI_Comm half, between, merged;
  const int upper = rank >= ranks / 2;
  int is_between = 0, remote = 0, place = 0;
  MPI_Comm_split(world, upper, rank, &half);
  MPI_Intercomm_create(half, 0, world, upper ? 0 : ranks / 2, 8, &between);
  MPI_Comm_test_inter(between, &is_between);
  MPI_Comm_remote_size(between, &remote);
  expect(is_between && remote == (upper ? ranks / 2 : ranks - ranks / 2));
  say("sum of the others: %d\n", sum_of(between, rank));
  int value = rank;
  MPI_Bcast(&value, 1, MPI_INT, upper ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL, between);
  expect(!upper || value == 0);
  if (rank == 0 || rank == ranks / 2) {
    MPI_Status status;
    int theirs = -1;
    MPI_Sendrecv(&rank, 1, MPI_INT, 0, 3, &theirs, 1, MPI_INT, MPI_ANY_SOURCE, 3, between, &status);
    expect(theirs == (upper ? 0 : ranks / 2) && status.MPI_SOURCE == 0);
  }
  MPI_Intercomm_merge(between, !upper, &merged); // the upper half comes first
  MPI_Comm_rank(merged, &place);
  expect(place == (upper ? rank - ranks / 2 : rank + ranks - ranks / 2));
  say("merged: %d, sum %d\n", place, sum_of(merged, rank));
  MPI_Comm_free(&merged);
  MPI_Comm_free(&between);
  MPI_Comm_free(&half);
}

static void grids(void) {
  MPI_Comm grid, row, ring;
  int sizes[2] = {0, 0}, at[2], wraps[2] = {1, 0}, before = 0, after = 0, place = 0;
  MPI_Dims_create(ranks, 2, sizes);
  MPI_Cart_create(world, 2, sizes, wraps, 0, &grid);
  MPI_Comm_rank(grid, &place);
  MPI_Cart_coords(grid, place, 2, at);
  for (int dimension = 0; dimension < 2; ++dimension) {
    int got = -1;
    MPI_Cart_shift(grid, dimension, 1, &before, &after);
    MPI_Sendrecv(&place, 1, MPI_INT, after, 1, &got, 1, MPI_INT, before, 1, grid, MPI_STATUS_IGNORE);
    expect(got == (before == MPI_PROC_NULL ? -1 : before));
  }
  MPI_Cart_sub(grid, (int[]){0, 1}, &row);
  say("grid %d,%d: %d\n", at[0], at[1], sum_of(row, place));
  int neighbours[4] = {-1, -1, -1, -1};
  MPI_Neighbor_allgather(&place, 1, MPI_INT, neighbours, 1, MPI_INT, grid);
  say("neighbours %d %d %d %d\n", neighbours[0], neighbours[1], neighbours[2], neighbours[3]);
  const int from = left_of_me(), to = right_of_me();
  int got = -1;
  const int weight = 1;
  MPI_Dist_graph_create_adjacent(world, 1, &from, &weight, 1, &to, &weight, MPI_INFO_NULL, 0, &ring);
  MPI_Neighbor_alltoall(&rank, 1, MPI_INT, &got, 1, MPI_INT, ring);
  expect(got == left_of_me());
  MPI_Comm_free(&ring);
  MPI_Comm_free(&row);
  MPI_Comm_free(&grid);
}

// Many made and freed: their numbers come back.
static void many(void) {
  long sum = 0;
  for (int i = 0; i < 200; ++i) {
    MPI_Comm made;
    MPI_Comm_split(world, (rank + i) % 2, rank, &made);
    sum += sum_of(made, rank + i);
    MPI_Comm_free(&made);
  }
  say("many: %ld\n", sum);
}

static int copies;
static int copy_attribute(MPI_Comm from, int key, void* extra, void* value, void* made, int* flag) {
  (void)from, (void)key, (void)extra;
  *(void**)made = value;
  *flag = 1;
  ++copies;
  return MPI_SUCCESS;
}

static void attributes(void) {
  const double begun = MPI_Wtime();
  int key = MPI_KEYVAL_INVALID, flag = 0, *highest_tag = NULL, value = 5, *found = NULL;
  MPI_Comm twin;
  MPI_Comm_get_attr(world, MPI_TAG_UB, &highest_tag, &flag);
  expect(flag && *highest_tag >= 32767);
  int got = -1;
  MPI_Sendrecv(&rank, 1, MPI_INT, right_of_me(), *highest_tag, &got, 1, MPI_INT, left_of_me(), *highest_tag,
               world, MPI_STATUS_IGNORE);
  expect(got == left_of_me());
  MPI_Comm_create_keyval(copy_attribute, MPI_COMM_NULL_DELETE_FN, &key, NULL);
  MPI_Comm_set_attr(world, key, &value);
  MPI_Comm_dup(world, &twin);
  MPI_Comm_get_attr(twin, key, &found, &flag);
  expect(flag && found == &value && copies == 1);
  MPI_Comm_free(&twin);
  MPI_Comm_delete_attr(world, key);
  MPI_Comm_free_keyval(&key);
  char name[MPI_MAX_PROCESSOR_NAME];
  int length = 0;
  MPI_Get_processor_name(name, &length);
  expect(length > 0 && MPI_Wtime() >= begun && MPI_Wtick() < 1);
}

int main(int count, char** words) {
  report_begin(&count, &words);
  split_and_dup();
  groups();
  between_groups();
  grids();
  many();
  attributes();
  report_end();
  return 0;
}
