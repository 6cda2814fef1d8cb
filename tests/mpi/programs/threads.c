// SPDX-License-Identifier: BSD-3-Clause
// Threads of each rank that send, receive, probe and reduce at once (MPI_THREAD_MULTIPLE).
#include "threads.h"

static const MPI_Comm world = MPI_COMM_WORLD;
enum { threads = 4, rounds = 60, longest = 70000 };

static void* work(void* given) {
  struct thread* const me = given;
  unsigned char* const out = allocate(longest);
  unsigned char* const in = allocate(longest);
  for (int i = 0; i < rounds; ++i) {
    const int length = i * 7919 % longest, tag = me->number * rounds + i;
    const unsigned seed = (unsigned)(rank * threads + me->number + i);
    const unsigned expected = (unsigned)(left_of_me() * threads + me->number + i);
    MPI_Request sent;
    MPI_Status status;
    int count = -1;
    fill(out, (size_t)length, seed);
    MPI_Isend(out, length, MPI_CHAR, right_of_me(), tag, world, &sent);
    if (i % 3 == 0) {
      MPI_Probe(left_of_me(), tag, world, &status);
      MPI_Get_count(&status, MPI_CHAR, &count);
      expect(count == length);
    }
    if (i % 3 == 1) {
      MPI_Message message;
      MPI_Mprobe(MPI_ANY_SOURCE, tag, world, &message, &status);
      MPI_Mrecv(in, longest, MPI_CHAR, &message, &status);
    } else {
      MPI_Recv(in, longest, MPI_CHAR, i % 2 ? MPI_ANY_SOURCE : left_of_me(), tag, world, &status);
    }
    MPI_Get_count(&status, MPI_CHAR, &count);
    expect(count == length && status.MPI_SOURCE == left_of_me() && holds(in, (size_t)length, expected));
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    int value = rank + i, sum = 0;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, me->own);
    expect(sum == ranks * (ranks - 1) / 2 + ranks * i);
    me->sum += (unsigned long long)sum + digest(in, (size_t)length) % 1000;
  }
  free(out);
  free(in);
  return NULL;
}

int main(int count, char** words) {
  void* (*const parts[threads])(void*) = {work, work, work, work};
  return run_threads(count, words, parts, threads);
}
