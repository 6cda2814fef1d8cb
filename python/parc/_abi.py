# SPDX-License-Identifier: BSD-3-Clause
"""The C interface, <parc/parc.h>, as ctypes sees it: the library, its constants, structures and prototypes."""

import ctypes
import pathlib
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_uint32, c_uint64, c_void_p

__version__ = "0.1.0"

ANY_SOURCE = -1
ANY_TAG = -1
NO_PEER = -2
CONTEXT_RESERVED = 0xFFFF0000
ADDRESS_BYTES = 64
MAX_OPERATIONS = 2097152

OK = 0
EINVAL = -1
ENOMEM = -2
EAGAIN = -3
ETRUNCATE = -4
EPEER = -5
EKERNEL = -6
ECANCELED = -7
EFORK = -8
EVERSION = -9
ENOKERNEL = -10
ESPAWN = -11
EPLACE = -12

FROM_END = 1
EARLY = 2
SYNCHRONOUS = 4
NOW = 8
CLAIM = 16
QUEUED = 32
UNTAGGED = 64
WITH_DATA = 128

MAY_GET = 1
MAY_PUT = 2
ADD = 0
SWAP = 1
COMPARE_SWAP = 2
AND = 3
OR = 4
XOR = 5
MAY_ANYBODY = 4

RELEASE_OFF = 0
RELEASE_ENVELOPE = 1
RELEASE_FULL = 2
RELEASE_GETS = 3

ORDER_ANY = 0
ORDER_UP = 1
ORDER_DOWN = 2


class _Described(ctypes.Structure):
    def __repr__(self):
        fields = ", ".join(f"{name}={getattr(self, name)}" for name, _ in self._fields_)
        return f"{type(self).__name__}({fields})"


class Status(_Described):
    """What is known of a message: source, tag, context, error, length (as it was sent), data and has_data."""

    _fields_ = [("source", c_int), ("tag", c_int), ("context", c_uint32), ("error", c_int), ("length", c_uint64),
                ("data", c_uint64), ("has_data", c_int)]


class Envelope(ctypes.Structure):
    _fields_ = [("peer", c_int), ("tag", c_uint64), ("ignore", c_uint64), ("data", c_uint64)]


class Place(ctypes.Structure):
    _fields_ = [("peer", c_int), ("window", c_uint64), ("offset", c_uint64)]


class Completion(ctypes.Structure):
    _fields_ = [("operation", c_int64), ("status", Status)]


class ReleaseCounts(_Described):
    """Of early release: waits released, faults (touches of guarded pages), late_faults and openings."""

    _fields_ = [("released", c_uint64), ("faults", c_uint64), ("late_faults", c_uint64), ("openings", c_uint64)]


class IoVec(ctypes.Structure):
    _fields_ = [("base", c_void_p), ("length", c_size_t)]


