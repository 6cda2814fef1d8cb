/* SPDX-License-Identifier: BSD-3-Clause */
#include "transport.h"

#include <parc/parc.h>
#include <stdint.h>

static parc_context* parc;
static int other;

static Transfer* started(parc_op operation) {
  if (operation < 0) fail("%s", parc_error_detail());
  return (Transfer*)(intptr_t)operation;
}

int transport_begin(int count, char** words, int own) {
  (void)count, (void)words, (void)own;
  if (parc_open(&parc) != PARC_OK) fail("%s", parc_error_detail());
  if (parc_size(parc) != 2) fail("there are %d ranks", parc_size(parc));
  other = 1 - parc_rank(parc);
  return parc_rank(parc);
}

void* transport_memory(size_t bytes) {
  return parc_alloc(parc, bytes);
}

Transfer* transport_send(const void* data, size_t bytes, int tag) {
  return started(parc_initwrite(parc, other, tag, data, bytes));
}

Transfer* transport_receive(void* data, size_t bytes, int tag) {
  return started(parc_initread(parc, other, tag, data, bytes));
}

void transport_wait(Transfer* transfer) {
  if (parc_wait(parc, (parc_op)(intptr_t)transfer, NULL) != PARC_OK) fail("%s", parc_error_detail());
}

void transport_end(void) {
  if (parc_close(parc) != PARC_OK) fail("%s", parc_error_detail());
}
