/* SPDX-License-Identifier: BSD-3-Clause */
/* ring.c: ranks exchange 800,000 bytes while they calculate; with an argument, before. */
#include <parc/parc.h>
#include <stdio.h>
#include <time.h>

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

int main(int argc, char** argv) {
  enum { border = 100000, bytes = border * sizeof(double), steps = 20 };
  static double field[500000];
  parc_context* p;
  if (parc_open(&p) != PARC_OK) return fprintf(stderr, "ring: %s\n", parc_error_detail()), 1;
  const int rank = parc_rank(p), size = parc_size(p);
  double* mine = parc_alloc(p, bytes); /* any other memory works, too */
  double* ghost = parc_alloc(p, bytes);

  const double begin = now_ms();
  for (int step = 0; step < steps; step++) {
    for (int i = 0; i < border; i++) mine[i] = rank + step;
    parc_op both[] = {parc_initread(p, (rank + size - 1) % size, 0, ghost, bytes),
                      parc_initwrite(p, (rank + 1) % size, 0, mine, bytes)};
    if (argc > 1) parc_waitall(p, 2, both, NULL);
    for (const double end = now_ms() + 70; now_ms() < end;)
      for (int i = 0; i < 500000; i++) field[i] = 0.5 * field[i] + step;
    if (argc == 1) parc_waitall(p, 2, both, NULL);
    if (ghost[border - 1] != (rank + size - 1) % size + step) return 1;
  }
  if (rank == 0) printf("%s: %.1f ms a step\n", argc > 1 ? argv[1] : "hidden", (now_ms() - begin) / steps);
  return parc_close(p) != PARC_OK;
}
