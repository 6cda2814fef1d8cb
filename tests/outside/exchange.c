/* SPDX-License-Identifier: BSD-3-Clause */
/* Every rank sends its number to the next one, and says whose it got. */
#include <parc/parc.h>
#include <stdio.h>
#include <stdlib.h>

static void check(int64_t result) {
  if (result >= 0) return;
  fprintf(stderr, "exchange: %s\n", parc_error_detail());
  exit(1);
}

int main(void) {
  parc_context* p;
  check(parc_open(&p));
  const int rank = parc_rank(p), size = parc_size(p);
  int32_t got = -1, mine = rank;
  const parc_op in = parc_initread(p, (rank + size - 1) % size, 0, &got, sizeof got);
  check(in);
  check(parc_write(p, (rank + 1) % size, 0, &mine, sizeof mine));
  check(parc_wait(p, in, NULL));
  printf("%d has the number of %d\n", rank, got);
  check(parc_close(p));
  return 0;
}
