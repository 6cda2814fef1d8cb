/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libparc: messages that move while the program computes.
 *
 * A program opens one context, starts reads and writes of messages, computes, and waits for them. Meanwhile
 * the kernel of its host (parcd) moves the data: there is no progress call, and no thread is started in the
 * program. In the order of the paper (Strumpen 1994, section 3.2.2, implementation I.3) the calls that matter
 * are
 *
 *     parc_op rid = parc_initread(p, peer, tag, ghost, bytes);
 *     parc_op wid = parc_initwrite(p, peer, tag, border, bytes);
 *     ... calculate what needs neither ...
 *     parc_wait(p, wid, NULL);
 *     parc_wait(p, rid, NULL);
 *
 * Every call returns PARC_OK (0) or a positive result on success, and a negative PARC_E* on failure.
 * parc_error_string() turns it into a sentence; parc_error_detail() has the sentence of this thread's last
 * failure, with names and numbers in it. Every call on a context can return PARC_EINVAL, PARC_EKERNEL and
 * PARC_EFORK, besides the errors that are named with it.
 *
 * All calls may be made from any thread at any time, on one context, unless a call says otherwise. Two
 * threads must not wait for the same operation.
 *
 * parc_wait, parc_waitall, parc_waitany, parc_waitsome, parc_completions, parc_read, parc_write, parc_get,
 * parc_put, parc_fetch_add, parc_quiet, parc_unexpose, parc_probe, parc_iprobe, parc_address_of,
 * parc_add_peer, parc_parent, parc_spawn and parc_kill are cancellation points (pthread_cancel, deferred)
 * while they sleep; no other call is one. What a cancelled wait was for, another may still wait for; what a
 * cancelled call had started itself it gives up first, as parc_cancel and parc_wait do.
 *
 * parc_test, parc_done, parc_op_index, parc_envelope_of, parc_rank, parc_size, parc_host, parc_clock and
 * parc_error_string may be called from a signal handler; no other call may: one that has interrupted a call
 * of libparc in its thread gets PARC_EINVAL from it (parc_abort ends the program). A call that blocks goes on
 * after a handler has run, as with SA_RESTART. A handler may call exit(); where it has interrupted a call,
 * the program does not leave its job as parc_close does, but is seen to have ended: what it wrote and what no
 * kernel has taken yet may be lost, and others get PARC_EPEER. It must not leave a call by siglongjmp: every
 * later call of that thread that may not be made in a handler is refused with PARC_EINVAL, and other threads
 * may wait for ever for what it holds.
 *
 * A forked child that was not exec'ed, and whose parent had a context open, gets PARC_EFORK from parc_open,
 * parc_join and every call on a context; parc_abort ends it alone. One that is made while another thread
 * still waits in parc_open or parc_join has no part in that, and may open a context of its own.
 */
#ifndef PARC_PARC_H
#define PARC_PARC_H

#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PARC_API __attribute__((visibility("default")))

typedef struct parc_context parc_context;

/* An operation is positive when it was started, negative (PARC_E*) when it was not. It belongs to its
 * context, and is spent when a wait or a test has reported that it has finished. */
typedef int64_t parc_op;
#define PARC_OP_NULL ((parc_op)0) /* no operation: waits ignore it */

#define PARC_ANY_SOURCE (-1) /* a message of any rank */
#define PARC_ANY_TAG (-1)    /* a message with any tag */
/* Contexts separate libraries of one program (an MPI communicator is one). From here on they are parc's own,
 * and refused as PARC_NO_PEER says; 0 is the default. */
#define PARC_CONTEXT_RESERVED 0xffff0000u
/* Peer of an envelope that parc_envelope_of makes of a context or a tag out of range: every call refuses it
 * with PARC_EINVAL. */
#define PARC_NO_PEER (-2)

enum parc_error {
  PARC_OK = 0,
  PARC_EINVAL = -1, /* an argument is out of range, or the operation was waited for already */
  PARC_ENOMEM = -2, /* no memory that the kernel can share: limits of System V or of address space are met */
  PARC_EAGAIN = -3, /* unfinished operations have all memory, or are a million: wait, and call again */
  PARC_ETRUNCATE = -4,  /* the message was longer than the read; the buffer holds its beginning */
  PARC_EPEER = -5,      /* the peer has left, was killed, or its host was lost: the detail says which */
  PARC_EKERNEL = -6,    /* the kernel of this host has gone or has ended this program's session */
  PARC_ECANCELED = -7,  /* parc_cancel was in time */
  PARC_EFORK = -8,      /* a forked child may not use its parent's context */
  PARC_EVERSION = -9,   /* library and kernel speak different versions; the detail says which to upgrade */
  PARC_ENOKERNEL = -10, /* parc_open found no kernel on this host */
  PARC_ESPAWN = -11,    /* parc_spawn could not start the program; the detail says where and why */
  PARC_EPLACE = -12 /* the peer has no such window, or what was asked for is outside of it or not allowed */
};

