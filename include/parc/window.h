/* SPDX-License-Identifier: BSD-3-Clause */
/* ---- One-sided transfers (HUNT, 2005): part of parc/parc.h, which includes this ------------------------ */
#ifndef PARC_WINDOW_H
#define PARC_WINDOW_H

#include "parc.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A window is memory of a program that its peers get from and put into without its part: the kernel of its
 * host serves them, while the program computes, sleeps, is stopped, or never calls parc again. Its number is
 * the program's choice: the same for all ranks, say. A get sees what the target has stored before it sent
 * whatever message the asker has read; what the target stores while the get is under way may be seen or not,
 * byte by byte. */

/* What one program sends to one other takes effect in its order, over however many streams: behind a put that
 * is not in place yet wait the messages, puts and gets that follow it. So who has read a message finds what
 * its sender had put before it, without another word; a put that fails holds up nothing. A get may see of a
 * put that the same program has started behind it, before it has ended. Behind more messages than a peer has
 * places for (some 200,000 that it has not read), gets and puts to it wait as messages do, until it reads.
 * Within a host a put may be in place before the last of more than 1,000 messages that were sent before it,
 * to a peer that has made no call meanwhile. */

/* Of what a program that releases waits stores into its own window others may hear before what it was
 * released from has begun, or, of a get, has ended: who tells others of something by such a store, or by one
 * into other shared memory, calls parc_settle before. */

/* What peers may do in a window. */
#define PARC_MAY_GET 1u
#define PARC_MAY_PUT 2u     /* puts and atomic operations */
#define PARC_MAY_ANYBODY 4u /* not only peers of this program: whoever has the key and knows where it is */

/* Until parc_unexpose, peers of this program (its job, those that it has added or spawned, its parc_parent)
 * can get and put bytes 0 to `bytes`-1 of `memory` as those of this window. `rights` is PARC_MAY_GET,
 * PARC_MAY_PUT or both, with PARC_MAY_ANYBODY or without. The memory is of parc_alloc, and must not be given
 * to parc_free before; or any other that the program may read and, with PARC_MAY_PUT, write, and that stays
 * there. Of other memory the kernel makes one copy more, and atomic operations on it are made by a thread of
 * this process, which this call makes: they wait while it is stopped. So such a program has several threads
 * (parc_set_release). What is asked for where such memory has been unmapped, or closed, has no place
 * there.
 * Errors: PARC_EINVAL (the number is in use, unknown rights, null pointer), PARC_ENOMEM (memory that is not
 * of parc_alloc, and that the kernel of this host does not find, or may not reach: it must be permitted to
 * trace this process), PARC_EAGAIN (65,536 windows are exposed, or there is no thread). */
PARC_API int parc_expose(parc_context* context, uint64_t window, void* memory, size_t bytes, unsigned rights);

/* Takes it back: blocks until gets and puts that have begun there have ended; programs of the same job on
 * this host make theirs themselves, and one that is stopped in the middle is waited for. There is no window
 * for those that come later. Errors: PARC_EINVAL (no such window). */
PARC_API int parc_unexpose(parc_context* context, uint64_t window);

/* What a get is from, a put to, or an atomic operation on; the offset counts the bytes of the peer's window.
 */
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
 * memory, else when the ends of the buffer are there; at PARC_RELEASE_FULL at once. Within a host it is
 * released at PARC_RELEASE_FULL and with PARC_EARLY alone, where it is not over by then. A get of less than a
 * page is released with PARC_EARLY alone, into parc_alloc memory. What the program then writes to others
 * leaves when the get has ended, since who hears of it may change what it gets; a read or a probe that the
 * program then starts waits for that, as its match may tell its writer. One that fails after its wait has
 * returned is a message that was lost (parc_on_lost). What is stored in windows while several gets are
 * released may be seen by one and not by a later one: who goes by their order calls parc_settle between them.
 * What is put behind a get that was released is kept as writes are, and so is a get from the same peer behind
 * that. */

