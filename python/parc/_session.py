# SPDX-License-Identifier: BSD-3-Clause
"""Session: membership of a job, and all that needs it."""

import collections
import ctypes
import os
import sys
import threading
import weakref
from ctypes import byref, c_int

from ._abi import (ADD, ADDRESS_BYTES, ANY_SOURCE, ANY_TAG, CONTEXT_RESERVED, EINVAL, MAY_GET, NO_PEER, QUEUED,
                   Completion, Envelope, Error, Place, ReleaseCounts, Status, check, lib, number)
from ._buffers import Pieces
from ._operation import NULL, Operation, alone


# parc.h's parc_envelope_of: the call says what is wrong with an envelope of NO_PEER.
def _envelope_of(peer, context, tag):
    peer, tag = number("the peer", peer, 32), number("the tag", tag, 32)
    context = number("the context", context, 32, False)
    if tag < 0 and tag != ANY_TAG or context >= CONTEXT_RESERVED:
        peer = NO_PEER
    if tag == ANY_TAG:
        return Envelope(peer, context << 32, 0xFFFFFFFF, 0)
    return Envelope(peer, context << 32 | tag & 0xFFFFFFFF, 0, 0)


def _envelope(peer, tag, ignore=0, data=0):
    return Envelope(number("the peer", peer, 32), number("the tag", tag, 64, False),
                    number("ignore", ignore, 64, False), number("data", data, 64, False))


def _in_rows(call, row, stride):
    row, stride = number("the row", row, 64, False), number("the stride", stride, 64)

    def start(session, place, pieces, count, flags):
        return call(session, place, row, stride, pieces, count, flags)
    return start


def _place(peer, window, offset):
    return Place(number("the peer", peer, 32), number("the window", window, 64, False),
                 number("the offset", offset, 64, False))