typedef struct parc_status {
  int source; /* rank of the sender (a write: of the receiver) */
  int tag;
  uint32_t context;
  int error;       /* PARC_OK or why it failed */
  uint64_t length; /* of the message as it was sent, even when truncated */
  uint64_t data;   /* a read: parc_envelope.data of the writer, else 0 */
  int has_data;    /* 1 where that is not 0, or came with PARC_WITH_DATA */
} parc_status;

/* Who a message is for and all that it is matched by, in the calls that take all of it. The context and the
 * tag of a message are the halves of the envelope's tag. What a call without an envelope wrote, in context 0,
 * a call with one can read, and the other way round. An envelope that parc_envelope_of has not made may have
 * any tag of 64 bits, for libraries that carry the messages of another interface: also one whose halves are
 * no context or no tag of a program. It matches the same bits and nothing of parc's own. In statuses its
 * halves stand as they are, and the lower one may be negative there. */
typedef struct parc_envelope {
  int peer;        /* rank; reads, probes: or PARC_ANY_SOURCE */
  uint64_t tag;    /* any 64 bits (context << 32 | tag) */
  uint64_t ignore; /* reads, probes: the bits of the tag that may be any; writes: 0 */
  uint64_t data;   /* writes: for who reads it, in parc_status.data */
} parc_envelope;

/* Makes an envelope of a context and a tag, which is 0 to INT32_MAX, or PARC_ANY_TAG for reads and probes:
 * its data is 0. Where the context or the tag is out of range its peer is PARC_NO_PEER, and the call that
 * gets it says which of them is. */
static inline parc_envelope parc_envelope_of(int peer, uint32_t context, int tag) {
  parc_envelope envelope = {peer, context, 0, 0};
  envelope.tag <<= 32;
  if (tag == PARC_ANY_TAG)
    envelope.ignore = UINT32_MAX;
  else
    envelope.tag |= (uint32_t)tag;
  if ((tag < 0 && tag != PARC_ANY_TAG) || context >= PARC_CONTEXT_RESERVED) envelope.peer = PARC_NO_PEER;
  return envelope;
}

/* Flags of reads and writes. */
#define PARC_FROM_END 1u /* the program walks downwards: messages go from their last byte to their first */
#define PARC_EARLY 2u    /* waits for this one are released early, as at PARC_RELEASE_FULL */
/* A write is finished when the message has been matched, too. Its wait never copies: it waits for the peer.
 */
#define PARC_SYNCHRONOUS 4u
/* Flags of parc_initprobe. */
#define PARC_NOW 8u    /* finish at once: with the source PARC_ANY_SOURCE when there is no such message yet */
#define PARC_CLAIM 16u /* nobody else gets the message: it is for parc_initread_claimed */

/* Also of probes and of parc_initexit: nobody waits for this one, parc_completions reports it. */
#define PARC_QUEUED 32u
/* Also of probes: the message has no tag, and is apart from those that have one. The tag of the envelope is
 * 0. */
#define PARC_UNTAGGED 64u
/* Of writes: who reads the message is told that it has data, also when parc_envelope.data is 0. */
#define PARC_WITH_DATA 128u
/* Of writes, and of probes with PARC_NOW: where one is over when the call returns, as a short write to a rank
 * of this host mostly is, and a probe that finds nothing, that returns PARC_OP_NULL: there is nothing to wait
 * for. */
#define PARC_AT_ONCE 256u

/* ---- Context ------------------------------------------------------------------------------------------- */

/* Joins the job that `parc run` started this process in; or, in a process of another launcher, the job that
 * the environment names (below), as parc_join does; or, in a process started by hand, a job of this process
 * alone with the kernel of this host. Blocks until the kernel has answered. *context is set on success only,
 * and is freed by parc_close. A process has one context: a second open returns PARC_EINVAL. Errors:
 * PARC_EINVAL, PARC_ENOKERNEL, PARC_EVERSION, PARC_ENOMEM, PARC_EKERNEL, and those of parc_join.
 *
 * PARC_JOB: the name of the job, as for parc_join.
 *
 * PARC_RANK: the rank; else that of srun (SLURM_PROCID), Open MPI (OMPI_COMM_WORLD_RANK) or MPICH's launcher
 * (PMI_RANK).
 *
 * PARC_FIRST_RANK: is added to what the launcher says.
 *
 * PARC_SIZE: the size; else the launcher's.
 *
 * So two launchers make one job: one side has PARC_SIZE=4, the other PARC_SIZE=4 and PARC_FIRST_RANK=2.
 * Without PARC_JOB the processes of a step of srun's join a job, which meets at the step's first node; those
 * of other launchers, where they are more than one, get PARC_EINVAL, as nothing says which belong together,
 * and so do processes with PARC_RANK, PARC_SIZE or PARC_FIRST_RANK alone. Where a launcher was itself started
 * in a step of srun's, what it says of a process counts. */
