# SPDX-License-Identifier: BSD-3-Clause
"""Each call of the package parc between the two ranks of a job; prints what it has done. Knows NumPy where there is one."""
import array
import gc
import os
import select
import sys
import threading

import parc

try:
    import numpy as np
except ImportError:
    np = None


def whole_calls(p, other):
    text = b"from %d" % p.rank
    read = bytearray(20)
    writing = p.initwrite(other, 1, text)
    status = p.read(other, 1, read)
    writing.wait()
    assert (status.source, status.tag, status.length, status.error) == (other, 1, 6, parc.OK), status
    assert read[:6] == b"from %d" % other and read[6:] == bytes(14), read
    assert writing.finished and writing.wait() is writing.status  # waited for again


def buffers(p, other):
    numbers = array.array("d", [1.5, 2.5])
    blocks = memoryview(b"abcdefgh")[2:5]
    p.initwrite(other, 2, [numbers, b"", blocks, bytes(1)]).wait()
    doubles, letters = array.array("d", [0, 0]), p.alloc(4)
    assert p.read(other, 2, (doubles, letters)).length == 20
    assert doubles == numbers and bytes(letters) == b"cde\0", (doubles, bytes(letters))
    p.write(other, 3, None)  # of no bytes
    assert p.read(other, 3, None).length == 0
    p.write(other, 3, [b"x"] * 1024)
    many = bytearray(1024)
    assert p.read(other, 3, many).length == 1024 and many == b"x" * 1024


def held(p, other):
    """A buffer is held while its operation is under way, also when nobody knows the operation any more."""
    growing = bytearray(8)
    read = p.initread(other, 4, growing)
    try:
        growing.append(1)
        raise AssertionError("a buffer was resized while it was read into")
    except BufferError:
        pass
    p.write(other, 4, b"12345678")
    read.wait()
    growing.append(1)
    p.barrier()
    got = bytearray(10000)
    for number in range(1500):  # more than the first block of the tables has room for
        p.initwrite(other, 5, number.to_bytes(2, "little") * 5000)
        gc.collect(0)
        p.read(other, 5, got)
        assert got == number.to_bytes(2, "little") * 5000, number


def waits(p, other):
    places = [bytearray(4) for _ in range(4)]
    reads = [p.initread(other, 10 + tag, place) for tag, place in enumerate(places)]
    assert reads[0].test() is None and not reads[0].done()
    p.barrier()
    p.write(other, 12, b"two.")
    assert p.waitany(reads) == 2 and reads[2].status.length == 4 and places[2] == b"two."
    p.barrier()
    p.write(other, 10, b"zero")
    p.write(other, 11, b"one")
    seen = set()
    while len(seen) < 2:
        seen.update(p.waitsome(reads))
    assert seen == {0, 1} and reads[1].status.length == 3
    reads[3].cancel()
    try:
        reads[3].wait()
        raise AssertionError("it was canceled")
    except parc.Error as failure:
        assert (failure.code, failure.operation, failure.status.error) == (parc.ECANCELED, reads[3], parc.ECANCELED)
    assert p.waitany(reads) is None and p.waitsome(reads) == [] and p.waitany([]) is None
    tested = p.initread(other, 14, places[0])  # the other rank may yet have to cancel 13
    p.write(other, 14, b"test")
    while tested.test() is None:
        pass
    assert tested.test().length == 4 and tested.done()
    assert [status.tag for status in p.waitall(reads[:3])] == [10, 11, 12]


def failures(p, other):
    p.write(other, 20, b"too long")
    short, good = bytearray(3), bytearray(3)
    p.write(other, 21, b"fit")
    reads = [p.initread(other, 21, good), p.initread(other, 20, short)]
    try:
        p.waitall(reads)
        raise AssertionError("it was too long")
    except parc.Error as failure:
        assert failure.code == parc.ETRUNCATE and failure.operation is reads[1] and failure.status.length == 8
        assert "8" in str(failure) and "3" in str(failure), failure
    assert good == b"fit" and short == b"too" and reads[0].status.length == 3
    read = p.initread(other, 22, good)
    child = os.fork()
    if child == 0:  # may use nothing of it, however often it asks
        for _ in range(2):
            try:
                read.wait()
                os._exit(1)
            except parc.Error as failure:
                if failure.code != parc.EFORK or read.finished:
                    os._exit(2)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    p.write(other, 22, b"own")
    read.wait()
    assert good == b"own"
    assert parc.error_string(parc.ETRUNCATE) and parc.error_string(parc.EPEER)


