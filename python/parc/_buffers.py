# SPDX-License-Identifier: BSD-3-Clause
"""Memory of Python objects, by the buffer protocol and without a copy.

Pieces hold what they were made of by CPython's own count of views: as long as they do, a bytearray refuses to be
resized, and an array that nobody else knows any more stays.
"""

import ctypes
import re
from ctypes import POINTER, c_char_p, c_int, c_ssize_t, c_void_p

from ._abi import IoVec


class _View(ctypes.Structure):  # Py_buffer: may point into itself, so it stays where it was made
    _fields_ = [("buf", c_void_p), ("obj", c_void_p), ("len", c_ssize_t), ("itemsize", c_ssize_t),
                ("readonly", c_int), ("ndim", c_int), ("format", c_char_p), ("shape", c_void_p),
                ("strides", c_void_p), ("suboffsets", c_void_p), ("internal", c_void_p)]


_WRITABLE = 0x001
_FORMAT = 0x004
_ANY_CONTIGUOUS = 0x080 | 0x010 | 0x008

# A memoryview knows no address, and ctypes gives none of memory that may not be written to.
_get = ctypes.pythonapi.PyObject_GetBuffer
_get.restype, _get.argtypes = c_int, [ctypes.py_object, POINTER(_View), c_int]
_release = ctypes.pythonapi.PyBuffer_Release
_release.restype, _release.argtypes = None, [POINTER(_View)]


class Pieces:
    """The memory of a buffer, or of a list of buffers that follow each other in a message; None is no memory."""

    __slots__ = ("_views", "count", "vector")

    def __init__(self, buffers, writable):
        if buffers is None:
            buffers = ()
        elif not isinstance(buffers, (list, tuple)):
            buffers = (buffers,)
        self._views = []
        try:
            for buffer in buffers:
                self._add(buffer, writable)
        except BaseException:
            self.release()
            raise
        self.count = len(self._views)
        self.vector = (IoVec * max(self.count, 1))(*((view.buf, view.len) for view in self._views))

    def _add(self, buffer, writable):
        view = _View()
        _get(buffer, view, _ANY_CONTIGUOUS | _FORMAT | (_WRITABLE if writable else 0))
        self._views.append(view)
        if b"O" in re.sub(rb":[^:]*:", b"", view.format or b""):  # the names of fields stand between colons
            raise TypeError("a buffer of Python objects is no message: its bytes are addresses of this process")

    def release(self):
        """Lets go of the buffers. Not done when it is forgotten: then they are held for ever, which is safe."""
        while self._views:
            _release(self._views.pop())
