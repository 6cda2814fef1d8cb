// SPDX-License-Identifier: BSD-3-Clause
// Windows over memory of every kind, many at once and one after the other, with threads allowed: what MPI
// registers of them. Their targets need not call MPI.
#include "report.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const MPI_Comm world = MPI_COMM_WORLD;

static MPI_Win window_over(void* memory, size_t bytes, int unit) {
  MPI_Win window;
  MPI_Win_create(memory, (MPI_Aint)bytes, unit, MPI_INFO_NULL, world, &window);
  return window;
}

// As coarrays have them.
static void many_at_once(void) {
  enum { many = 40, cells = 20000 };
  static MPI_Win windows[many];
  static double* memory[many];
  double* const got = malloc(cells * sizeof *got);
  for (int i = 0; i < many; ++i) {
    if (i % 2 != 0) {
      MPI_Win_allocate(cells * sizeof(double), sizeof(double), MPI_INFO_NULL, world, &memory[i], &windows[i]);
    } else {
      memory[i] = malloc(cells * sizeof(double));
      windows[i] = window_over(memory[i], cells * sizeof(double), sizeof(double));
    }
    for (int k = 0; k < cells; ++k) memory[i][k] = rank * 1e6 + i * 1e3 + k % 1000;
  }
  MPI_Barrier(world);
  const int from = right_of_me();
  for (int i = 0; i < many; ++i) {
    MPI_Win_lock(MPI_LOCK_SHARED, from, 0, windows[i]);
    MPI_Get(got, cells, MPI_DOUBLE, from, 0, cells, MPI_DOUBLE, windows[i]);
    MPI_Win_unlock(from, windows[i]);
    for (int k = 0; k < cells; ++k) expect(got[k] == from * 1e6 + i * 1e3 + k % 1000);
  }
  MPI_Barrier(world);
  for (int i = 0; i < many; ++i) {
    MPI_Win_free(&windows[i]);
    if (i % 2 == 0) free(memory[i]);
  }
  free(got);
}

static void one_after_the_other(void) {
  long* const memory = malloc(65536 * sizeof *memory);
  for (int i = 0; i < 200; ++i) {
    MPI_Win window = window_over(memory, 65536 * sizeof *memory, sizeof *memory);
    MPI_Win_free(&window);
  }
  free(memory);
}

// Memory that comes to a window and goes again, at several addresses at a time.
static void attached(void) {
  enum { cells = 20000, blocks = 3 };
  MPI_Win window;
  MPI_Win_create_dynamic(MPI_INFO_NULL, world, &window);
  int* const buffer = malloc(cells * sizeof *buffer);
  for (int i = 0; i < 20; ++i) {
    int* memory[blocks];
    MPI_Aint mine[blocks], theirs[blocks];
    for (int b = 0; b < blocks; ++b) {
      memory[b] = malloc(cells * sizeof **memory);
      for (int k = 0; k < cells; ++k) memory[b][k] = rank * 1000000 + 100 * i + b + k;
      MPI_Win_attach(window, memory[b], cells * sizeof **memory);
      MPI_Get_address(memory[b], &mine[b]);
    }
    const int to = right_of_me(), from = left_of_me();
    MPI_Sendrecv(mine, blocks, MPI_AINT, from, 0, theirs, blocks, MPI_AINT, to, 0, world, MPI_STATUS_IGNORE);
    MPI_Win_lock(MPI_LOCK_SHARED, to, 0, window);
    for (int b = 0; b < blocks; ++b) {
      MPI_Get(buffer, cells, MPI_INT, to, theirs[b], cells, MPI_INT, window);
      MPI_Win_flush(to, window);
      for (int k = 0; k < cells; ++k) expect(buffer[k] == to * 1000000 + 100 * i + b + k);
      for (int k = 0; k < cells; ++k) buffer[k] = -1 - buffer[k];
      MPI_Put(buffer, cells, MPI_INT, to, theirs[b], cells, MPI_INT, window);
      MPI_Win_flush(to, window);
    }
    MPI_Win_unlock(to, window);
    MPI_Barrier(world);
    MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
    for (int b = 0; b < blocks; ++b)
      for (int k = 0; k < cells; ++k) expect(memory[b][k] == -1 - (rank * 1000000 + 100 * i + b + k));
    MPI_Win_unlock(rank, window);
    MPI_Barrier(world);
    for (int b = 0; b < blocks; ++b) {
      MPI_Win_detach(window, memory[b]);
      free(memory[b]);
    }
  }
  MPI_Win_free(&window);
  free(buffer);
}

// What MPI knows of a buffer must not outlive it.
static void freed_between_puts(void) {
  enum { bytes = 300000 };
  char* const memory = malloc(2 * bytes);
  MPI_Win window = window_over(memory, 2 * bytes, 1);
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < 20; ++i) {
    for (int half = 0; half < 2; ++half) {
      char* const text = malloc(bytes);
      memset(text, i + 100 * half, bytes);
      MPI_Request put;
      MPI_Rput(text, bytes, MPI_CHAR, right_of_me(), half * bytes, bytes, MPI_CHAR, window, &put);
      MPI_Wait(&put, MPI_STATUS_IGNORE);
      MPI_Win_flush(right_of_me(), window);
      free(text);
    }
    MPI_Barrier(world);
    MPI_Win_sync(window);
    for (int k = 0; k < bytes; k += 997) expect(memory[k] == i && memory[bytes + k] == (char)(i + 100));
    MPI_Barrier(world);
  }
  MPI_Win_unlock_all(window);
  MPI_Win_free(&window);
  free(memory);
}