PARC_API int parc_open(parc_context** context);

/* Opens a context as rank `rank` of the `size` of the job called `job`, of at most 4,096: "NAME", whose ranks
 * meet at this host's kernel, or "NAME@HOST", at that of another host. The name has 1 to 255 printable
 * characters of ASCII, no blanks and no '@'. Blocks until all are there, for join_timeout_s of that host's
 * parcd.toml at most, and until their hosts have reached each other; where two of them do not, no rank runs,
 * and each is told which two. Whoever has the key may join, by any launcher, from any host. The ranks are
 * those of a job like any other, but nobody ends the others when one fails: they find that it has gone
 * (PARC_EPEER), and parc_abort ends only its caller. With NULL it is a job of this process alone, whatever
 * the environment says. In a rank of `parc run` it is as parc_open. Errors: those of parc_open; PARC_EINVAL
 * (name, rank or size make no sense, that rank is there already, or others have said another size),
 * PARC_EPEER (some did not come, the detail names them; or a host cannot be reached). */
PARC_API int parc_join(parc_context** context, const char* job, int rank, int size);

/* Starts a kernel on this host where none runs for this user, as `parcd --detach` does, and returns when it
 * is ready; parcd is looked for beside this library and in PATH. It is for libraries that open a context
 * where their users need not know of kernels. Such a kernel ends when no program has been there for ten
 * minutes (idle_timeout_s in parcd.toml). In a rank of `parc run` the call does nothing. Errors:
 * PARC_ENOKERNEL (it could not be started, or the environment forbids it: PARC_AUTOSTART=off). */
PARC_API int parc_start_kernel(void);

/* Leaves the job: blocks until every write has been taken over by the kernel (of many short messages that a
 * program of this host has not taken yet: by that program, in its next calls), cancels the reads that are
 * left, and frees the context and all memory of parc_alloc. Other ranks see a departure, not an error. No
 * other thread may be in a call. exit() does the same, but frees nothing: threads and static objects that
 * still call find that nothing can be started (PARC_EKERNEL), that waits for writes return when these are
 * delivered or were canceled, and that parc_free does nothing. Errors: PARC_EINVAL (the context was closed,
 * or another thread closes it); of what is started after exit(), PARC_EKERNEL. */
PARC_API int parc_close(parc_context* context);

/* Returns this process's number in its job, from 0 on. */
PARC_API int parc_rank(const parc_context* context);
/* Returns how many ranks the job has. */
PARC_API int parc_size(const parc_context* context);
/* Returns the name of the host of a rank, which belongs to the context, or NULL when there is no such rank.
 */
PARC_API const char* parc_host(const parc_context* context, int rank);

/* ---- Programs of other jobs ---------------------------------------------------------------------------- */

/* Bytes of the text of any address, its end included. */
#define PARC_ADDRESS_BYTES 64

/* Writes the address of a peer (a rank of this job, parc_rank for the caller's own, or what parc_add_peer
 * gave) into text[0..bytes), zero terminated: letters, digits, hyphens and underscores by which programs of
 * any job, on any host whose kernel has the same key, can write to it, as long as it runs. It says where its
 * kernel listens, so that nobody has to know the name of its host; who has that name in [hosts] of parcd.toml
 * goes there. How they get it (a file, a message, a name server) is theirs. Errors: PARC_EINVAL (no such
 * peer), PARC_ETRUNCATE (the text has no room: nothing is written), PARC_EPEER (its host is lost, or its
 * number means nobody any more), PARC_EAGAIN and PARC_ENOMEM as for a read. */
PARC_API int parc_address_of(parc_context* context, int peer, char* text, size_t bytes);

/* Gives the program that has this address a number of its own, from parc_size on (or its rank, when it is of
 * this job; the same address has the same number): it is a peer like every rank from then on, in all calls.
 * Whoever writes to this program first has got a number by itself, as the source of that message. Blocks
 * until its kernel is reached, for connect_timeout_s of parcd.toml at most. A read of PARC_ANY_SOURCE waits
 * for such peers, too, and in a job of one rank for ever. One that is not of this job and has departed keeps
 * its number while a message of it is unread, and until 1,024 others have gone so after it; from then on the
 * number means nobody (PARC_EPEER), and is not given to others before two thousand million are. Errors:
 * PARC_EINVAL (no address), PARC_EPEER (its host cannot be reached, or its kernel is another one now),
 * PARC_EAGAIN (a million reads are unfinished, 16 others are being reached, or 65,536 that are not of this
 * job have numbers), PARC_ENOMEM, PARC_ECANCELED (another thread closes the context). */