# Calls and constants of parc.h that Python does otherwise (scripts/check-bindings looks):
#   parc_envelope_of: the arguments of a call are an envelope
#   parc_free: memory goes with its last view
#   parc_initgetv: initget takes any buffer, in one piece or several
#   parc_initputv: likewise initput
#   parc_op_index: completions() gives back the operation itself
#   parc_on_lost: a handler may run in a signal's handler, where Python must not
#   parc_error_detail: it is the text of an Error
#   PARC_OP_NULL: an operation that has finished knows that it has
#   PARC_AT_ONCE: a write that is over is an operation that has finished
_PROTOTYPES = {
    "parc_open": (c_int, [POINTER(c_void_p)]),
    "parc_join": (c_int, [POINTER(c_void_p), c_char_p, c_int, c_int]),
    "parc_start_kernel": (c_int, []),
    "parc_close": (c_int, [c_void_p]),
    "parc_rank": (c_int, [c_void_p]),
    "parc_size": (c_int, [c_void_p]),
    "parc_host": (c_char_p, [c_void_p, c_int]),
    "parc_address_of": (c_int, [c_void_p, c_int, c_char_p, c_size_t]),
    "parc_add_peer": (c_int, [c_void_p, c_char_p]),
    "parc_spawn": (c_int, [c_void_p, POINTER(c_char_p), c_int, c_char_p, POINTER(c_int)]),
    "parc_parent": (c_int, [c_void_p]),
    "parc_kill": (c_int, [c_void_p, c_int, c_int]),
    "parc_initexit": (c_int64, [c_void_p, c_int, c_uint]),
    "parc_abort": (None, [c_void_p, c_int]),
    "parc_clock": (c_double, []),
    "parc_alloc": (c_void_p, [c_void_p, c_size_t]),
    "parc_free": (None, [c_void_p, c_void_p]),
    "parc_initreadv": (c_int64, [c_void_p, POINTER(Envelope), POINTER(IoVec), c_int, c_uint]),
    "parc_initwritev": (c_int64, [c_void_p, POINTER(Envelope), POINTER(IoVec), c_int, c_uint]),
    "parc_initprobe": (c_int64, [c_void_p, POINTER(Envelope), c_uint]),
    "parc_initread_claimed": (c_int64, [c_void_p, c_int64, POINTER(IoVec), c_int, c_uint]),
    "parc_expose": (c_int, [c_void_p, c_uint64, c_void_p, c_size_t, c_uint]),
    "parc_unexpose": (c_int, [c_void_p, c_uint64]),
    "parc_initgetv": (c_int64, [c_void_p, POINTER(Place), POINTER(IoVec), c_int, c_uint]),
    "parc_initputv": (c_int64, [c_void_p, POINTER(Place), POINTER(IoVec), c_int, c_uint]),
    "parc_initget_rows": (c_int64, [c_void_p, POINTER(Place), c_size_t, c_int64, POINTER(IoVec), c_int, c_uint]),
    "parc_initput_rows": (c_int64, [c_void_p, POINTER(Place), c_size_t, c_int64, POINTER(IoVec), c_int, c_uint]),
    "parc_initatomic": (c_int64, [c_void_p, POINTER(Place), c_int, c_size_t, c_uint64, c_uint64, c_void_p, c_uint]),
    "parc_quiet": (c_int, [c_void_p]),
    "parc_wait": (c_int, [c_void_p, c_int64, POINTER(Status)]),
    "parc_test": (c_int, [c_void_p, c_int64, POINTER(Status)]),
    "parc_done": (c_int, [c_void_p, c_int64]),
    "parc_waitall": (c_int, [c_void_p, c_int, POINTER(c_int64), POINTER(Status)]),
    "parc_waitany": (c_int, [c_void_p, c_int, POINTER(c_int64), POINTER(c_int), POINTER(Status)]),
    "parc_waitsome": (c_int, [c_void_p, c_int, POINTER(c_int64), POINTER(c_int), POINTER(c_int), POINTER(Status)]),
    "parc_cancel": (c_int, [c_void_p, c_int64]),
    "parc_completions": (c_int, [c_void_p, POINTER(Completion), c_int, c_double]),
    "parc_wake": (c_int, [c_void_p]),
    "parc_descriptor": (c_int, [c_void_p]),
    "parc_arm": (c_int, [c_void_p]),
    "parc_probe": (c_int, [c_void_p, POINTER(Envelope), POINTER(Status)]),
    "parc_iprobe": (c_int, [c_void_p, POINTER(Envelope), POINTER(Status)]),
    "parc_barrier": (c_int, [c_void_p]),
    "parc_set_copy_room": (c_int, [c_void_p, c_size_t]),
    "parc_set_put_off": (c_int, [c_void_p, c_uint64, c_int]),
    "parc_set_release": (c_int, [c_void_p, c_int]),
    "parc_set_order": (c_int, [c_void_p, c_int]),
    "parc_set_strip": (c_int, [c_void_p, c_size_t]),
    "parc_set_train": (c_int, [c_void_p, c_int]),
    "parc_settle": (c_int, [c_void_p, c_void_p, c_size_t]),
    "parc_get_release_counts": (c_int, [c_void_p, POINTER(ReleaseCounts)]),
    "parc_error_string": (c_char_p, [c_int]),
    "parc_error_detail": (c_char_p, []),
}


def _load():
    """libparc: the one that was installed with this package (PREFIX/lib), else the one that the loader finds."""
    name = "libparc.so.0"
    beside = pathlib.Path(__file__).resolve().parents[3] / name
    try:
        library = ctypes.CDLL(str(beside) if beside.exists() else name)
    except OSError as problem:
        raise ImportError(f"cannot load parc's library: {problem}; install it, or name its directory in "
                          "LD_LIBRARY_PATH") from None
    for call, (result, arguments) in _PROTOTYPES.items():
        try:
            function = getattr(library, call)
        except AttributeError:
            raise ImportError(f"parc's library has no {call}: it is older than this package, {__version__}; install "
                              "both from one source") from None
        function.restype, function.argtypes = result, arguments
    return library


lib = _load()


class Error(Exception):
    """A call or an operation of parc that failed; str() is the sentence that says what, why, and what to do.

    code is one of parc's E constants, such as parc.EPEER. status, where an operation failed, says how long a
    message was that was truncated, say; operation, where it was one of several, which.
    """

    def __init__(self, code, sentence, status=None, operation=None):
        super().__init__(sentence)
        self.code = code
        self.status = status
        self.operation = operation


def check(result, status=None, operation=None):
    """The result of a call, or the Error that a negative one is. Made at once: the sentence is the last failure's."""
    if result < 0:
        raise Error(result, lib.parc_error_detail().decode(), status, operation)
    return result


# ctypes cuts a number to the bits that its place has, silently.
def number(what, value, bits, signed=True):
    """value as a whole number that C's type of so many bits can hold."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    try:
        whole = value.__index__()
    except AttributeError:
        raise TypeError(f"{what} is {value!r}, and not a whole number") from None
    if not low <= whole <= high:
        raise Error(EINVAL, f"{what} is {whole}, and not a number from {low} to {high}")
    return whole
