// SPDX-License-Identifier: BSD-3-Clause
// The modes of sending, with sizes of 0 B to 16 MiB, and the ways to wait for their end.
#include "report.h"

static const MPI_Comm world = MPI_COMM_WORLD;
static char* out;
static char* in;

static void check_received(const MPI_Status* status, int source, int tag, int length, unsigned seed) {
  int count = -1;
  MPI_Get_count(status, MPI_CHAR, &count);
  expect(status->MPI_SOURCE == source && status->MPI_TAG == tag && count == length);
  expect(holds(in, (size_t)length, seed));
}

static void every_mode(int length) {
  enum { standard, synchronous, buffered, ready, modes };
  for (int mode = 0; mode < modes; ++mode) {
    if (mode == buffered && length > 65536) continue;
    const int tag = 10 * mode + 1;
    const unsigned seed = (unsigned)(rank * modes + mode);
    MPI_Status status;
    MPI_Request received, sent = MPI_REQUEST_NULL;
    memset(in, 0x55, (size_t)length);
    MPI_Irecv(in, length, MPI_CHAR, left_of_me(), tag, world, &received);
    fill(out, (size_t)length, seed);
    MPI_Barrier(world); // a ready send wants its receive there
    switch (mode) {
    case standard: MPI_Isend(out, length, MPI_CHAR, right_of_me(), tag, world, &sent); break;
    case synchronous: MPI_Issend(out, length, MPI_CHAR, right_of_me(), tag, world, &sent); break;
    case buffered: MPI_Bsend(out, length, MPI_CHAR, right_of_me(), tag, world); break;
    default: MPI_Irsend(out, length, MPI_CHAR, right_of_me(), tag, world, &sent); break;
    }
    MPI_Wait(&received, &status);
    check_received(&status, left_of_me(), tag, length, (unsigned)(left_of_me() * modes + mode));
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
  }
  say("modes %d: %llx\n", length, digest(in, (size_t)length));
}

// Blocking calls, whose receives come after the sends: no two ranks wait for each other.
static void blocking(int length) {
  MPI_Status status;
  fill(out, (size_t)length, (unsigned)rank);
  for (int mode = 0; mode < 3; ++mode) {
    int (*const send)(const void*, int, MPI_Datatype, int, int, MPI_Comm) = mode == 0   ? MPI_Send
                                                                            : mode == 1 ? MPI_Ssend
                                                                                        : MPI_Rsend;
    for (int turn = 0; turn < 2; ++turn) {
      const int sends = rank % 2 == turn, peer = rank ^ 1;
      if (peer >= ranks) continue;
      if (mode == 2) { // it says when its receive is there
        MPI_Request request;
        if (sends) {
          MPI_Recv(NULL, 0, MPI_CHAR, peer, 7, world, MPI_STATUS_IGNORE);
          send(out, length, MPI_CHAR, peer, 8, world);
        } else {
          MPI_Irecv(in, length, MPI_CHAR, peer, 8, world, &request);
          MPI_Send(NULL, 0, MPI_CHAR, peer, 7, world);
          MPI_Wait(&request, &status);
          check_received(&status, peer, 8, length, (unsigned)peer);
        }
      } else if (sends) {
        send(out, length, MPI_CHAR, peer, mode, world);
      } else {
        MPI_Recv(in, length, MPI_CHAR, peer, mode, world, &status);
        check_received(&status, peer, mode, length, (unsigned)peer);
      }
    }
  }
}

// A synchronous send has not ended while nobody can have received it.
static void synchronous_sends_wait(void) {
  const int peer = rank ^ 1;
  if (peer >= ranks) return;
  if (rank % 2 == 0) {
    MPI_Request request;
    int flag = 1;
    MPI_Issend(out, 100, MPI_CHAR, peer, 3, world, &request);
    for (int i = 0; i < 1000; ++i) {
      MPI_Test(&request, &flag, MPI_STATUS_IGNORE);
      expect(!flag);
    }
    MPI_Send(NULL, 0, MPI_CHAR, peer, 4, world);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Recv(NULL, 0, MPI_CHAR, peer, 4, world, MPI_STATUS_IGNORE);
    MPI_Recv(in, 100, MPI_CHAR, peer, 3, world, MPI_STATUS_IGNORE);
  }
  say("a synchronous send waits\n");
}