PARC_API int parc_add_peer(parc_context* context, const char* address);

/* ---- Processes that a program starts (PARC 1994: dynamic process generation) ----------------------------
 */

/* Starts `count` processes of a program. They are a job of their own: parc_rank and parc_size there count
 * them alone, parc_barrier is among them, and parc_parent is this program. `arguments` has the program's name
 * (looked up as `parc run` does, from the directory of `parc run`) and its arguments, a NULL behind them.
 * They get the directory, umask, limits and environment that this program's job has; of a program that was
 * started by hand, its own. `hosts` is "a:2,b", as `parc run` --hosts has it; with NULL the hosts of this
 * program's job take turns (of one that was started by hand: this host). Each becomes a peer like those of
 * parc_add_peer: peers[0..count), which may be NULL, says which. Blocks until all run, or until it is known
 * that they will not: then none is left.
 *
 * What they print goes where the ranks of `parc run` print, whose numbers for --tag-output go on; of a
 * program started by hand, into the log of this host's parcd. One that fails ends alone: parc_initexit tells
 * it. All are ended with the job that they belong to, and when the program that spawned them is killed; `parc
 * run` waits for them. While `parc run` has 8 MiB of their output that it cannot pass on, parc_spawn blocks,
 * too. Others reach them by parc_address_of and parc_add_peer. A program has at most 65,536 peers that are
 * not of its job. Errors: PARC_EINVAL (no program, count is not 1 to 65,536, or hosts and arguments have more
 * than 256 KiB), PARC_ESPAWN (it could not be started, hosts makes no sense, or the program would have too
 * many peers: the detail says where and why), PARC_ENOMEM, PARC_EAGAIN (a million reads are unfinished, or 16
 * calls are under way), PARC_ECANCELED (another thread closes the context). */
PARC_API int parc_spawn(parc_context* context, const char* const* arguments, int count, const char* hosts,
                        int* peers);

/* Returns the number of the peer that has spawned this program, as parc_add_peer gives it. Errors: those of
 * parc_add_peer; PARC_EINVAL when nobody has. */
PARC_API int parc_parent(parc_context* context);

/* Sends `signal` to the process group of `peer`: a rank of this job that `parc run` has started, or a process
 * that this program has spawned. Returns when the signal is on its way: who ends before it comes is not
 * signalled any more, and who has not started yet gets it when it does. 0 only looks whether it may. Errors:
 * PARC_EINVAL (another peer, no such signal), PARC_EPEER (this program has spawned it, and has been told that
 * it has ended), PARC_EAGAIN. */
PARC_API int parc_kill(parc_context* context, int peer, int signal);

/* Starts waiting for the end of `peer`, which this program has spawned: an operation like a read, finished
 * when the process has ended. In its status, data is the exit status, or 128 and the signal's number, or 125
 * when its host was lost. It may be asked for again and again, as long as its number means somebody
 * (parc_add_peer). The only flag is PARC_QUEUED. Errors: PARC_EAGAIN; of the operation PARC_EINVAL (no
 * process that this program has spawned), PARC_EAGAIN (64 for this one are under way). */
PARC_API parc_op parc_initexit(parc_context* context, int peer, unsigned flags);

/* Ends the whole job: every other rank is killed, and `parc run` exits with `status`, for which 1 to 125 are
 * usual; of a larger one the low 8 bits count, and 1 where those are 0. Does not return. */
PARC_API void parc_abort(parc_context* context, int status) __attribute__((noreturn));

/* Returns the seconds of a monotonic clock. May be called from a signal handler. */
PARC_API double parc_clock(void);

/* ---- Memory -------------------------------------------------------------------------------------------- */

/* Returns memory that the kernel reads and writes in place: messages from and to it are not copied in this
 * host, but for short ones (up to 1,024 bytes; between programs of one host up to 64 KiB). It is 64-byte
 * aligned, and page aligned from one page up. Returns NULL when there is none (parc_error_detail says why).
 * Any other memory works in every call, at the price of a copy through this one (a bounce). A forked child
 * has no copy of it, as it has of other memory: it shares it with its parent, and each sees what the other
 * stores there, until the child executes another program or ends. */
PARC_API void* parc_alloc(parc_context* context, size_t bytes);
/* Returns what parc_alloc gave. NULL is ignored. No operation may be using it. */
PARC_API void parc_free(parc_context* context, void* memory);

/* ---- Starting operations (section 3.2.2 of the paper) -------------------------------------------------- */

