// SPDX-License-Identifier: BSD-3-Clause
// Every collective, blocking and not, with 0 B to 1 MiB a rank, against what a loop says that it gives.
#include "report.h"

static const MPI_Comm world = MPI_COMM_WORLD;
static int *in, *out; // a block for each rank
static int *lengths, *starts;

static int value(int of, int at) {
  return of * 1000003 + at * 17;
}

static void fill_block(int* block, int count, int of) {
  for (int i = 0; i < count; ++i) block[i] = value(of, i);
}

static int holds_block(const int* block, int count, int of) {
  for (int i = 0; i < count; ++i)
    if (block[i] != value(of, i)) return 0;
  return 1;
}

static void rooted(int count) {
  const int root = count % ranks, all = count * ranks;
  if (rank == root) fill_block(in, count, 5);
  MPI_Bcast(in, count, MPI_INT, root, world);
  expect(holds_block(in, count, 5));

  fill_block(out, count, rank);
  MPI_Gather(out, count, MPI_INT, in, count, MPI_INT, root, world);
  for (int i = 0; rank == root && i < ranks; ++i) expect(holds_block(in + i * count, count, i));

  if (rank == root) fill_block(out, all, 9);
  MPI_Scatter(out, count, MPI_INT, in, count, MPI_INT, root, world);
  for (int i = 0; i < count; ++i) expect(in[i] == value(9, rank * count + i));

  fill_block(out, count, rank);
  MPI_Reduce(out, in, count, MPI_INT, MPI_MAX, root, world);
  expect(rank != root || holds_block(in, count, ranks - 1));
}

static void uneven(int count) {
  for (int i = 0, start = 0; i < ranks; start += lengths[i++])
    starts[i] = start, lengths[i] = count * i / ranks;
  const int mine = lengths[rank], root = ranks - 1;
  fill_block(out, mine, rank);
  memset(in, 0, (size_t)(count * ranks) * sizeof *in);
  MPI_Gatherv(out, mine, MPI_INT, in, lengths, starts, MPI_INT, root, world);
  for (int i = 0; rank == root && i < ranks; ++i) expect(holds_block(in + starts[i], lengths[i], i));
  memset(in, 0, (size_t)(count * ranks) * sizeof *in);
  MPI_Allgatherv(out, mine, MPI_INT, in, lengths, starts, MPI_INT, world);
  for (int i = 0; i < ranks; ++i) expect(holds_block(in + starts[i], lengths[i], i));
  if (rank == root)
    for (int i = 0; i < ranks; ++i) fill_block(out + starts[i], lengths[i], i + 3);
  MPI_Scatterv(out, lengths, starts, MPI_INT, in, mine, MPI_INT, root, world);
  expect(holds_block(in, mine, rank + 3));
  say("uneven %d: %llx\n", count, digest(in, (size_t)mine * sizeof *in));
}

static void to_all(int count) {
  for (int i = 0; i < ranks; ++i) fill_block(out + i * count, count, rank * ranks + i);
  MPI_Alltoall(out, count, MPI_INT, in, count, MPI_INT, world);
  for (int i = 0; i < ranks; ++i) expect(holds_block(in + i * count, count, i * ranks + rank));

  // To rank i go count * (me + i) / (2 * ranks) values.
  int* const sent = allocate((size_t)(2 * ranks) * sizeof(int));
  int* const sent_starts = sent + ranks;
  for (int i = 0; i < ranks; ++i) {
    lengths[i] = sent[i] = count * (rank + i) / (2 * ranks);
    starts[i] = sent_starts[i] = i * count;
  }
  MPI_Alltoallv(out, sent, sent_starts, MPI_INT, in, lengths, starts, MPI_INT, world);
  for (int i = 0; i < ranks; ++i) expect(holds_block(in + starts[i], lengths[i], i * ranks + rank));

  MPI_Datatype* const types = allocate((size_t)ranks * sizeof(MPI_Datatype));
  for (int i = 0; i < ranks; ++i) types[i] = MPI_INT, starts[i] = i * count * (int)sizeof(int);
  memset(in, 0, (size_t)(count * ranks) * sizeof *in);
  MPI_Alltoallw(out, sent, starts, types, in, lengths, starts, types, world);
  for (int i = 0; i < ranks; ++i) expect(holds_block(in + i * count, lengths[i], i * ranks + rank));
  free(types);
  free(sent);

  fill_block(out, count, rank);
  MPI_Allgather(out, count, MPI_INT, in, count, MPI_INT, world);
  for (int i = 0; i < ranks; ++i) expect(holds_block(in + i * count, count, i));
  say("to all %d: %llx\n", count, digest(in, (size_t)(count * ranks) * sizeof *in));
}

// Sums are of whole numbers, as doubles too: they are the same in any order.
static void add(void* from, void* to, int* length, MPI_Datatype* type) {
  (void)type;
  for (int i = 0; i < *length; ++i) ((int*)to)[i] += ((const int*)from)[i];
}