/* Starts to get rows of a matrix that lies there, into `count` pieces, in their order: as many rows of `row`
 * bytes as they have room for, the first one at the place, each `stride` bytes behind the one before it, or
 * before it where that is less than 0. Rows may overlap. Flags, status and errors as of parc_initgetv;
 * PARC_EINVAL also where the pieces have no room for whole rows, or for more than 4,294,967,295. */
PARC_API parc_op parc_initget_rows(parc_context* context, const parc_place* from, size_t row, int64_t stride,
                                   const struct iovec* pieces, int count, unsigned flags);

/* Calls parc_initget and parc_wait. Errors: those of both. */
PARC_API int parc_get(parc_context* context, const parc_place* from, void* buffer, size_t bytes);

/* Starts to put `bytes` bytes of `buffer` there. As a write it has finished when the buffer may be changed
 * again; with PARC_SYNCHRONOUS when all of it is in place. Other flags: PARC_FROM_END, PARC_EARLY,
 * PARC_QUEUED. parc_cancel ends it only before it has left. Errors: those of parc_initwritev; of the
 * operation PARC_EPLACE (there is no such window, it ends before, or this program may not), PARC_EPEER (the
 * peer has departed before all of it was there), where they are known when it is waited for; else parc_quiet
 * says so. */
PARC_API parc_op parc_initput(parc_context* context, const parc_place* to, const void* buffer, size_t bytes,
                              unsigned flags);

/* Does as parc_initput, of `count` pieces, in their order. Limits as of parc_initwritev. */
PARC_API parc_op parc_initputv(parc_context* context, const parc_place* to, const struct iovec* pieces,
                               int count, unsigned flags);

/* Starts to put rows, from `count` pieces, as parc_initget_rows gets them. Flags, status and errors as of
 * parc_initputv; PARC_EINVAL also as there, and where rows overlap. */
PARC_API parc_op parc_initput_rows(parc_context* context, const parc_place* to, size_t row, int64_t stride,
                                   const struct iovec* pieces, int count, unsigned flags);

/* Calls parc_initput and parc_wait. Errors: those of both. */
PARC_API int parc_put(parc_context* context, const parc_place* to, const void* buffer, size_t bytes);

/* What becomes of a word of a window: its sum with the operand, the operand, the operand where the word is
 * what `compare` says, or its bits combined with the operand's. */
enum parc_atomic {
  PARC_ADD = 0,
  PARC_SWAP = 1,
  PARC_COMPARE_SWAP = 2,
  PARC_AND = 3,
  PARC_OR = 4,
  PARC_XOR = 5
};

/* Starts an atomic operation on a word of 4 or 8 bytes (`width`) of a window, at a multiple of them, whose
 * memory is aligned so. It is atomic to all such operations, and to those of the target's own CPU; it takes
 * effect once, in the order of the puts. `before` may be a null pointer; else it must not be touched before
 * the operation has finished, and has what was there before then (of 4 bytes, with zeros above), as the data
 * in its status is. It must be waited for. Flag: PARC_QUEUED. parc_cancel ends it only before it has left.
 * Errors: PARC_EINVAL (also of a word that is misaligned), PARC_EAGAIN and PARC_ENOMEM as of parc_initreadv;
 * of the operation PARC_EPLACE (as of a put, or its memory is misaligned), PARC_EPEER (the peer has departed
 * before it was heard of: it may have been made). */
PARC_API parc_op parc_initatomic(parc_context* context, const parc_place* at, enum parc_atomic what,
                                 size_t width, uint64_t operand, uint64_t compare, uint64_t* before,
                                 unsigned flags);

/* Adds `more` to a word of 8 bytes: parc_initatomic and parc_wait. Errors: those of both. */
PARC_API int parc_fetch_add(parc_context* context, const parc_place* at, int64_t more, int64_t* before);

/* Blocks until all that this program has put is in place, its atomic operations are made, and all that its
 * waits were released from has begun or, of gets, has ended. (parc_barrier waits for the puts of all its
 * ranks.) A put that failed when its wait had returned is told here, once, and of several one. Errors:
 * PARC_EPLACE, PARC_EPEER (of such a put), PARC_EKERNEL. */
PARC_API int parc_quiet(parc_context* context);

#ifdef __cplusplus
}
#endif
#endif