/* What holds for every message. A tag is 0 to INT32_MAX. A message has 0 to 8 GiB (2^33 bytes); one of no
 * bytes is a message like any other, and its buffer may be NULL. A rank may write to itself; like every write
 * that one waits for no read. Writes never wait for the peer's reads: two ranks, or any number, may all write
 * before any of them reads, with messages of any length. Both waits return, because what the network has not
 * taken is copied; then what limits such an exchange is the memory for those copies (parc_set_copy_room; with
 * 0, or for a peer whose last write failed, a wait for a write waits until its message is read). A message
 * that is longer than its read fills the buffer and ends the read with PARC_ETRUNCATE, with its whole length
 * in the status; the rest is thrown away, and the write succeeds. A read from a peer that has departed ends
 * with PARC_EPEER when no message of it is left. */

/* What is unfinished takes memory of the program and its kernel, some hundred bytes each, and of nobody else:
 * any number of reads and writes may be, up to a million of each, or as many as there is memory for
 * (PARC_EAGAIN, at once, and a sentence says which). Where there is none for the bytes of a message (shared
 * memory of System V, or address space) a read begins all the same: its message waits for memory, which other
 * operations leave when they end. It ends with PARC_ENOMEM, and its message is lost, when there can be none,
 * or has been none for a minute. A write, and a read of a claimed message, for which other operations of this
 * program have left no memory is refused with PARC_EAGAIN, and can be started when some of them (or the
 * copies of writes that were waited for) have ended; with PARC_ENOMEM, where all that they have is not
 * enough. */

/* Starts reading a message of `peer` with `tag` into buffer[0..bytes). The buffer belongs to the kernel until
 * the operation has been waited for. Never blocks for an operation that was not released early. A longer
 * message ends with PARC_ETRUNCATE, a shorter one completes. Reads match messages in the order in which they
 * were written, as in MPI. Errors: PARC_EINVAL, PARC_EAGAIN, PARC_ENOMEM; of the operation PARC_ETRUNCATE,
 * PARC_EPEER, PARC_ENOMEM. */
PARC_API parc_op parc_initread(parc_context* context, int peer, int tag, void* buffer, size_t bytes);

/* Starts writing buffer[0..bytes) to `peer`. The buffer may be read, but not changed, until the operation has
 * been waited for. Never blocks for an operation that was not released early. Errors: PARC_EINVAL,
 * PARC_EAGAIN, PARC_ENOMEM; of the operation PARC_EPEER (the peer has departed). */
PARC_API parc_op parc_initwrite(parc_context* context, int peer, int tag, const void* buffer, size_t bytes);

/* Do the same by envelope, from and to a list of at most 1,024 pieces that follow each other in the message,
 * and with flags. The envelope and the list itself may be used again when the call returns. A write is
 * refused where its envelope ignores bits of the tag, as that of PARC_ANY_TAG does. */
PARC_API parc_op parc_initreadv(parc_context* context, const parc_envelope* envelope,
                                const struct iovec* pieces, int count, unsigned flags);
PARC_API parc_op parc_initwritev(parc_context* context, const parc_envelope* envelope,
                                 const struct iovec* pieces, int count, unsigned flags);

/* Is a probe as an operation: finished when a message that a read with this envelope would match is there,
 * which its status describes. With PARC_CLAIM the message is this operation's: no other read or probe sees
 * it, and it waits until parc_initread_claimed reads it, or until the context is closed. The flags are
 * PARC_NOW, PARC_CLAIM, PARC_QUEUED, PARC_UNTAGGED and PARC_AT_ONCE. Errors: PARC_EINVAL, PARC_EAGAIN,
 * PARC_ENOMEM; of the operation PARC_EPEER, PARC_ENOMEM, PARC_EAGAIN (a million messages are claimed and not
 * read). */
PARC_API parc_op parc_initprobe(parc_context* context, const parc_envelope* envelope, unsigned flags);

/* Reads the message that `claim`, a finished parc_initprobe with PARC_CLAIM, has claimed, once for each
 * claim. With no pieces it is thrown away, and the operation ends with PARC_ETRUNCATE. Otherwise it is as
 * parc_initreadv. Errors: those of parc_initreadv; of the operation PARC_ETRUNCATE, PARC_EINVAL (there is no
 * such claim). */
PARC_API parc_op parc_initread_claimed(parc_context* context, parc_op claim, const struct iovec* pieces,
                                       int count, unsigned flags);

/* ---- Finishing operations ------------------------------------------------------------------------------ */

