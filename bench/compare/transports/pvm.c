/* SPDX-License-Identifier: BSD-3-Clause */
/* Words: `direct` for connections between the tasks, in place of the way through their daemons. PVM receives
 * within its calls alone. The second rank is started by the first, as PVM's programs do that, on the host
 * named by PVM_OTHER. */
#include "transport.h"

#include <pvm3.h>
#include <stdlib.h>
#include <string.h>

struct Transfer {
  void* data;
  int bytes, tag, receives;
};
static int other, in_place;

int transport_begin(int count, char** words, int own) {
  if (pvm_mytid() < 0) fail("there is no pvmd");
  for (int i = own + 1; i < count; ++i)
    if (!strcmp(words[i], "direct")) pvm_setopt(PvmRoute, PvmRouteDirect), pvm_setopt(PvmFragSize, 1 << 17);
  for (int i = own + 1; i < count; ++i) in_place |= !strcmp(words[i], "in-place");
  other = pvm_parent();
  if (other > 0) return 1;
  const char* const host = getenv("PVM_OTHER");
  if (pvm_spawn(words[0], words + 1, host ? PvmTaskHost : PvmTaskDefault, (char*)host, 1, &other) != 1)
    fail("pvm_spawn did not start the other rank (%d)", other);
  return 0;
}

void* transport_memory(size_t bytes) {
  return new_memory(bytes);
}

Transfer* transport_send(const void* data, size_t bytes, int tag) {
  Transfer* const made = new_memory(sizeof *made);
  made->receives = 0;
  if (in_place) {
    pvm_initsend(PvmDataInPlace);
    pvm_pkbyte((void*)data, (int)bytes, 1);
    if (pvm_send(other, tag) < 0) fail("pvm_send fails");
  } else if (pvm_psend(other, tag, (void*)data, (int)bytes, PVM_BYTE) < 0) {
    fail("pvm_psend fails");
  }
  return made;
}

Transfer* transport_receive(void* data, size_t bytes, int tag) {
  Transfer* const made = new_memory(sizeof *made);
  made->data = data;
  made->bytes = (int)bytes;
  made->tag = tag;
  made->receives = 1;
  return made;
}

void transport_wait(Transfer* transfer) {
  if (transfer->receives &&
      pvm_precv(other, transfer->tag, transfer->data, transfer->bytes, PVM_BYTE, NULL, NULL, NULL) < 0)
    fail("pvm_precv fails");
  free(transfer);
}

void transport_end(void) {
  pvm_exit();
}