class Session:
    """Membership of the job that `parc run` started this program in, from parc.open() to close().

    Started by hand, a program is a job of its own. A process has one session at a time. It is a context manager:

        with parc.open() as p:
            read = p.initread(peer, 0, ghost)
            write = p.initwrite(peer, 0, border)
            ...                                 # calculate what needs neither
            p.waitall([read, write])

    A buffer is anything with the buffer protocol whose memory is in one piece (bytes, bytearray, memoryview, array,
    NumPy arrays), or a list of such, which follow each other in the message; it is never copied in Python. What is
    read into must be writable. All calls may be made from any thread; those that block let other threads run.
    """

    def __init__(self, job=None):
        context = ctypes.c_void_p()
        check(lib.parc_join(byref(context), *job) if job else lib.parc_open(byref(context)))
        self._context = context
        self._closed = False
        self._blocks = 0  # of parc_alloc, which Python still uses
        self._forgotten = collections.deque()  # operations that nobody can wait for any more
        self._queued = {}  # operations that completions() reports
        self._windows = {}  # their memory, by number
        self._lock = threading.RLock()  # of these, and of _blocks; a finalizer may come in between

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Leaves the job, once the kernel has taken over every write; reads that are left are given up.

        Arrays of alloc() and zeros() stay valid: while there are some, the job is left with the last of them, or when
        the program ends.
        """
        with self._lock:
            if self._closed:
                return
            self._closed = True
            in_use = self._blocks > 0
        if not in_use:
            self._leave()

    def _leave(self):
        check(lib.parc_close(self._context))
        while self._forgotten:
            self._forgotten.popleft()[1].release()
        for operation in self._queued.values():
            operation._pieces.release()
        self._queued.clear()
        while self._windows:
            self._windows.popitem()[1].release()

    @property
    def _open(self):
        if self._closed:
            raise Error(EINVAL, "this session has been closed")
        return self._context

    # ---- The job

    @property
    def rank(self):
        """Number of this program in its job, 0 to size - 1."""
        return check(lib.parc_rank(self._open))

    @property
    def size(self):
        """How many ranks the job has."""
        return check(lib.parc_size(self._open))

    def host(self, rank):
        """Name of the host of a rank."""
        name = lib.parc_host(self._open, number("the rank", rank, 32))
        if name is None:
            raise Error(EINVAL, f"there is no rank {rank}: the job has {self.size}")
        return name.decode()

    def address_of(self, peer):
        """The address of a peer, a text by which programs of other jobs can write to it (add_peer)."""
        text = ctypes.create_string_buffer(ADDRESS_BYTES)
        check(lib.parc_address_of(self._open, number("the peer", peer, 32), text, ADDRESS_BYTES))
        return text.value.decode()

    def add_peer(self, address):
        """Makes a peer of the program that has this address, and returns its number."""
        return check(lib.parc_add_peer(self._open, address.encode()))

    def spawn(self, arguments, count=1, hosts=None):
        """Starts count processes of a program, and returns their numbers as peers.

        arguments: the program and what it is given; hosts: "a:2,b", or the hosts of this job take turns.
        """
        count = number("the count", count, 32)
        words = [os.fsencode(word) for word in arguments]
        peers = (c_int * max(count, 1))()
        check(lib.parc_spawn(self._open, (ctypes.c_char_p * (len(words) + 1))(*words, None), count,
                             None if hosts is None else os.fsencode(hosts), peers))
        return list(peers)

    def parent(self):
        """The peer that has spawned this program."""
        return check(lib.parc_parent(self._open))

    def kill(self, peer, signal):
        """Sends a signal to a rank of this job, or to a process that this program has spawned."""
        check(lib.parc_kill(self._open, number("the peer", peer, 32), number("the signal", signal, 32)))

    def initexit(self, peer, *, flags=0):
        """An operation that finishes when that process has ended, which this program has spawned: data is its status."""
        def start(session, process, _, __, flags):
            return lib.parc_initexit(session, process, flags)
        return self._start(start, number("the peer", peer, 32), None, False, flags)

    def barrier(self):
        """Blocks until every rank of the job has called it."""
        check(lib.parc_barrier(self._open))

    def abort(self, status):
        """Ends the whole job; `parc run` exits with status. Does not return."""
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        lib.parc_abort(self._open, number("the status", status, 32))

    # ---- Memory

    def alloc(self, size):
        """A memoryview of so many bytes that the kernel reads and writes in place; they are not cleared.

        Messages from and to it, and from and to what is made of it, are not copied in this host. It is returned when
        the last view of it goes.
        """
        size = number("the size", size, 63, False)
        memory = lib.parc_alloc(self._open, max(size, 1))
        if not memory:
            raise MemoryError(lib.parc_error_detail().decode())
        block = (ctypes.c_ubyte * size).from_address(memory)
        with self._lock:
            self._blocks += 1
        weakref.finalize(block, self._free, memory).atexit = False
        return memoryview(block).cast("B")

    def zeros(self, shape, dtype=float):
        """A NumPy array of zeros in such memory (see alloc)."""
        import numpy

        dtype = numpy.dtype(dtype)
        if dtype.hasobject:
            raise TypeError("an array of Python objects is no message: its bytes are addresses of this process")
        count = 1
        for extent in shape if isinstance(shape, (tuple, list)) else (shape,):
            count *= number("an extent of the shape", extent, 63, False)
        array = numpy.ndarray(shape, dtype, self.alloc(count * dtype.itemsize))
        array.fill(0)
        return array

    def _free(self, memory):
        lib.parc_free(self._context, memory)
        with self._lock:
            self._blocks -= 1
            last = self._closed and self._blocks == 0
        if last:
            self._leave()

    # ---- Starting operations

    def _start(self, start, target, buffer, writable, flags):
        context = self._open
        flags = number("the flags", flags, 32, False)
        self._sweep()
        pieces = Pieces(buffer, writable)
        with self._lock if flags & QUEUED else Operation.no_lock:
            handle = start(context, target, pieces.vector, pieces.count, flags)
            try:
                check(handle)
            except Error:
                pieces.release()
                raise
            operation = Operation(self, handle, pieces, flags)
            if flags & QUEUED:
                self._queued[handle] = operation
        return operation

    def _sweep(self):
        # What nobody waits for is finished on the way, so that the table of operations does not fill with it.
        for _ in range(len(self._forgotten)):
            try:
                handle, pieces = self._forgotten.popleft()
            except IndexError:
                return
            if lib.parc_done(self._open, handle):
                lib.parc_wait(self._open, handle, None)
                pieces.release()
            else:
                self._forgotten.append((handle, pieces))

    def initread(self, peer, tag, buffer, *, context=0, flags=0):
        """Starts reading a message of peer (or ANY_SOURCE) with tag (or ANY_TAG); returns an Operation."""
        return self._start(lib.parc_initreadv, _envelope_of(peer, context, tag), buffer, True, flags)

    def initwrite(self, peer, tag, buffer, *, context=0, flags=0):
        """Starts writing a message to peer; returns an Operation. Never waits for a read."""
        return self._start(lib.parc_initwritev, _envelope_of(peer, context, tag), buffer, False, flags)

    def initreadv(self, peer, tag, buffer, *, ignore=0, flags=0):
        """initread by a tag of 64 bits, of which those in ignore may be any."""
        return self._start(lib.parc_initreadv, _envelope(peer, tag, ignore), buffer, True, flags)

    def initwritev(self, peer, tag, buffer, *, data=0, flags=0):
        """initwrite by a tag of 64 bits, with a number of 64 bits for the status of who reads the message."""
        return self._start(lib.parc_initwritev, _envelope(peer, tag, 0, data), buffer, False, flags)

    def initprobe(self, peer, tag, *, ignore=0, flags=0):
        """An operation that finishes when such a message is there, with NOW at once; with CLAIM it takes it."""
        def start(session, envelope, _, __, flags):
            return lib.parc_initprobe(session, envelope, flags)
        return self._start(start, _envelope(peer, tag, ignore), None, False, flags)

    def initread_claimed(self, claim, buffer, *, flags=0):
        """Starts reading the message that claim, a finished initprobe, has claimed; with None it is thrown away."""
        return self._start(lib.parc_initread_claimed, claim._handle, buffer, True, flags)

    # ---- One-sided transfers

    def expose(self, window, buffer, rights=MAY_GET):
        """Peers get from this memory, or put into it, as window number `window` until unexpose().

        Of memory that is not of alloc() or zeros() the kernel makes one copy more. The rights are MAY_GET, MAY_PUT or both.
        """
        window = number("the window", window, 64, False)
        memory = Pieces(buffer, True)
        try:
            if memory.count != 1:
                raise ValueError("the memory of a window is one buffer")
            piece = memory.vector[0]
            check(lib.parc_expose(self._open, window, piece.base, piece.length, number("the rights", rights, 32, False)))
        except BaseException:
            memory.release()
            raise
        self._windows[window] = memory

    def unexpose(self, window):
        """Takes a window's memory back: blocks until what others have begun to get or put there has ended."""
        window = number("the window", window, 64, False)
        check(lib.parc_unexpose(self._open, window))
        self._windows.pop(window).release()

    def initget(self, peer, window, offset, buffer, *, flags=0):
        """Starts to get what is at offset in a peer's window, without that peer's part; returns an Operation."""
        return self._start(lib.parc_initgetv, _place(peer, window, offset), buffer, True, flags)

    def get(self, peer, window, offset, buffer, *, flags=0):
        """initget and wait: the bytes are in the buffer."""
        return self.initget(peer, window, offset, buffer, flags=flags).wait()

    def initget_rows(self, peer, window, offset, row, stride, buffer, *, flags=0):
        """initget of rows of so many bytes, each stride bytes behind the one before it."""
        return self._start(_in_rows(lib.parc_initget_rows, row, stride), _place(peer, window, offset), buffer, True, flags)

    def initput(self, peer, window, offset, buffer, *, flags=0):
        """Starts to put a buffer at offset in a peer's window, without that peer's part; returns an Operation."""
        return self._start(lib.parc_initputv, _place(peer, window, offset), buffer, False, flags)

    def initput_rows(self, peer, window, offset, row, stride, buffer, *, flags=0):
        """initput of rows of so many bytes, each stride bytes behind the one before it."""
        return self._start(_in_rows(lib.parc_initput_rows, row, stride), _place(peer, window, offset), buffer, False, flags)

    def put(self, peer, window, offset, buffer, *, flags=0):
        """initput and wait: the buffer may be changed again."""
        return self.initput(peer, window, offset, buffer, flags=flags).wait()

    def initatomic(self, peer, window, offset, what, operand, *, compare=0, width=8, flags=0):
        """Starts ADD, SWAP, COMPARE_SWAP, AND, OR or XOR of a word in a peer's window; returns an Operation.

        The data of its status is what was there before.
        """
        mask = (1 << 64) - 1
        operand, compare = number("the operand", operand & mask, 64, False), number("compare", compare & mask, 64, False)

        def start(session, place, _, __, flags):
            return lib.parc_initatomic(session, place, number("what", what, 32), width, operand, compare, None, flags)
        return self._start(start, _place(peer, window, offset), None, False, flags)

    def fetch_add(self, peer, window, offset, more):
        """Adds to a word of 8 bytes in a peer's window, and returns what was there before, without a sign."""
        return self.initatomic(peer, window, offset, ADD, more).wait().data

    def quiet(self):
        """Blocks until all that this program has put is in place."""
        check(lib.parc_quiet(self._open))

    # ---- Finishing operations

    def waitall(self, operations):
        """Blocks until all have finished, and returns their statuses.

        Where some failed, raises the first's Error, when all have finished; status of each operation tells more.
        """
        operations = list(operations)
        with alone(self, operations):
            handles = Operation.handles(operations)
            statuses = (Status * len(operations))()
            code = lib.parc_waitall(self._open, len(operations), handles, statuses)
            sentence = lib.parc_error_detail().decode() if code < 0 else ""
            failed = None
            for index, operation in enumerate(operations):
                if not operation.finished and handles[index] == NULL:
                    operation._finish(statuses[index])
                    failed = failed or (operation if operation.status.error < 0 else None)
        if code < 0:
            raise Error(code, sentence, failed and failed.status, failed)
        return [operation.status for operation in operations]

    def waitany(self, operations):
        """Blocks until one has finished, and returns its index; None when all had been waited for before."""
        operations = list(operations)
        with alone(self, operations):
            index, status = c_int(-1), Status()
            code = lib.parc_waitany(self._open, len(operations), Operation.handles(operations), byref(index),
                                    byref(status))
            if index.value < 0:
                check(code)
                return None
            operations[index.value]._finish(status)
            check(code, status, operations[index.value])
        return index.value

    def waitsome(self, operations):
        """Blocks until at least one has finished, and returns the indices of all that have.

        One that failed is no exception here: the status of each operation says how it ended.
        """
        operations = list(operations)
        with alone(self, operations):
            count = len(operations)
            done, indices, statuses = c_int(-2), (c_int * count)(), (Status * count)()
            code = lib.parc_waitsome(self._open, count, Operation.handles(operations), byref(done), indices, statuses)
            if done.value == -2:
                check(code)
            finished = [indices[place] for place in range(max(done.value, 0))]
            for place, index in enumerate(finished):
                operations[index]._finish(Status.from_buffer_copy(statuses[place]))
        return finished

    def completions(self, count=64, timeout=None):
        """Operations started with QUEUED that have ended, at most count; how is in the status of each.

        Where there is none, blocks until there is one, but timeout seconds at most (None: without a limit).
        """
        count = number("the count", count, 31, False)
        ended = (Completion * count)()
        found = check(lib.parc_completions(self._open, ended, count, -1.0 if timeout is None else timeout))
        reported = []
        for completion in ended[:found]:
            with self._lock:  # its start has put it there
                operation = self._queued.pop(completion.operation)
            operation._finish(Status.from_buffer_copy(completion.status))
            reported.append(operation)
        return reported

    def wake(self):
        """Ends one completions() that blocks in another thread, or else the next one that would."""
        check(lib.parc_wake(self._open))

    def descriptor(self):
        """A descriptor to be watched by select, poll or an event loop, which arm() makes ready for each sleep."""
        return check(lib.parc_descriptor(self._open))

    def arm(self):
        """Before each sleep: True when completions() has something to report, and there is no need to sleep."""
        return check(lib.parc_arm(self._open)) != 0

    def set_put_off(self, operations, peer=ANY_SOURCE):
        """How many operations the caller starts later, for want of memory, and for whom the oldest is."""
        check(lib.parc_set_put_off(self._open, number("the number", operations, 64, False), number("the peer", peer, 32)))

    # ---- Whole calls

    def read(self, peer, tag, buffer, *, context=0, flags=0):
        """initread and wait: returns the message's status."""
        return self.initread(peer, tag, buffer, context=context, flags=flags).wait()

    def write(self, peer, tag, buffer, *, context=0, flags=0):
        """initwrite and wait: the buffer may be changed afterwards."""
        self.initwrite(peer, tag, buffer, context=context, flags=flags).wait()

    def probe(self, peer, tag, *, context=0):
        """Blocks until a message that such a read would match is there, and returns its status."""
        status = Status()
        check(lib.parc_probe(self._open, _envelope_of(peer, context, tag), byref(status)))
        return status

    def iprobe(self, peer, tag, *, context=0):
        """The status of a message that such a read would match, or None where there is none yet."""
        status = Status()
        return status if check(lib.parc_iprobe(self._open, _envelope_of(peer, context, tag), byref(status))) else None

    # ---- Settings, and early release

    def set_copy_room(self, size):
        """How many bytes waits for writes may hold as copies; 0: they wait for the network."""
        check(lib.parc_set_copy_room(self._open, number("the size", size, 64, False)))

    def set_release(self, level):
        """Waits of reads and gets return early: RELEASE_OFF, RELEASE_GETS (gets alone), RELEASE_ENVELOPE or
        RELEASE_FULL. See libparc(3)."""
        check(lib.parc_set_release(self._open, number("the level", level, 32)))

    def set_order(self, order):
        """In which the program touches what it reads: ORDER_ANY, ORDER_UP or ORDER_DOWN."""
        check(lib.parc_set_order(self._open, number("the order", order, 32)))

    def set_strip(self, size):
        """How many bytes a touch of a guarded page waits for; 0: by what is measured."""
        check(lib.parc_set_strip(self._open, number("the size", size, 64, False)))

    def set_train(self, gets):
        """Behind how many released gets others are waited for whole, or, in an order, together; 0: never."""
        check(lib.parc_set_train(self._open, number("the count", gets, 32)))

    def settle(self, buffer=None):
        """Blocks until nothing of a buffer is guarded; without one, until nothing is at all."""
        if buffer is None:
            check(lib.parc_settle(self._open, None, 0))
            return
        pieces = Pieces(buffer, False)
        try:
            for piece in pieces.vector[: pieces.count]:
                check(lib.parc_settle(self._open, piece.base, piece.length))
        finally:
            pieces.release()

    def get_release_counts(self):
        """What early release has done: released, faults, late_faults, openings."""
        counts = ReleaseCounts()
        check(lib.parc_get_release_counts(self._open, byref(counts)))
        return counts