/* Blocks until `operation` has finished, and spends it. `status` may be NULL. Returns PARC_OK, or why the
 * operation failed (also in status->error).
 * A read has finished when its message is in the buffer. A write has finished when the buffer may be changed
 * and the message no longer needs it; where the network is slower than a copy, the wait copies what is left
 * into the context's own memory and returns (see parc_set_copy_room). A write that is let go like this has
 * succeeded for its waiter; that its peer has gone is then reported by the next write to that peer. An
 * operation that was never started (negative) returns its error again. Errors: of operations PARC_ETRUNCATE,
 * PARC_EPEER, PARC_ECANCELED, PARC_ENOMEM; PARC_EINVAL (it has been waited for already). */
PARC_API int parc_wait(parc_context* context, parc_op operation, parc_status* status);

/* Returns 1 when the operation has finished (and is spent; the status is as of parc_wait), 0 when not, and
 * why it failed when it did (spent, too). Never copies a write. May be called from a signal handler, also for
 * an operation that a thread is just waiting for (0 then); what the operation used is freed by the next call
 * that starts one. */
PARC_API int parc_test(parc_context* context, parc_op operation, parc_status* status);

/* Returns 1 when a wait for the operation would not block (it has finished, or its wait would report an
 * error), else 0, and spends nothing. May be called from a signal handler. */
PARC_API int parc_done(parc_context* context, parc_op operation);

/* Blocks until all of them have finished; copies writes only when everything else has. `statuses` is NULL or
 * an array of `count`. Returns PARC_OK or the first failure in the array's order; each operation is spent and
 * set to PARC_OP_NULL. */
PARC_API int parc_waitall(parc_context* context, int count, parc_op* operations, parc_status* statuses);

/* Blocks until one of them has finished: *index is its place (-1 when all were PARC_OP_NULL); it is set to
 * PARC_OP_NULL. Returns its result. Copies only when nothing but writes is there to wait for. */
PARC_API int parc_waitany(parc_context* context, int count, parc_op* operations, int* index,
                          parc_status* status);

/* Blocks until at least one has finished and reports all that have: *done of them, their places in `indices`,
 * their statuses in `statuses` (each NULL or `count` long). *done is -1 when all were PARC_OP_NULL. Returns
 * PARC_OK or the first failure among them. Copies as parc_waitany does. */
PARC_API int parc_waitsome(parc_context* context, int count, parc_op* operations, int* done, int* indices,
                           parc_status* statuses);

/* Asks to give up an operation, also one that a thread is waiting for. It must still be waited for: it ends
 * with PARC_ECANCELED, or, when its message was already matched, as if nobody had asked. Errors: PARC_EINVAL
 * (it has been waited for already); of the operation PARC_ECANCELED. */
PARC_API int parc_cancel(parc_context* context, parc_op operation);

/* ---- The completion queue ------------------------------------------------------------------------------ */

/* The completion queue is for libraries and event loops, which have many operations under way and wait for
 * whichever ends: what was started with PARC_QUEUED is finished by parc_completions, in one call as many as
 * there are, and by nothing else but it (parc_done, parc_test and waits are for the others). Such a start
 * never blocks. parc_cancel asks to give one up, which is reported all the same. */

/* Above what parc_op_index gives: a limit, and no size to set aside. */
#define PARC_MAX_OPERATIONS 2097152

/* Returns a number from 0 to PARC_MAX_OPERATIONS-1 that no other operation has until this one is spent: the
 * place for what a caller knows of it. Where few are under way it is low: an array that grows as it must
 * stays below three times their greatest number and 2,048. May be called from a signal handler. */
PARC_API int parc_op_index(parc_op operation);

typedef struct parc_completion {
  parc_op operation;  /* which has ended and is spent */
  parc_status status; /* its error says how */
} parc_completion;

/* Reports up to `count` operations that have ended, in completions[0..count). Where there is none, it blocks
 * until there is one, but `timeout` seconds at most (0: not at all, negative: without a limit). Never copies
 * a write. A read that may be released early is reported as soon as it is, as by parc_wait with a status.
 * Returns how many it has reported; parc_error_detail() then has the sentence of the last of them that has
 * failed, but for those that were cancelled. Errors: PARC_EKERNEL when the kernel has gone and nothing is
 * left to report (what was under way ends with that error first), PARC_ENOMEM where it would block and no
 * descriptor is left for parc_wake. */
PARC_API int parc_completions(parc_context* context, parc_completion* completions, int count, double timeout);

/* Ends one call of parc_completions that blocks in another thread, or else the next one that would: it
 * reports what there is, perhaps nothing. It is for what such a call waits for besides operations, such as
 * another thread's work for it. Several calls before such a return are one. Does not block. */
PARC_API int parc_wake(parc_context* context);

