// SPDX-License-Identifier: BSD-3-Clause
// Derived types: what lies in pieces goes out and comes in as pieces, of another shape too.
#include "report.h"

static const MPI_Comm world = MPI_COMM_WORLD;

enum { rows = 200, columns = 300 };
static int out[rows][columns], in[rows][columns];

static void fill_table(void) {
  memset(in, 0, sizeof in);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j) out[i][j] = rank * 1000000 + i * 1000 + j;
}

static int from_left(int i, int j) {
  return left_of_me() * 1000000 + i * 1000 + j;
}

// Sends `count` of the type from `at` of the table to the right, and takes the same from the left.
static void exchange(const char* name, const int* from, MPI_Datatype sent, int* to, MPI_Datatype received) {
  MPI_Status status;
  int elements = 0, size = 0;
  MPI_Sendrecv(from, 1, sent, right_of_me(), 1, to, 1, received, left_of_me(), 1, world, &status);
  MPI_Get_elements(&status, received, &elements);
  MPI_Type_size(sent, &size);
  expect(elements == size / (int)sizeof(int));
  say("%s: %d %llx\n", name, elements, digest(in, sizeof in));
}

static void columns_and_rows(void) {
  MPI_Datatype column, row;
  MPI_Type_vector(rows, 1, columns, MPI_INT, &column);
  MPI_Type_contiguous(rows, MPI_INT, &row);
  MPI_Type_commit(&column);
  MPI_Type_commit(&row);
  fill_table();
  exchange("column to column", &out[0][3], column, &in[0][5], column);
  for (int i = 0; i < rows; ++i) expect(in[i][5] == from_left(i, 3) && in[i][4] == 0 && in[i][6] == 0);
  fill_table();
  exchange("column to row", &out[0][3], column, &in[7][0], row);
  for (int i = 0; i < rows; ++i) expect(in[7][i] == from_left(i, 3));
  expect(in[7][rows] == 0);
  fill_table();
  exchange("row to column", &out[9][0], row, &in[0][5], column);
  for (int i = 0; i < rows; ++i) expect(in[i][5] == from_left(9, i));
  MPI_Type_free(&column);
  MPI_Type_free(&row);
}

static void transposed(void) {
  MPI_Datatype column, wide, all;
  MPI_Type_vector(rows, 1, columns, MPI_INT, &column);
  MPI_Type_create_resized(column, 0, sizeof(int), &wide);
  MPI_Type_contiguous(columns, wide, &all);
  MPI_Type_commit(&all);
  fill_table();
  exchange("transposed", &out[0][0], all, &in[0][0], all);
  static int flat[rows * columns];
  MPI_Sendrecv(out, 1, all, right_of_me(), 2, flat, rows * columns, MPI_INT, left_of_me(), 2, world,
               MPI_STATUS_IGNORE);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      expect(in[i][j] == from_left(i, j) && flat[j * rows + i] == from_left(i, j));
  MPI_Type_free(&all);
  MPI_Type_free(&wide);
  MPI_Type_free(&column);
}

static void blocks(void) {
  MPI_Datatype part, listed;
  MPI_Type_create_subarray(2, (int[]){rows, columns}, (int[]){50, 120}, (int[]){20, 30}, MPI_ORDER_C, MPI_INT,
                           &part);
  MPI_Type_commit(&part);
  fill_table();
  exchange("part", &out[0][0], part, &in[0][0], part);
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < columns; ++j)
      expect(in[i][j] == (i >= 20 && i < 70 && j >= 30 && j < 150 ? from_left(i, j) : 0));
  enum { pieces = 40 };
  int lengths[pieces], starts[pieces];
  for (int i = 0; i < pieces; ++i) lengths[i] = i % 7, starts[i] = (pieces - i) * 20;
  MPI_Type_indexed(pieces, lengths, starts, MPI_INT, &listed);
  MPI_Type_commit(&listed);
  fill_table();
  exchange("pieces backwards", &out[0][0], listed, &in[0][0], listed);
  for (int i = 0; i < pieces; ++i)
    for (int k = 0; k < lengths[i]; ++k) {
      const int at = starts[i] + k;
      expect(in[at / columns][at % columns] == from_left(at / columns, at % columns));
    }
  MPI_Type_free(&listed);
  MPI_Type_create_indexed_block(pieces, 3, starts, MPI_INT, &listed);
  MPI_Type_commit(&listed);
  fill_table();
  exchange("equal pieces", &out[0][0], listed, &in[0][0], listed);
  MPI_Type_free(&listed);
  MPI_Type_free(&part);
}

struct particle {
  char kind;
  double place[3];
  short charge;
  int number;
};