def envelopes(p, other):
    tag = 1 << 63 | 7
    write = p.initwritev(other, tag, b"tagged", data=2**64 - 1, flags=parc.SYNCHRONOUS)
    assert p.initprobe(other, 6, flags=parc.NOW).wait().source == parc.ANY_SOURCE
    claim = p.initprobe(parc.ANY_SOURCE, 7, ignore=1 << 63, flags=parc.CLAIM)
    status = claim.wait()
    assert (status.source, status.length, status.data, status.has_data) == (other, 6, 2**64 - 1, 1), status
    got = bytearray(6)
    p.initread_claimed(claim, got).wait()
    write.wait()
    assert got == b"tagged"
    p.write(other, 8, b"context", context=5)
    assert p.iprobe(other, 8) is None
    status = p.probe(parc.ANY_SOURCE, parc.ANY_TAG, context=5)
    assert (status.tag, status.context, status.length) == (8, 5, 7) and p.iprobe(other, 8, context=5).length == 7
    read = p.initreadv(other, 5 << 32 | 8, bytearray(7))
    assert read.wait().context == 5
    p.initwritev(other, 0, b"plain", flags=parc.UNTAGGED | parc.WITH_DATA)
    assert p.initreadv(other, 0, bytearray(5), flags=parc.UNTAGGED).wait().has_data == 1


def the_queue(p, other):
    places = {p.initread(other, tag, bytearray(8), flags=parc.QUEUED): tag for tag in range(30, 40)}
    assert p.completions(timeout=0) == []
    poll = select.poll()
    poll.register(p.descriptor(), select.POLLIN)
    p.barrier()
    for tag in range(30, 40):
        p.write(other, tag, b"%8d" % tag)
    while places:
        if not p.arm():
            poll.poll()
        for operation in p.completions(4, timeout=0):
            assert operation.status.tag == places.pop(operation) and operation.status.length == 8
    waker = threading.Timer(0, p.wake)
    waker.start()
    assert p.completions() == []
    waker.join()


def threads(p, other):
    """One thread waits, the others go on: no call holds the interpreter."""
    got = bytearray(5)
    reader = threading.Thread(target=lambda: p.read(other, 40, got))
    reader.start()
    p.barrier()
    p.write(other, 40, b"hello")
    reader.join()
    assert got == b"hello"


def other_jobs(p, other):
    address = p.address_of(p.rank)
    p.write(other, 50, address.encode())
    text = bytearray(64)
    length = p.read(other, 50, text).length
    assert p.add_peer(text[:length].decode()) == other  # it is of this job
    assert p.host(p.rank) and p.host(other)
    parc.start_kernel()  # does nothing here
    assert parc.clock() <= parc.clock()


def settings(p, other):
    p.set_copy_room(1 << 20)
    p.set_put_off(0)
    p.set_order(parc.ORDER_UP)
    p.set_order(parc.ORDER_ANY)
    p.set_strip(1 << 16)
    p.set_train(2)
    p.set_release(parc.RELEASE_ENVELOPE)
    big = p.alloc(1 << 20)
    read = p.initread(other, 60, big)
    write = p.initwrite(other, 60, bytes([p.rank + 1]) * (1 << 20))
    p.waitall([write, read])
    p.settle(big)
    p.settle()
    assert bytes(big) == bytes([other + 1]) * (1 << 20)
    p.set_release(parc.RELEASE_OFF)
    assert p.get_release_counts().faults >= 0 and "released=" in repr(p.get_release_counts())