/* Are for programs that sleep in poll, select or epoll_wait for other things, too. parc_descriptor returns a
 * descriptor that is readable when an operation of the context, queued or not, may have ended since parc_arm,
 * or when the kernel has gone. It is the context's: it may be watched and nothing else, and is closed with
 * the context. parc_arm comes before each such sleep. It returns 1 when parc_completions has something to
 * report, and 0 when there was nothing once the descriptor was made ready for what comes: who waits for
 * operations that are not queued looks at them then. Then the sleep; what is started in between needs
 * parc_arm again. The descriptor stays readable until the next parc_arm, and may be readable for nothing:
 * when another thread waits, or has taken what ended. Neither call blocks. One thread at a time may arm and
 * sleep so. Errors: PARC_ENOMEM (no descriptor is left). */
PARC_API int parc_descriptor(parc_context* context);
PARC_API int parc_arm(parc_context* context);

/* Is for libraries that start later what there was no memory for. Says that so many `operations` wait in
 * the caller now, the oldest of them for this `peer` (PARC_ANY_SOURCE: for anybody, or there are none). parc
 * status and parc dump show how many, and where none of them goes on for 10 seconds a line on standard error
 * says so, once in a program. Does not block. */
PARC_API int parc_set_put_off(parc_context* context, uint64_t operations, int peer);

/* ---- Whole calls --------------------------------------------------------------------------------------- */

/* Start and wait, as parc_initread, parc_initwrite and parc_wait do. Errors: those of parc_initread,
 * parc_initwrite and parc_wait. */
PARC_API int parc_read(parc_context* context, int peer, int tag, void* buffer, size_t bytes,
                       parc_status* status);
PARC_API int parc_write(parc_context* context, int peer, int tag, const void* buffer, size_t bytes);

/* Blocks until a message that a read with this envelope would match is there; `status` describes it. It stays
 * there. Errors: PARC_EAGAIN and PARC_ENOMEM (a probe counts as a read), PARC_EPEER. */
PARC_API int parc_probe(parc_context* context, const parc_envelope* envelope, parc_status* status);
/* Returns 1 and its status when there is such a message, 0 when there is none yet. Never blocks for a peer.
 * Errors: those of parc_probe. */
PARC_API int parc_iprobe(parc_context* context, const parc_envelope* envelope, parc_status* status);

/* Blocks until every rank of the job has called it. Errors: PARC_EPEER; PARC_EAGAIN and PARC_ENOMEM as for a
 * read, after which the same barrier goes on when it is called again. */
PARC_API int parc_barrier(parc_context* context);

/* Sets how many bytes waits for writes may hold as copies; the default is what there is memory for, but where
 * copies hold more than 256 MiB, waits for writes go no faster than the network, as long as that takes
 * anything. Writes with PARC_QUEUED are then told of when the network has them. With 0 a wait for a write
 * waits for the network, as in the paper's figure 21(b). */
PARC_API int parc_set_copy_room(parc_context* context, size_t bytes);

/* ---- Early release (erMPI 2005) ------------------------------------------------------------------------ */

/* A wait for a read that is released early returns before the message is there. The pages of the buffer that
 * have not arrived are guarded: the first touch of one waits until that page, and what parc_set_strip says
 * beside it, is there. Programs need not be changed. That is so at the levels PARC_RELEASE_ENVELOPE and
 * PARC_RELEASE_FULL, of gets at PARC_RELEASE_GETS, and with the flag PARC_EARLY. Released are parc_wait,
 * parc_waitall, parc_read, parc_get and parc_completions, of reads and gets of at least a page; never what
 * reports completion (parc_test, parc_waitany, parc_waitsome), probes and barriers. A wait that is given a
 * status, and parc_completions, return when the message has begun, since they must say who it is from and how
 * long; and when both ends of the buffer are there, which travel first: then only whole pages of it are
 * guarded, and nothing that lies beside it. Where a buffer's reads were touched at once several times in a
 * row, the next ones are waited for, and then one is tried again. What such a program then writes to others
 * leaves when all it was released from before has begun (erMPI 2005, section 2.5: no message may overtake its
 * own cause).
 *
 * The buffer may be parc_alloc memory, malloc's (of glibc), or data and bss of the executable: reads that may
 * be released adopt it in place, which copies it once into memory that the kernel shares. Others (stacks,
 * files, other allocators) are bounced, and their waits wait. At PARC_RELEASE_FULL what lies on the first and
 * the last page of a buffer beside it is guarded with it. A system call on a guarded page fails with EFAULT:
 * parc_settle first. With adopted memory, fork copies it for the child, and stores of other threads meanwhile
 * may be seen there.
 *
 * SIGSEGV belongs to libparc from the first release on, and must not be blocked; faults of other addresses go
 * to the handler that the program had before, or crash the program as usual. */
