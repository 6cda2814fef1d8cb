# SPDX-License-Identifier: BSD-3-Clause
"""parc: messages that move while the program computes.

The calls of <parc/parc.h> (libparc(3)) for Python, over its C library and without a copy of any buffer:

    import parc

    with parc.open() as p:                  # joins the job that `parc run` has started
        read = p.initread(peer, tag, ghost)
        write = p.initwrite(peer, tag, border)
        ...                                 # calculate what needs neither
        p.waitall([read, write])

What fails raises parc.Error, whose text says what was tried, why it failed and what to do.
"""

from ._abi import (ADD, ADDRESS_BYTES, AND, ANY_SOURCE, ANY_TAG, CLAIM, COMPARE_SWAP, CONTEXT_RESERVED, EAGAIN, EARLY,
                   ECANCELED, EFORK, EINVAL, EKERNEL, ENOKERNEL, ENOMEM, EPEER, EPLACE, ESPAWN, ETRUNCATE, EVERSION,
                   FROM_END, MAX_OPERATIONS, MAY_ANYBODY, MAY_GET, MAY_PUT, NOW, OK, OR, ORDER_ANY, ORDER_DOWN,
                   ORDER_UP, QUEUED, RELEASE_ENVELOPE, RELEASE_FULL, RELEASE_GETS, RELEASE_OFF, SWAP, SYNCHRONOUS,
                   UNTAGGED, WITH_DATA, XOR, Error, ReleaseCounts, Status, __version__, check, lib, number)
from ._operation import Operation
from ._session import Session


def open():
    """Joins the job of this process, and returns its Session. Raises Error: ENOKERNEL where no kernel runs."""
    return Session()


def join(job, rank, size):
    """open(), as rank `rank` of the `size` of the job of that name ("NAME" or "NAME@HOST"), once all are there.

    None: a job of this process alone, whatever the environment says.
    """
    return Session((None if job is None else job.encode(), number("the rank", rank, 32), number("the size", size, 32)))


def start_kernel():
    """Starts a kernel on this host where none runs for this user."""
    check(lib.parc_start_kernel())


def clock():
    """Seconds of a monotonic clock."""
    return lib.parc_clock()


def error_string(error):
    """The meaning of one of the E constants in a sentence."""
    return lib.parc_error_string(number("the error", error, 32)).decode()


for _public in Error, Operation, ReleaseCounts, Session, Status:
    _public.__module__ = __name__  # as it is called in what Python says of it

__all__ = [name for name in dir() if not name.startswith("_") and name not in ("check", "lib", "number")]