static void persistent(void) {
  enum { length = 3000, rounds = 20 };
  MPI_Request requests[4];
  MPI_Recv_init(in, length, MPI_CHAR, left_of_me(), 1, world, &requests[0]);
  MPI_Recv_init(in + length, length, MPI_CHAR, left_of_me(), 2, world, &requests[1]);
  MPI_Send_init(out, length, MPI_CHAR, right_of_me(), 1, world, &requests[2]);
  MPI_Ssend_init(out + length, length, MPI_CHAR, right_of_me(), 2, world, &requests[3]);
  for (unsigned round = 0; round < rounds; ++round) {
    fill(out, 2 * length, round + (unsigned)rank);
    MPI_Startall(4, requests);
    MPI_Waitall(4, requests, MPI_STATUSES_IGNORE);
    expect(holds(in, 2 * length, round + (unsigned)left_of_me()));
  }
  for (int i = 0; i < 4; ++i) MPI_Request_free(&requests[i]);
  MPI_Recv_init(in, length, MPI_CHAR, left_of_me(), 1, world, &requests[0]);
  MPI_Bsend_init(out, length, MPI_CHAR, right_of_me(), 1, world, &requests[1]);
  MPI_Start(&requests[0]);
  MPI_Start(&requests[1]);
  MPI_Wait(&requests[1], MPI_STATUS_IGNORE);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  for (int i = 0; i < 2; ++i) MPI_Request_free(&requests[i]);
  say("persistent: %llx\n", digest(in, length));
}

enum { all, any, some, test_all, test_any, test_some, test, ways };

// Sixteen receives by each way to wait; every one ends once.
static void wait_by(int way) {
  enum { count = 16, length = 200 };
  MPI_Request received[count], sent[count];
  MPI_Status statuses[count];
  int ended[count] = {0}, left = count;
  for (int i = 0; i < count; ++i)
    MPI_Irecv(in + i * length, length, MPI_CHAR, left_of_me(), i, world, &received[i]);
  fill(out, count * length, (unsigned)(rank + way));
  for (int i = count - 1; i >= 0; --i) // the other way round
    MPI_Isend(out + i * length, length, MPI_CHAR, right_of_me(), i, world, &sent[i]);
  while (left > 0) {
    int number = 0, which[count], flag = 0;
    switch (way) {
    case all: MPI_Waitall(count, received, statuses), number = count; break;
    case test_all: MPI_Testall(count, received, &flag, statuses), number = flag ? count : 0; break;
    case any: MPI_Waitany(count, received, which, statuses), number = 1; break;
    case test_any: MPI_Testany(count, received, which, &flag, statuses), number = flag; break;
    case some: MPI_Waitsome(count, received, &number, which, statuses); break;
    case test_some: MPI_Testsome(count, received, &number, which, statuses); break;
    default: MPI_Test(&received[which[0] = count - left], &number, statuses); break;
    }
    for (int i = 0; i < number; ++i) {
      const int index = way == all || way == test_all ? i : which[i];
      expect(index >= 0 && index < count && !ended[index]);
      expect(statuses[i].MPI_TAG == index && statuses[i].MPI_SOURCE == left_of_me());
      ended[index] = 1;
    }
    left -= number;
  }
  MPI_Waitall(count, sent, MPI_STATUSES_IGNORE);
  expect(holds(in, count * length, (unsigned)(left_of_me() + way)));
  say("wait %d: %llx\n", way, digest(in, count * length));
}

static void both_at_once(void) {
  for (int length = 1; length <= 1 << 20; length *= 32) {
    MPI_Status status;
    fill(out, (size_t)length, (unsigned)rank);
    MPI_Sendrecv(out, length, MPI_CHAR, right_of_me(), 5, in, 1 << 20, MPI_CHAR, left_of_me(), 5, world,
                 &status);
    check_received(&status, left_of_me(), 5, length, (unsigned)left_of_me());
    MPI_Sendrecv_replace(in, length, MPI_CHAR, right_of_me(), 6, left_of_me(), 6, world, &status);
    check_received(&status, left_of_me(), 6, length, (unsigned)((rank + ranks - 2) % ranks));
  }
  MPI_Sendrecv(out, 10, MPI_CHAR, MPI_PROC_NULL, 5, in, 10, MPI_CHAR, MPI_PROC_NULL, 5, world,
               MPI_STATUS_IGNORE);
  MPI_Request request;
  fill(out, 5000, 77);
  MPI_Isend(out, 5000, MPI_CHAR, rank, 9, world, &request);
  MPI_Recv(in, 5000, MPI_CHAR, rank, 9, world, MPI_STATUS_IGNORE);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(holds(in, 5000, 77));
  say("sendrecv, and to myself: %llx\n", digest(in, 5000));
}

int main(int count, char** words) {
  enum { longest = 16 << 20 };
  int initialized = 1;
  MPI_Initialized(&initialized);
  if (initialized) return 2;
  report_begin(&count, &words);
  out = allocate(longest);
  in = allocate(longest);
  static char attached[4 * 65536 + 4 * MPI_BSEND_OVERHEAD];
  MPI_Buffer_attach(attached, sizeof attached);
  const int lengths[] = {0, 1, 7, 255, 4096, 5000, 65536, 300001, 1 << 20, longest};
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; ++i) {
    every_mode(lengths[i]);
    blocking(lengths[i]);
  }
  synchronous_sends_wait();
  persistent();
  for (int way = 0; way < ways; ++way) wait_by(way);
  both_at_once();
  void* buffer = NULL;
  int length = 0;
  MPI_Buffer_detach(&buffer, &length);
  expect(buffer == attached && length == (int)sizeof attached);
  free(out);
  free(in);
  report_end();
  return 0;
}