static void reduced(int count) {
  MPI_Op own;
  MPI_Op_create(add, 1, &own);
  for (int i = 0; i < ranks; ++i) lengths[i] = count;
  for (int i = 0; i < count * ranks; ++i) out[i] = (i + rank) % 1000;
  MPI_Allreduce(out, in, count, MPI_INT, MPI_SUM, world);
  say("allreduce %d: %llx", count, digest(in, (size_t)count * sizeof *in));
  MPI_Allreduce(out, in, count, MPI_INT, own, world);
  say(" %llx", digest(in, (size_t)count * sizeof *in));
  memcpy(in, out, (size_t)count * sizeof *in);
  MPI_Allreduce(MPI_IN_PLACE, in, count, MPI_INT, MPI_BXOR, world);
  say(" %llx\n", digest(in, (size_t)count * sizeof *in));
  MPI_Scan(out, in, count, MPI_INT, own, world);
  for (int i = 0; i < count; ++i) {
    int sum = 0;
    for (int of = 0; of <= rank; ++of) sum += (i + of) % 1000;
    expect(in[i] == sum);
  }
  MPI_Exscan(out, in, count, MPI_INT, MPI_MIN, world);
  if (rank > 0) say("exscan: %llx\n", digest(in, (size_t)count * sizeof *in));
  MPI_Reduce_scatter(out, in, lengths, MPI_INT, MPI_SUM, world);
  say("reduce_scatter: %llx", digest(in, (size_t)count * sizeof *in));
  MPI_Reduce_scatter_block(out, in, count, MPI_INT, MPI_SUM, world);
  say(" %llx\n", digest(in, (size_t)count * sizeof *in));
  MPI_Op_free(&own);
}

static void doubles(void) {
  double mine[1000], sums[1000];
  struct {
    double value;
    int of;
  } me = {(rank * 5) % ranks, rank}, least;
  for (int i = 0; i < 1000; ++i) mine[i] = i * (rank + 1);
  MPI_Allreduce(mine, sums, 1000, MPI_DOUBLE, MPI_SUM, world);
  for (int i = 0; i < 1000; ++i) expect(sums[i] == i * ranks * (ranks + 1) / 2.0);
  MPI_Allreduce(&me, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, world);
  expect(least.value == 0 && least.of == 0);
}

// Several at once, whose ends come in any order.
static void nonblocking(int count) {
  enum { calls = 6 };
  MPI_Request requests[calls];
  int* const blocks = allocate((size_t)(calls * count * ranks) * sizeof(int));
  int* at[calls];
  for (int i = 0; i < calls; ++i) at[i] = blocks + i * count * ranks;
  if (rank == 0) fill_block(at[0], count, 4);
  for (int i = 0; i < ranks; ++i) fill_block(out + i * count, count, rank * ranks + i);
  MPI_Ibcast(at[0], count, MPI_INT, 0, world, &requests[0]);
  MPI_Iallreduce(out, at[1], count, MPI_INT, MPI_MAX, world, &requests[1]);
  MPI_Ialltoall(out, count, MPI_INT, at[2], count, MPI_INT, world, &requests[2]);
  MPI_Iallgather(out, count, MPI_INT, at[3], count, MPI_INT, world, &requests[3]);
  MPI_Igather(out, count, MPI_INT, at[4], count, MPI_INT, ranks - 1, world, &requests[4]);
  MPI_Ibarrier(world, &requests[5]);
  MPI_Waitall(calls, requests, MPI_STATUSES_IGNORE);
  expect(holds_block(at[0], count, 4) && holds_block(at[1], count, (ranks - 1) * ranks));
  for (int i = 0; i < ranks; ++i) {
    expect(holds_block(at[2] + i * count, count, i * ranks + rank));
    expect(holds_block(at[3] + i * count, count, i * ranks));
    expect(rank != ranks - 1 || holds_block(at[4] + i * count, count, i * ranks));
  }
  say("at once %d: %llx\n", count, digest(blocks, (size_t)(calls * count * ranks) * sizeof(int)));
  free(blocks);
}

int main(int count, char** words) {
  enum { most = 1 << 18 }; // ints: 1 MiB
  report_begin(&count, &words);
  in = allocate((size_t)(most * ranks) * sizeof *in);
  out = allocate((size_t)(most * ranks) * sizeof *out);
  lengths = allocate((size_t)ranks * sizeof *lengths);
  starts = allocate((size_t)ranks * sizeof *starts);
  const int counts[] = {0, 1, 3, 1000, 20011, most};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; ++i) {
    rooted(counts[i]);
    uneven(counts[i]);
    to_all(counts[i]);
    reduced(counts[i]);
    if (counts[i] != most) nonblocking(counts[i]);
    MPI_Barrier(world);
  }
  doubles();
  free(in);
  free(out);
  free(lengths);
  free(starts);
  report_end();
  return 0;
}
