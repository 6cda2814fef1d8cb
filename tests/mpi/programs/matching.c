// SPDX-License-Identifier: BSD-3-Clause
// Which message a receive takes: any source, any tag, probes, cancelling, messages too long, order, and
// thousands under way at once.
#include "report.h"

static const MPI_Comm world = MPI_COMM_WORLD;

static void any_source_and_tag(void) {
  enum { each = 50 };
  if (rank != 0) {
    for (int i = 0; i < each; ++i) {
      const int what[2] = {rank, i};
      MPI_Send(what, 2, MPI_INT, 0, i % 5, world);
    }
    return;
  }
  int* const next = allocate((size_t)ranks * sizeof(int));
  for (int i = 0; i < each * (ranks - 1); ++i) {
    int what[2];
    MPI_Status status;
    MPI_Recv(what, 2, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, world, &status);
    expect(status.MPI_SOURCE == what[0] && status.MPI_TAG == what[1] % 5);
    expect(what[1] == next[what[0]]++); // one sender's messages in their order
  }
  free(next);
  say("any source, any tag: %d\n", each * (ranks - 1));
}

// By tag from any source and by source with any tag: two receives compete for messages that suit only one.
static void half_wild(void) {
  if (rank != 0) {
    for (int tag = 0; tag < 4; ++tag) MPI_Send(&rank, 1, MPI_INT, 0, tag, world);
    return;
  }
  for (int tag = 3; tag > 0; --tag) {
    int sum = 0;
    for (int i = 1; i < ranks; ++i) {
      int value = 0;
      MPI_Recv(&value, 1, MPI_INT, MPI_ANY_SOURCE, tag, world, MPI_STATUS_IGNORE);
      sum += value;
    }
    expect(sum == ranks * (ranks - 1) / 2);
  }
  for (int from = ranks - 1; from > 0; --from) {
    int value = 0;
    MPI_Status status;
    MPI_Recv(&value, 1, MPI_INT, from, MPI_ANY_TAG, world, &status);
    expect(value == from && status.MPI_TAG == 0);
  }
  say("half wild\n");
}

enum { by_probe, by_iprobe, by_mprobe, by_improbe, probes };

static void probe_by(int way) {
  static char out[100000], in[100000];
  const int length = 1 + 9999 * way + 1000 * left_of_me(), mine = 1 + 9999 * way + 1000 * rank;
  MPI_Request sent;
  MPI_Status status;
  MPI_Message message = MPI_MESSAGE_NULL;
  int flag = 0, count = 0;
  if (way == by_iprobe) {
    MPI_Iprobe(MPI_ANY_SOURCE, 900, world, &flag, &status);
    expect(!flag); // nobody sends with this tag
  }
  fill(out, sizeof out, (unsigned)(rank + way));
  MPI_Isend(out, mine, MPI_CHAR, right_of_me(), 40 + way, world, &sent);
  switch (way) {
  case by_probe: MPI_Probe(left_of_me(), MPI_ANY_TAG, world, &status); break;
  case by_iprobe:
    while (!flag) MPI_Iprobe(MPI_ANY_SOURCE, 40 + way, world, &flag, &status);
    break;
  case by_mprobe: MPI_Mprobe(MPI_ANY_SOURCE, 40 + way, world, &message, &status); break;
  default:
    while (!flag) MPI_Improbe(left_of_me(), MPI_ANY_TAG, world, &flag, &message, &status);
    break;
  }
  MPI_Get_count(&status, MPI_CHAR, &count);
  expect(status.MPI_SOURCE == left_of_me() && status.MPI_TAG == 40 + way && count == length);
  if (way == by_mprobe) {
    MPI_Mrecv(in, count, MPI_CHAR, &message, &status);
  } else if (way == by_improbe) {
    MPI_Request received;
    MPI_Imrecv(in, count, MPI_CHAR, &message, &received);
    MPI_Wait(&received, &status);
  } else {
    MPI_Recv(in, count, MPI_CHAR, status.MPI_SOURCE, status.MPI_TAG, world, &status);
  }
  expect(message == MPI_MESSAGE_NULL && status.MPI_TAG == 40 + way);
  MPI_Get_count(&status, MPI_CHAR, &count);
  expect(count == length && holds(in, (size_t)length, (unsigned)(left_of_me() + way)));
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  say("probe %d: %d %llx\n", way, length, digest(in, (size_t)length));
  MPI_Barrier(world); // before somebody sends what any tag would find
}

// A receive that was cancelled takes nothing; one whose message was there first cannot be cancelled.
static void cancelled_receives(void) {
  MPI_Request request;
  MPI_Status status;
  int value = -1, cancelled = 0;
  for (int i = 0; i < 50; ++i) {
    MPI_Irecv(&value, 1, MPI_INT, i % 2 ? MPI_ANY_SOURCE : left_of_me(), 60, world, &request);
    MPI_Cancel(&request);
    MPI_Wait(&request, &status);
    MPI_Test_cancelled(&status, &cancelled);
    expect(cancelled);
  }
  MPI_Barrier(world);
  MPI_Send(&rank, 1, MPI_INT, right_of_me(), 60, world);
  MPI_Recv(&value, 1, MPI_INT, left_of_me(), 60, world, &status);
  expect(value == left_of_me());
  MPI_Irecv(&value, 1, MPI_INT, left_of_me(), 61, world, &request);
  MPI_Send(&rank, 1, MPI_INT, right_of_me(), 61, world);
  int there = 0;
  while (!there) MPI_Request_get_status(request, &there, &status);
  MPI_Cancel(&request);
  MPI_Wait(&request, &status);
  MPI_Test_cancelled(&status, &cancelled);
  expect(!cancelled && value == left_of_me());
  say("cancelled: 50\n");
}