// A child sees what its parent had, whatever is put meanwhile.
static void forked(void) {
  enum { cells = 100000 };
  int* const memory = malloc(cells * sizeof *memory);
  int* const out = malloc(cells * sizeof *out);
  for (int k = 0; k < cells; ++k) memory[k] = rank, out[k] = -1 - rank;
  MPI_Win window = window_over(memory, cells * sizeof *memory, sizeof *memory);
  int both[2];
  expect(pipe(both) == 0);
  const pid_t child = fork();
  if (child == 0) {
    char go;
    if (read(both[0], &go, 1) != 1) _exit(1);
    for (int k = 0; k < cells; ++k)
      if (memory[k] != rank) _exit(2);
    _exit(0);
  }
  MPI_Win_fence(0, window);
  MPI_Put(out, cells, MPI_INT, right_of_me(), 0, cells, MPI_INT, window);
  MPI_Win_fence(0, window);
  for (int k = 0; k < cells; ++k) expect(memory[k] == -1 - left_of_me());
  int status = 0;
  expect(write(both[1], "", 1) == 1 && waitpid(child, &status, 0) == child && status == 0);
  close(both[0]), close(both[1]);
  MPI_Win_free(&window);
  free(memory), free(out);
}

static void get_all(MPI_Win window, size_t cells) {
  int* const got = malloc(cells * sizeof *got);
  MPI_Win_fence(0, window);
  MPI_Get(got, (int)cells, MPI_INT, right_of_me(), 0, (int)cells, MPI_INT, window);
  MPI_Win_fence(0, window);
  for (size_t k = 0; k < cells; ++k) expect(got[k] == right_of_me() * 10000 + (int)k);
  MPI_Win_free(&window);
  free(got);
}

static void of_other_kinds(void) {
  enum { cells = 5000 };
  static int data[cells];
  int stack[cells];
  int* const mapped = mmap(NULL, sizeof data, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  expect(mapped != MAP_FAILED);
  for (int k = 0; k < cells; ++k) data[k] = stack[k] = mapped[k] = rank * 10000 + k;
  get_all(window_over(data, sizeof data, sizeof *data), cells);
  get_all(window_over(stack, sizeof stack, sizeof *stack), cells);
  get_all(window_over(mapped, sizeof data, sizeof *mapped), cells);
  munmap(mapped, sizeof data);
}

// Everybody counts on rank 0, by operations, by locks and by accumulation.
static void counted(void) {
  long words[3] = {0, 0, 0};
  MPI_Win window = window_over(words, sizeof words, sizeof *words);
  const long one = 1;
  long last = -1;
  MPI_Win_lock_all(0, window);
  for (int i = 0; i < 30; ++i) {
    long before = -1;
    MPI_Fetch_and_op(&one, &before, MPI_LONG, 0, 0, MPI_SUM, window);
    MPI_Win_flush(0, window);
    expect(before > last);
    last = before;
    MPI_Accumulate(&one, 1, MPI_LONG, 0, 1, 1, MPI_LONG, MPI_SUM, window);
  }
  MPI_Win_unlock_all(window);
  for (int i = 0; i < 10; ++i) {
    long word = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, window);
    MPI_Get(&word, 1, MPI_LONG, 0, 2, 1, MPI_LONG, window);
    MPI_Win_flush(0, window);
    ++word;
    MPI_Put(&word, 1, MPI_LONG, 0, 2, 1, MPI_LONG, window);
    MPI_Win_unlock(0, window);
  }
  MPI_Barrier(world);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, window);
  if (rank == 0) expect(words[0] == 30L * ranks && words[1] == 30L * ranks && words[2] == 10L * ranks);
  MPI_Win_unlock(rank, window);
  MPI_Win_free(&window);
}

// Rank 0 gets from a rank that is out of MPI until it has been told that, by a file.
static void from_one_outside_of_mpi(void) {
  long word = 1000 + rank;
  MPI_Win window = window_over(&word, sizeof word, sizeof word);
  MPI_Barrier(world);
  if (rank == 0) {
    for (int i = 0; i < 20; ++i) {
      long got = 0;
      MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
      MPI_Get(&got, 1, MPI_LONG, 1, 0, 1, MPI_LONG, window);
      MPI_Win_unlock(1, window);
      expect(got == 1001);
    }
    const long told = -1;
    MPI_Win_lock(MPI_LOCK_SHARED, 1, 0, window);
    MPI_Put(&told, 1, MPI_LONG, 1, 0, 1, MPI_LONG, window);
    MPI_Win_unlock(1, window);
  } else if (rank == 1) {
    while (*(volatile long*)&word != -1) continue;
  }
  MPI_Barrier(world);
  MPI_Win_free(&window);
}

int main(int count, char** words) {
  int level = 0;
  MPI_Init_thread(&count, &words, MPI_THREAD_MULTIPLE, &level);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &ranks);
  expect(level == MPI_THREAD_MULTIPLE);
  many_at_once();
  one_after_the_other();
  attached();
  freed_between_puts();
  forked();
  of_other_kinds();
  counted();
  from_one_outside_of_mpi();
  say("right\n");
  report_end();
}
