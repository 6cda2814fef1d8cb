/* SPDX-License-Identifier: BSD-3-Clause */
/* ---- One-sided transfers (HUNT, 2005): part of parc/parc.h, which includes this ------------------------ */
#ifndef PARC_WINDOW_H
#define PARC_WINDOW_H

#include "parc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A window is memory of a program that its peers get from without its part: the kernel of its host answers,
 * while the program computes, sleeps, is stopped, or never calls parc again. Its number is the program's
 * choice: the same for all ranks, say. A get sees what the target has stored before it sent whatever message
 * the asker has read; what the target stores while the get is under way may be seen or not, byte by byte. */

/* Of what a program that releases waits stores into its own window others may hear before what it was
 * released from has begun, or, of a get, has ended: who tells others of something by such a store, or by one
 * into other shared memory, calls parc_settle before. */

/* What peers may do in a window. */
#define PARC_MAY_GET 1u
#define PARC_MAY_ANYBODY 4u /* not only peers of this program: whoever has the key and knows where it is */

/* Until parc_unexpose, peers of this program (its job, those that it has added or spawned, its parc_parent)
 * can get bytes 0 to `bytes`-1 of `memory` as those of this window. `rights` is PARC_MAY_GET, with
 * PARC_MAY_ANYBODY or without. The memory is of parc_alloc, and must not be given to parc_free before.
 * Errors: PARC_EINVAL (the number is in use, unknown rights, null pointer), PARC_ENOMEM (memory that is not
 * of parc_alloc), PARC_EAGAIN (256 windows are exposed). */
PARC_API int parc_expose(parc_context* context, uint64_t window, void* memory, size_t bytes, unsigned rights);

/* Takes it back: blocks until gets that have begun there have ended. There is no window for those that come
 * later. Errors: PARC_EINVAL (no such window). */
PARC_API int parc_unexpose(parc_context* context, uint64_t window);

/* What a get is from; the offset counts the bytes of the peer's window. */
typedef struct parc_place {
  int peer;
  uint64_t window, offset;
} parc_place;

/* Starts to get `bytes` bytes from there into `buffer`, which must not be touched before the operation has
 * finished. Flags: PARC_FROM_END, PARC_EARLY, PARC_QUEUED. In its status the source is the peer, the length
 * what was asked for, the tag and the context the halves of the window's number. parc_cancel ends it only
 * before it has left. Errors: those of parc_initreadv; of the operation PARC_EPLACE (there is no such window,
 * it ends before, or this program may not), PARC_EPEER (the peer has departed before all of it was here). */
PARC_API parc_op parc_initget(parc_context* context, const parc_place* from, void* buffer, size_t bytes,
                              unsigned flags);

/* Does as parc_initget, into `count` pieces, in their order. Limits as of parc_initreadv. */
PARC_API parc_op parc_initgetv(parc_context* context, const parc_place* from, const struct iovec* pieces,
                               int count, unsigned flags);

/* A wait for a get is released early as one for a read is (parc_set_release). Nothing tells of the beginning
 * of a get: at PARC_RELEASE_ENVELOPE its wait returns at once where its buffer shares no page with other
 * memory, else when the ends of the buffer are there; at PARC_RELEASE_FULL at once. A get of less than a page
 * is released with PARC_EARLY alone, into parc_alloc memory. What the program then writes to others leaves
 * when the get has ended, since who hears of it may change what it gets; a read or a probe that the program
 * then starts waits for that, as its match may tell its writer. One that fails after its wait has returned is
 * a message that was lost (parc_on_lost). What is stored in windows while several gets are released may be
 * seen by one and not by a later one: who goes by their order calls parc_settle between them. */

/* Calls parc_initget and parc_wait. Errors: those of both. */
PARC_API int parc_get(parc_context* context, const parc_place* from, void* buffer, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