static void too_long(int room, int length) {
  char* const out = allocate((size_t)length);
  char* const in = allocate((size_t)room + 16);
  MPI_Request sent;
  MPI_Status status;
  int class = MPI_SUCCESS;
  fill(out, (size_t)length, (unsigned)rank);
  memset(in + room, 0x33, 16);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  MPI_Isend(out, length, MPI_CHAR, right_of_me(), 70, world, &sent);
  const int code = MPI_Recv(in, room, MPI_CHAR, left_of_me(), 70, world, &status);
  MPI_Error_class(code, &class);
  expect(class == MPI_ERR_TRUNCATE);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  for (int i = 0; i < 16; ++i) expect(in[room + i] == 0x33);
  MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
  // What follows is whole again.
  MPI_Isend(out, room, MPI_CHAR, right_of_me(), 70, world, &sent);
  MPI_Recv(in, room, MPI_CHAR, left_of_me(), 70, world, &status);
  MPI_Wait(&sent, MPI_STATUS_IGNORE);
  expect(holds(in, (size_t)room, (unsigned)left_of_me()));
  free(out);
  free(in);
}

// Receives are there for none, half or all of the messages when they come.
static void thousands(int posted_first, int backwards) {
  enum { count = 2500, most = 600 };
  MPI_Request* const requests = allocate(2 * count * sizeof(MPI_Request));
  unsigned char* const in = allocate(count * most);
  unsigned char* const out = allocate(count * most);
  MPI_Barrier(world);
  for (int i = 0; i < posted_first; ++i)
    MPI_Irecv(in + i * most, most, MPI_CHAR, left_of_me(), i, world, &requests[i]);
  for (int i = 0; i < count; ++i) {
    fill(out + i * most, (size_t)(i % most), (unsigned)(rank + i));
    MPI_Isend(out + i * most, i % most, MPI_CHAR, right_of_me(), i, world, &requests[count + i]);
  }
  for (int n = posted_first; n < count; ++n) {
    const int i = backwards ? count - 1 - n + posted_first : n;
    MPI_Irecv(in + i * most, most, MPI_CHAR, left_of_me(), i, world, &requests[i]);
  }
  MPI_Waitall(2 * count, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < count; ++i)
    expect(holds(in + i * most, (size_t)(i % most), (unsigned)(left_of_me() + i)));
  say("%d at once, %d posted: %llx\n", count, posted_first, digest(in, count * most));
  free(requests);
  free(in);
  free(out);
}

// More receives than a table of libparc's holds at first are there before a barrier, a look and a message
// that passes them; then their messages are sent synchronously, last first.
static void preposted(int count) {
  MPI_Request* const requests = allocate((size_t)count * sizeof(MPI_Request));
  int* const in = allocate((size_t)count * sizeof(int));
  for (int i = 0; i < count; ++i) MPI_Irecv(&in[i], 1, MPI_INT, left_of_me(), i, world, &requests[i]);
  MPI_Barrier(world);
  int there = 1;
  MPI_Iprobe(left_of_me(), count + 1, world, &there, MPI_STATUS_IGNORE);
  expect(!there);
  int passes = rank;
  MPI_Sendrecv_replace(&passes, 1, MPI_INT, right_of_me(), count, left_of_me(), count, world,
                       MPI_STATUS_IGNORE);
  expect(passes == left_of_me());
  MPI_Request* const sends = allocate((size_t)count * sizeof(MPI_Request));
  int* const out = allocate((size_t)count * sizeof(int));
  for (int i = count; i-- > 0;) {
    out[i] = rank + i;
    MPI_Issend(&out[i], 1, MPI_INT, right_of_me(), i, world, &sends[i]);
  }
  MPI_Waitall(count, sends, MPI_STATUSES_IGNORE);
  MPI_Waitall(count, requests, MPI_STATUSES_IGNORE);
  for (int i = 0; i < count; ++i) expect(in[i] == left_of_me() + i);
  say("%d posted before their barrier\n", count);
  free(requests);
  free(in);
  free(sends);
  free(out);
}

int main(int count, char** words) {
  report_begin(&count, &words);
  if (count > 1 && strcmp(words[1], "backwards") == 0) {
    thousands(0, 1);
    report_end();
    return 0;
  }
  if (count > 1 && strcmp(words[1], "preposted") == 0) {
    preposted(5000);
    report_end();
    return 0;
  }
  if (count > 1) { // Open MPI 4.1.4's own TCP crashes on these
    too_long(4096, 300000);
    too_long(1000, 5 << 20);
    report_end();
    return 0;
  }
  any_source_and_tag();
  MPI_Barrier(world);
  half_wild();
  MPI_Barrier(world);
  for (int way = 0; way < probes; ++way) probe_by(way);
  cancelled_receives();
  too_long(0, 1);
  too_long(100, 101);
  too_long(4096, 50000);
  thousands(0, 0);
  thousands(1250, 0);
  thousands(2500, 0);
  report_end();
  return 0;
}