def windows(p, other):
    part = p.alloc(1000)
    part[:] = bytes([p.rank + 1]) * 1000
    p.expose(5, part)
    p.barrier()
    one, two = bytearray(10), bytearray(20)
    get = p.initget(other, 5, 100, [one, two])
    assert get.wait().length == 30 and one + two == bytes([other + 1]) * 30
    assert p.get(other, 5, 999, bytearray(1), flags=parc.FROM_END).source == other
    for wrong in (lambda: p.get(other, 5, 999, bytearray(2)), lambda: p.get(other, 9, 0, bytearray(2))):
        try:
            wrong()
            raise AssertionError("that is not there")
        except parc.Error as error:
            assert error.code == parc.EPLACE and "window" in str(error), error
    rows = bytearray(15)
    assert p.initget_rows(other, 5, 999 - 4, 5, -100, rows).wait().length == 15 and rows == bytes([other + 1]) * 15
    p.expose(6, bytearray(9))
    p.unexpose(6)
    for wrong, code in ((lambda: p.expose(5, part), parc.EINVAL), (lambda: p.unexpose(6), parc.EINVAL)):
        try:
            wrong()
            raise AssertionError("that cannot be")
        except parc.Error as error:
            assert error.code == code, error
    p.barrier()
    p.unexpose(5)
    p.expose(5, part, parc.MAY_GET | parc.MAY_PUT)
    p.barrier()
    put = p.initput(other, 5, 100, [bytes([p.rank + 50]) * 10, bytes([p.rank + 60]) * 20], flags=parc.SYNCHRONOUS)
    assert put.wait().length == 30
    p.put(other, 5, 0, bytes([p.rank + 70]))
    p.initput_rows(other, 5, 300, 2, 4, bytes([p.rank + 80]) * 4).wait()
    p.quiet()
    assert p.fetch_add(other, 5, 200, -2) == int.from_bytes(bytes([other + 1]) * 8, "little")
    assert p.initatomic(other, 5, 208, parc.COMPARE_SWAP, 5, compare=1, width=4).wait().data == 0x01010101 * (other + 1)
    p.barrier()
    assert int.from_bytes(bytes(part[200:208]), "little") == int.from_bytes(bytes([p.rank + 1]) * 8, "little") - 2
    assert bytes(part[300:307]) == bytes([other + 80] * 2 + [p.rank + 1] * 2 + [other + 80] * 2 + [p.rank + 1])
    assert part[0] == other + 70 and part[1] == p.rank + 1 and part[130] == p.rank + 1
    assert bytes(part[100:130]) == bytes([other + 50]) * 10 + bytes([other + 60]) * 20
    try:
        p.initput(other, 6, 0, b"x", flags=parc.SYNCHRONOUS).wait()
        raise AssertionError("that is not there")
    except parc.Error as error:
        assert error.code == parc.EPLACE and "put of 1 bytes at 0 of window 6" in str(error), error
    p.barrier()
    p.unexpose(5)
    p.expose(5, part, parc.MAY_GET | parc.MAY_ANYBODY)  # until the end


def arrays(p, other):
    field = p.zeros((3, 4))
    assert field.dtype == np.float64 and not field.any()
    field[:] = np.arange(12).reshape(3, 4) + 100 * p.rank
    ghost = np.empty((2, 4))
    write = p.initwrite(other, 70, field[1:])
    p.read(other, 70, ghost)
    write.wait()
    assert (ghost == np.arange(4, 12).reshape(2, 4) + 100 * other).all(), ghost
    write = p.initwrite(other, 71, np.asfortranarray(field))  # in one piece, too: as it lies
    turned = np.empty((4, 3))
    p.read(other, 71, turned)
    assert (turned.T == field + 100 * (other - p.rank)).all()
    records = np.zeros(2, dtype=[("Only", "i4"), ("x", "f8")])
    p.write(other, 72, np.array([(1, 2.5), (3, 4.5)], dtype=records.dtype))
    p.read(other, 72, records)
    assert records["x"].tolist() == [2.5, 4.5]
    assert p.zeros(0).size == 0 and p.zeros((2, 0), "i4").shape == (2, 0) and p.zeros((), "i8") == 0
    # Read in place: what of ours lies there has the same address before and after.
    place = field.ctypes.data
    p.write(other, 73, field)
    p.read(other, 73, field)
    assert field.ctypes.data == place and field[0, 0] == 100 * other


cases = [whole_calls, buffers, held, waits, failures, envelopes, the_queue, threads, other_jobs, settings, windows]
cases += [arrays] if np else []
with parc.open() as session:
    assert session.size == 2, "this is for two ranks"
    for case in cases:
        session.barrier()
        case(session, 1 - session.rank)
    kept = session.alloc(5)
    kept[:] = b"after"
assert bytes(kept) == b"after"  # memory that is used stays
del kept
try:
    session.barrier()
    raise AssertionError("it is closed")
except parc.Error as failure:
    assert failure.code == parc.EINVAL and "closed" in str(failure), failure
print(f"{len(cases)} groups of calls", "with NumPy" if np else "without NumPy")
sys.exit(0)
