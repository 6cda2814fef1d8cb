// SPDX-License-Identifier: BSD-3-Clause
// A file that all ranks write and read (MPI-IO), in the directory where they run.
#include "report.h"

enum { length = 30000 };

int main(int count, char** words) {
  report_begin(&count, &words);
  char name[] = "mpi-files.data";
  int *const mine = allocate(length * sizeof(int)), *const read = allocate(length * sizeof(int));
  for (int i = 0; i < length; ++i) mine[i] = rank * length + i;
  MPI_File file;
  MPI_Status status;
  int got = -1;
  expect(MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                       MPI_INFO_NULL, &file) == MPI_SUCCESS);
  MPI_File_write_at_all(file, (MPI_Offset)sizeof(int) * rank * length, mine, length, MPI_INT, &status);
  MPI_Get_count(&status, MPI_INT, &got);
  expect(got == length);
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_read_at(file, (MPI_Offset)sizeof(int) * left_of_me() * length, read, length, MPI_INT, &status);
  MPI_Get_count(&status, MPI_INT, &got);
  expect(got == length);
  for (int i = 0; i < length; ++i) expect(read[i] == left_of_me() * length + i);
  say("blocks: %llx\n", digest(read, length * sizeof(int)));

  // Every ranks-th number is mine: what the others have written in between comes by messages.
  MPI_Datatype every;
  MPI_Type_create_resized(MPI_INT, 0, (MPI_Aint)sizeof(int) * ranks, &every);
  MPI_Type_commit(&every);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_set_view(file, (MPI_Offset)sizeof(int) * rank, MPI_INT, every, "native", MPI_INFO_NULL);
  MPI_File_read_all(file, read, length, MPI_INT, &status);
  for (int i = 0; i < length; ++i) expect(read[i] == rank + i * ranks);
  for (int i = 0; i < length; ++i) mine[i] = -read[i];
  MPI_File_write_at_all(file, 0, mine, length, MPI_INT, &status);
  MPI_File_sync(file);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_File_set_view(file, 0, MPI_INT, MPI_INT, "native", MPI_INFO_NULL);
  MPI_File_read_at_all(file, (MPI_Offset)right_of_me() * length, read, length, MPI_INT, &status);
  for (int i = 0; i < length; ++i) expect(read[i] == -(right_of_me() * length + i));
  MPI_Offset size = 0;
  MPI_File_get_size(file, &size);
  expect(size == (MPI_Offset)sizeof(int) * ranks * length);
  say("views: %llx\n", digest(read, length * sizeof(int)));
  MPI_Type_free(&every);
  MPI_File_close(&file);
  free(mine);
  free(read);
  report_end();
  return 0;
}