enum parc_release {
  PARC_RELEASE_OFF = 0,      /* no wait is released */
  PARC_RELEASE_ENVELOPE = 1, /* when the message has begun to arrive, and the ends of the buffer are there */
  PARC_RELEASE_FULL = 2,     /* at once; in a program with several threads it is PARC_RELEASE_ENVELOPE */
  PARC_RELEASE_GETS = 3      /* gets alone, as at PARC_RELEASE_ENVELOPE */
};

/* A wait for a write from parc_alloc memory that is released early leaves the buffer's pages read-only until
 * the network has taken them; a store before that waits as long as copying the rest takes, and then copies
 * it. Without PARC_EARLY that is done only where protecting those pages costs less than copying them at once.
 * Writes from other memory are copied when they begin, and their waits return at once anyway. */

/* Sets the level of all waits from here on. PARC_EARLY_RELEASE=off, gets, envelope or full in the environment
 * is what a program starts with, provided that libparc-early.so is loaded, which makes system calls wait
 * (`parc run` and `parc mpi` with --early-release see to that). Errors: PARC_EINVAL (there is no such level).
 */
PARC_API int parc_set_release(parc_context* context, int level);

/* Tells in which order the program touches what it reads and gets, for all that it starts from here on (HUNT
 * 2005, section 5.2): downwards, messages also travel from their last byte to their first. Who touches a
 * buffer in another order waits for longer, and sees no old bytes. `parc trace` tells a program's order.
 * Errors: PARC_EINVAL (there is no such order). */
enum parc_order { PARC_ORDER_ANY = 0, PARC_ORDER_UP = 1, PARC_ORDER_DOWN = 2 };
PARC_API int parc_set_order(parc_context* context, int order);

/* Sets how much of a message is there when a touch of a guarded page returns (HUNT 2005, section 5.1): the
 * strips of so many bytes that the page lies on, counted from the beginning of the buffer. 0, as at first:
 * the page, and what the peer is seen to bring in the time of eight wake-ups, at most 64 KiB and a quarter of
 * the buffer. Messages travel whole: a strip is how often a program that waits is woken. Errors: none. */
PARC_API int parc_set_strip(parc_context* context, size_t bytes);

/* Sets how many gets that were released early are waited for strip by strip (HUNT 2005, section 5.3): one
 * that is released while so many others miss something is waited for whole; and, where parc_set_order has
 * told an order, as one of a train, which the program is to touch in the order in which it has started its
 * gets: a touch of one waits for those of its peer before it, and for as many behind it as make up a strip.
 * 0, as at first: there are no trains, and gets are waited for whole where by what is measured strips would
 * cost more than they hide. Errors: PARC_EINVAL (less than 0). */
PARC_API int parc_set_train(parc_context* context, int gets);

/* Blocks until nothing of memory[0..bytes) is guarded; with NULL, until nothing is at all. parc_close, exit
 * and fork do that by themselves, and so do reads and writes with their buffers. */
PARC_API int parc_settle(parc_context* context, const void* memory, size_t bytes);

/* A message that will not come although its wait has returned. */
typedef struct parc_lost {
  void* buffer;    /* the read's, its first piece */
  uint64_t length; /* of the buffer */
  uint64_t front;  /* bytes from its beginning that did come */
  int source;      /* as the read named it */
  int tag;         /* of a get: the low half of the window's number */
  int error;       /* PARC_EPEER, PARC_EKERNEL, PARC_ETRUNCATE, PARC_EPLACE */
} parc_lost;
typedef void parc_lost_handler(void* argument, const parc_lost* lost);

/* Sets who is told of such a message. Without a handler the program ends with a sentence on standard error
 * and SIGABRT: it has gone on as if the message were there. A handler is called on the thread that found out,
 * in a parc call or at a touch (then in a signal handler: only what is async-signal-safe). When it returns,
 * the buffer's pages are accessible with whatever is in them, and the program goes on. NULL takes the handler
 * away. */
PARC_API int parc_on_lost(parc_context* context, parc_lost_handler* handler, void* argument);

typedef struct parc_release_counts {
  uint64_t released;    /* waits that returned early */
  uint64_t faults;      /* touches of guarded pages */
  uint64_t late_faults; /* of these: the page was there, only to be opened */
  uint64_t openings;    /* calls of mprotect that opened pages */
} parc_release_counts;
/* Tells how many waits were released, and what touches of their buffers cost. */
PARC_API int parc_get_release_counts(parc_context* context, parc_release_counts* counts);

/* ---- Errors -------------------------------------------------------------------------------------------- */

/* Returns the meaning of a PARC_E* in a sentence, a constant. May be called from a signal handler. */
PARC_API const char* parc_error_string(int error);
/* Returns what the last failing call of this thread tried, on what, why it failed and what to do; it is valid
 * until the thread's next parc call. */
PARC_API const char* parc_error_detail(void);

#ifdef __cplusplus
}
#endif

#include "window.h"

#endif