static void structures(void) {
  enum { count = 3000 };
  static struct particle mine[count], theirs[count];
  MPI_Datatype plain, type;
  const int lengths[4] = {1, 3, 1, 1};
  const MPI_Aint starts[4] = {offsetof(struct particle, kind), offsetof(struct particle, place),
                              offsetof(struct particle, charge), offsetof(struct particle, number)};
  const MPI_Datatype types[4] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT, MPI_INT};
  MPI_Type_create_struct(4, lengths, starts, types, &plain);
  MPI_Type_create_resized(plain, 0, sizeof(struct particle), &type);
  MPI_Type_commit(&type);
  MPI_Aint low = -1, extent = 0;
  MPI_Type_get_extent(type, &low, &extent);
  expect(low == 0 && extent == sizeof(struct particle));
  memset(theirs, 0x11, sizeof theirs);
  for (int i = 0; i < count; ++i) mine[i] = (struct particle){(char)i, {i, rank, -i}, (short)(2 * i), 7 * i};
  MPI_Request request;
  MPI_Status status;
  MPI_Irecv(theirs, count, type, left_of_me(), 3, world, &request);
  MPI_Send(mine, count - 1, type, right_of_me(), 3, world);
  MPI_Wait(&request, &status);
  int got = 0, elements = 0;
  MPI_Get_count(&status, type, &got);
  MPI_Get_elements(&status, type, &elements);
  expect(got == count - 1 && elements == 6 * (count - 1));
  long sum = 0;
  for (int i = 0; i < got; ++i) {
    const struct particle* const at = &theirs[i];
    expect(at->kind == (char)i && at->place[0] == i && at->place[1] == left_of_me() && at->place[2] == -i);
    expect(at->charge == (short)(2 * i) && at->number == 7 * i);
    sum += at->number;
  }
  expect(theirs[count - 1].number == 0x11111111);
  say("structures: %d %d %ld\n", got, elements, sum);
  MPI_Type_free(&type);
  MPI_Type_free(&plain);
}

// Absolute addresses, and buffers packed by hand.
static void addressed(void) {
  MPI_Datatype type;
  int one = rank, got_one = -1;
  double two = rank + 0.5, got_two = -1;
  const int lengths[2] = {1, 1};
  MPI_Aint at[2];
  MPI_Get_address(&one, &at[0]);
  MPI_Get_address(&two, &at[1]);
  MPI_Type_create_struct(2, lengths, at, (MPI_Datatype[]){MPI_INT, MPI_DOUBLE}, &type);
  MPI_Type_commit(&type);
  char packed[100];
  int size = 0, place = 0, most = 0;
  MPI_Pack_size(1, MPI_INT, world, &most);
  expect(most >= (int)sizeof(int));
  MPI_Request request;
  MPI_Isend(MPI_BOTTOM, 1, type, right_of_me(), 4, world, &request);
  MPI_Status status;
  MPI_Recv(packed, sizeof packed, MPI_PACKED, left_of_me(), 4, world, &status);
  MPI_Get_count(&status, MPI_PACKED, &size);
  MPI_Unpack(packed, size, &place, &got_one, 1, MPI_INT, world);
  MPI_Unpack(packed, size, &place, &got_two, 1, MPI_DOUBLE, world);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  expect(place == size && got_one == left_of_me() && got_two == left_of_me() + 0.5);
  place = 0;
  MPI_Pack(&two, 1, MPI_DOUBLE, packed, sizeof packed, &place, world);
  MPI_Sendrecv_replace(packed, place, MPI_PACKED, right_of_me(), 5, left_of_me(), 5, world,
                       MPI_STATUS_IGNORE);
  size = place, place = 0;
  MPI_Unpack(packed, size, &place, &got_two, 1, MPI_DOUBLE, world);
  expect(got_two == left_of_me() + 0.5);
  MPI_Type_free(&type);
  say("addressed and packed: %d\n", size);
}

// Types in collectives: a column of each rank's table gathered as rows.
static void collected(void) {
  MPI_Datatype column;
  int* const all = allocate((size_t)(ranks * rows) * sizeof(int));
  MPI_Type_vector(rows, 1, columns, MPI_INT, &column);
  MPI_Type_commit(&column);
  fill_table();
  MPI_Allgather(&out[0][2], 1, column, all, rows, MPI_INT, world);
  for (int i = 0; i < ranks * rows; ++i) expect(all[i] == i / rows * 1000000 + i % rows * 1000 + 2);
  MPI_Bcast(&out[0][8], 1, column, ranks - 1, world);
  for (int i = 0; i < rows; ++i) expect(out[i][8] == (ranks - 1) * 1000000 + i * 1000 + 8);
  MPI_Type_free(&column);
  free(all);
  say("collected\n");
}

int main(int count, char** words) {
  report_begin(&count, &words);
  columns_and_rows();
  transposed();
  blocks();
  structures();
  addressed();
  collected();
  report_end();
  return 0;
}
