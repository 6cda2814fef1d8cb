// SPDX-License-Identifier: BSD-3-Clause
// Threads of each rank of which each uses another part of MPI at the same time (MPI_THREAD_MULTIPLE):
// windows, collectives, persistent requests, communicators that come and go.
#include "threads.h"

enum { rounds = 40, words = 3000 };

static int value_of(int of, int round, int at) {
  return of * 1000003 + round * 7919 + at * 31;
}

static void* use_windows(void* given) {
  struct thread* const me = given;
  int *part = NULL, in[words], out[words];
  MPI_Win window;
  MPI_Win_allocate((words + 1) * sizeof(int), sizeof(int), MPI_INFO_NULL, me->own, &part, &window);
  memset(part, 0, (words + 1) * sizeof(int));
  MPI_Win_lock_all(0, window);
  MPI_Barrier(me->own);
  const int one = 1;
  int before = -1;
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < words; ++i) out[i] = value_of(rank, round, i);
    MPI_Put(out, words, MPI_INT, right_of_me(), 1, words, MPI_INT, window);
    MPI_Win_flush(right_of_me(), window);
    MPI_Get(in, words, MPI_INT, right_of_me(), 1, words, MPI_INT, window);
    MPI_Win_flush(right_of_me(), window);
    expect(memcmp(in, out, sizeof in) == 0);
    MPI_Fetch_and_op(&one, &before, MPI_INT, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    expect(before >= round && before < ranks * rounds);
    me->sum += (unsigned)in[round];
  }
  MPI_Barrier(me->own);
  MPI_Win_unlock_all(window);
  MPI_Barrier(me->own);
  if (rank == 0) expect(part[0] == ranks * rounds);
  MPI_Win_free(&window);
  return NULL;
}

static void* use_collectives(void* given) {
  struct thread* const me = given;
  int* const all = allocate((size_t)ranks * words * sizeof(int));
  int out[words], sums[words];
  for (int round = 0; round < rounds; ++round) {
    MPI_Request gathering;
    for (int i = 0; i < words; ++i) out[i] = value_of(rank, round, i);
    MPI_Iallgather(out, words, MPI_INT, all, words, MPI_INT, me->own, &gathering);
    MPI_Wait(&gathering, MPI_STATUS_IGNORE);
    for (int of = 0; of < ranks; ++of) expect(all[of * words + round] == value_of(of, round, round));
    for (int i = 0; i < words; ++i) out[i] = rank + i;
    MPI_Allreduce(out, sums, words, MPI_INT, MPI_SUM, me->own);
    expect(sums[round] == ranks * (ranks - 1) / 2 + ranks * round);
    MPI_Bcast(out, words, MPI_INT, round % ranks, me->own);
    expect(out[5] == round % ranks + 5);
    MPI_Alltoall(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, all, words, MPI_INT, me->own);
    expect(all[words] == value_of(rank, round, 0));
    me->sum += (unsigned)sums[round];
  }
  free(all);
  return NULL;
}

static void* use_persistent_requests(void* given) {
  struct thread* const me = given;
  enum { each = 4 };
  static int out[each][20000], in[each][20000];
  MPI_Request requests[2 * each];
  for (int i = 0; i < each; ++i) {
    MPI_Recv_init(in[i], 20000, MPI_INT, left_of_me(), i, me->own, &requests[i]);
    MPI_Send_init(out[i], 5000 * (i + 1), MPI_INT, right_of_me(), i, me->own, &requests[each + i]);
  }
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < each; ++i) out[i][4999] = value_of(rank, round, i);
    MPI_Startall(2 * each, requests);
    for (int done = 0; done < each;) {
      int which = -1, count = 0;
      MPI_Status status;
      MPI_Waitany(each, requests, &which, &status);
      MPI_Get_count(&status, MPI_INT, &count);
      expect(which >= 0 && count == 5000 * (which + 1) &&
             in[which][4999] == value_of(left_of_me(), round, which));
      me->sum += (unsigned)in[which][4999];
      ++done;
    }
    MPI_Waitall(each, requests + each, MPI_STATUSES_IGNORE);
  }
  for (int i = 0; i < 2 * each; ++i) MPI_Request_free(&requests[i]);
  return NULL;
}

static void* use_communicators(void* given) {
  struct thread* const me = given;
  for (int round = 0; round < rounds; ++round) {
    MPI_Comm half, copy;
    MPI_Request meeting;
    int mine = rank, size = 0, sum = 0, there = 0;
    MPI_Comm_split(me->own, rank % 2, -rank, &half);
    MPI_Comm_size(half, &size);
    MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, half);
    MPI_Comm_dup(half, &copy);
    MPI_Comm_free(&half);
    MPI_Ibarrier(copy, &meeting);
    while (!there) MPI_Test(&meeting, &there, MPI_STATUS_IGNORE);
    MPI_Comm_free(&copy);
    me->sum += (unsigned)(sum + size);
  }
  return NULL;
}

int main(int count, char** arguments) {
  void* (*const parts[])(void*) = {use_windows, use_collectives, use_persistent_requests, use_communicators};
  return run_threads(count, arguments, parts, sizeof parts / sizeof *parts);
}
