#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""mpi4py: pickled objects (their receives are matched probes), buffers, communicators; with "window" a window.

mpi4py asks for MPI_THREAD_MULTIPLE by itself, in which Open MPI has no windows without a transport of their own."""
import array
import sys

import mpi4py

if sys.argv[1:] == ["window"]:
    mpi4py.rc.thread_level = "serialized"
from mpi4py import MPI  # noqa: E402: initializes MPI

world = MPI.COMM_WORLD
rank, ranks = world.rank, world.size
right, left = (rank + 1) % ranks, (rank - 1) % ranks
report = []


def expect(right_so, what):
    if not right_so:
        print(f"rank {rank} of {ranks}: not so: {what}", file=sys.stderr, flush=True)
        world.Abort(1)


def numbers(of, count):
    return array.array("d", ((of * 1000003 + i * 7919) % 65537 / 7 for i in range(count)))


def objects():
    for size in (0, 1, 1000, 300000):
        mine = {"from": rank, "list": list(range(size % 1000)), "bytes": bytes([rank]) * size}
        sent = world.isend(mine, dest=right, tag=size)
        status = MPI.Status()
        message = world.mprobe(source=MPI.ANY_SOURCE, tag=size, status=status)
        got = message.recv()
        sent.wait()
        expect(status.source == left and got["from"] == left, "whose object it is")
        expect(got["bytes"] == bytes([left]) * size, "an object of %d bytes" % size)
        report.append(f"object {size}: {len(got['list'])} {len(got['bytes'])}")
    swapped = world.sendrecv(("ring", rank), dest=right, source=left)
    expect(swapped == ("ring", left), "sendrecv")
    report.append(f"gathered {world.allgather(rank * rank)}")
    report.append(f"scattered {world.scatter([str(i) * i for i in range(ranks)] if rank == 0 else None)}")
    report.append(f"reduced {world.allreduce([rank], op=MPI.SUM)}")
    report.append(f"cast {world.bcast({'root': ranks - 1} if rank == ranks - 1 else None, root=ranks - 1)}")
    report.append(f"all to all {world.alltoall([(rank, i) for i in range(ranks)])}")


def buffers():
    for count in (0, 1, 1000, 200000):
        ghost = array.array("d", bytes(8 * count))
        received = world.Irecv([ghost, MPI.DOUBLE], source=left, tag=1)
        world.Send([numbers(rank, count), MPI.DOUBLE], dest=right, tag=1)
        status = MPI.Status()
        received.Wait(status)
        expect(status.Get_count(MPI.DOUBLE) == count and ghost == numbers(left, count), "a buffer")
    total = array.array("d", bytes(8 * 1000))
    world.Allreduce([numbers(rank, 1000), MPI.DOUBLE], [total, MPI.DOUBLE], op=MPI.MAX)
    report.append(f"largest {sum(total)!r}")
    out = world.Create_group(world.group.Range_incl([(0, ranks - 1, 1)]))
    channel = out.Send_init([numbers(rank, 100), MPI.DOUBLE], dest=right)
    for _ in range(3):
        channel.Start()
        out.Recv([total, 100, MPI.DOUBLE], source=left)
        channel.Wait()
        expect(total[:100] == numbers(left, 100), "a persistent send")
    channel.Free()
    out.Free()


def communicators():
    half = world.Split(color=rank % 2, key=-rank)
    report.append(f"half {half.allgather(rank)}")
    half.Free()
    wrong = world.Dup()
    wrong.Set_errhandler(MPI.ERRORS_RETURN)
    try:
        wrong.send(None, dest=ranks)
    except MPI.Exception as problem:
        report.append(f"refused with {problem.Get_error_class() == MPI.ERR_RANK}")
    wrong.Free()


def window():
    memory = array.array("q", [rank] * ranks)
    opened = MPI.Win.Create(memory, disp_unit=8, comm=world)
    opened.Fence()
    opened.Put([array.array("q", [100 + rank]), MPI.INT64_T], right, target=rank)
    opened.Fence()
    expect(memory[left] == 100 + left, "what was put into a window")
    report.append(f"window {list(memory)}")
    opened.Free()


for part in (window,) if sys.argv[1:] == ["window"] else (objects, buffers, communicators):
    part()
texts = world.gather("\n".join(report))
if rank == 0:
    for number, text in enumerate(texts):
        print(f"-- rank {number} of {ranks}\n{text}")
