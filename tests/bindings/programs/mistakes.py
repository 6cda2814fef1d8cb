# SPDX-License-Identifier: BSD-3-Clause
"""Each mistake gets its exception with words that say what is wrong, and the program goes on."""
import sys

import numpy as np
import parc

with parc.open() as p:
    place = bytearray(8)
    finished = p.initwrite(0, 9, b"")
    finished.wait()
    queued = p.initread(0, 8, bytearray(1), flags=parc.QUEUED)
    waiting = p.initread(0, 7, bytearray(1))
    mistakes = [
        (parc.Error, "context open", lambda: parc.open()),
        (parc.Error, "the peer is 4294967296, and not a number from", lambda: p.initread(1 << 32, 0, place)),
        (parc.Error, "the tag is 2147483648", lambda: p.write(0, 1 << 31, place)),
        (parc.Error, "the tag is -1", lambda: p.initreadv(0, -1, place)),
        (parc.Error, "the context is -1", lambda: p.write(0, 0, place, context=-1)),
        (parc.Error, "the flags is -1", lambda: p.initwrite(0, 0, place, flags=-1)),
        (TypeError, "the peer is 'a', and not a whole number", lambda: p.write("a", 0, place)),
        (TypeError, "the tag is 0.5", lambda: p.probe(0, 0.5)),
        (parc.Error, "1", lambda: p.write(1, 0, place)),
        (parc.Error, "tag -2 is out of range", lambda: p.write(0, -2, place)),
        (parc.Error, "one tag", lambda: p.write(0, parc.ANY_TAG, place)),
        (parc.Error, "context 0xffff0000 is parc's own", lambda: p.write(0, 0, place, context=parc.CONTEXT_RESERVED)),
        (parc.Error, "flags", lambda: p.initwrite(0, 0, place, flags=1 << 20)),
        (TypeError, "bytes-like", lambda: p.write(0, 0, "text")),
        (TypeError, "bytes-like", lambda: p.write(0, 0, [b"x", 5])),
        (BufferError, "not writable", lambda: p.initread(0, 0, b"bytes")),
        (ValueError, "read-only", lambda: p.initread(0, 0, np.frombuffer(b"bytes", "u1"))),
        (ValueError, "not contiguous", lambda: p.write(0, 0, np.zeros((4, 4))[:, 1])),
        (TypeError, "Python objects", lambda: p.initread(0, 0, np.array([None, 1]))),
        (parc.Error, "1025 pieces", lambda: p.write(0, 0, [b"x"] * 1025)),
        (parc.Error, "the size is -1", lambda: p.alloc(-1)),
        (MemoryError, "", lambda: p.alloc(1 << 62)),
        (parc.Error, "an extent of the shape is -1", lambda: p.zeros((2, -1))),
        (TypeError, "Python objects", lambda: p.zeros(2, dtype=object)),
        (parc.Error, "there is no rank 1", lambda: p.host(1)),
        (parc.Error, "address", lambda: p.add_peer("nobody")),
        (parc.Error, "", lambda: p.address_of(5)),
        (parc.Error, "", lambda: p.set_release(7)),
        (parc.Error, "", lambda: p.set_order(-1)),
        (parc.Error, "", lambda: p.set_train(-1)),
        (parc.Error, "the row", lambda: p.initget_rows(0, 1, 0, -1, 0, bytearray(1))),
        (parc.Error, "claim", lambda: p.initread_claimed(finished, place).wait()),
        (parc.Error, "completions() reports it", queued.wait),
        (parc.Error, "completions() reports it", lambda: p.waitall([waiting, queued])),
        (parc.Error, "once in a call", lambda: p.waitall([waiting, waiting])),
        (AttributeError, "", lambda: p.waitall([1])),
    ]
    said = 0
    for kind, words, mistake in mistakes:
        try:
            mistake()
        except kind as failure:
            if words in str(failure) and (kind is not parc.Error or failure.code < 0 and str(failure)):
                said += 1
            else:
                print(f"mistake {mistakes.index((kind, words, mistake))} is called: {failure!r}", file=sys.stderr)
        else:
            print(f"mistake {mistakes.index((kind, words, mistake))} is none", file=sys.stderr)
    assert waiting.test() is None  # nothing of this has touched it
print(said, "of", len(mistakes), "mistakes are named")
sys.exit(said != len(mistakes))
