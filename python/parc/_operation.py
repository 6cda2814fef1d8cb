# SPDX-License-Identifier: BSD-3-Clause
"""Operation: a read, write or probe under way, and what holds its buffers meanwhile."""

import contextlib
import threading
from ctypes import byref, c_int64

from ._abi import EINVAL, OK, QUEUED, Error, Status, check, lib

NULL = 0  # PARC_OP_NULL: waits ignore it


class Operation:
    """A read, write or probe that was started. Its buffers belong to it until it has finished.

    One that nobody waits for goes on all the same, and its buffers are held until it has ended: a write that is
    forgotten arrives. How it ended is not told then.
    """

    __slots__ = ("_session", "_handle", "_pieces", "_flags", "_lock", "finished", "status")

    no_lock = contextlib.nullcontext()

    def __init__(self, session, handle, pieces, flags):
        self._session = session
        self._handle = handle
        self._pieces = pieces
        self._flags = flags
        self._lock = threading.Lock()  # held by whoever waits for it
        self.finished = False  # it has been waited for, or reported
        self.status = None  # how it ended

    def __repr__(self):
        return f"<parc.Operation {self._handle}: {self.status if self.finished else 'under way'}>"

    def __del__(self):
        # Not waited for here: that could block, in whichever thread collects garbage.
        if not getattr(self, "finished", True) and not self._flags & QUEUED:
            self._session._forgotten.append((self._handle, self._pieces))

    def wait(self):
        """Blocks until it has finished, and returns its status; raises Error when it failed.

        A read has finished when its message is in the buffer, a write when its buffer may be changed. Waited for again,
        it says the same again.
        """
        with alone(self._session, [self]):
            if not self.finished:
                status = Status()
                code = lib.parc_wait(self._session._open, self._handle, byref(status))
                self._end(code, status)
            return self._outcome()

    def test(self):
        """Its status when it has finished, None when it has not; raises Error when it failed. Never blocks."""
        with alone(self._session, [self]):
            if not self.finished:
                status = Status()
                code = lib.parc_test(self._session._open, self._handle, byref(status))
                if code == 0:
                    return None
                self._end(code, status)
            return self._outcome()

    def done(self):
        """Whether a wait for it would return, or raise, at once."""
        return self.finished or lib.parc_done(self._session._open, self._handle) != 0

    def cancel(self):
        """Asks to give it up. It must still be waited for: it ends with ECANCELED, or as if nobody had asked."""
        if not self.finished:
            check(lib.parc_cancel(self._session._open, self._handle))

    def _end(self, code, status):
        if code < 0 and status.error == OK:  # refused (EFORK): the operation is as it was
            check(code, None, self)
        sentence = lib.parc_error_detail().decode() if code < 0 else ""
        self._finish(status)
        if code < 0:
            raise Error(code, sentence, status, self)

    def _outcome(self):
        if self.status.error < 0:
            raise Error(self.status.error, lib.parc_error_string(self.status.error).decode(), self.status, self)
        return self.status

    def _finish(self, status):
        self.finished = True
        self.status = status
        self._pieces.release()

    @staticmethod
    def handles(operations):
        """As the C interface's waits take them: those that have finished stand for none."""
        return (c_int64 * len(operations))(*(NULL if each.finished else each._handle for each in operations))


@contextlib.contextmanager
def alone(session, operations):
    """Nobody else waits for these: so it is known which call has finished one, and may let its buffers go."""
    held = []
    try:
        for operation in operations:
            if operation._session is not session:
                raise Error(EINVAL, "this operation belongs to another session")
            if operation._flags & QUEUED and not operation.finished:
                raise Error(EINVAL, "this operation was started with QUEUED: completions() reports it, and no wait")
            if not operation._lock.acquire(blocking=False):
                raise Error(EINVAL, "an operation can be waited for by one thread at a time, and once in a call")
            held.append(operation)
        yield
    finally:
        for operation in held:
            operation._lock.release()
