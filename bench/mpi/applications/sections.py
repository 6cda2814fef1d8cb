# SPDX-License-Identifier: BSD-3-Clause
"""Parallel HDF5: ranks write rows of a matrix into one file, and read columns of it."""

import hashlib

import h5py
import numpy
from mpi4py import MPI

world = MPI.COMM_WORLD
n = 64 * world.size
with h5py.File("sections.h5", "w", driver="mpio", comm=world) as file:
    matrix = file.create_dataset("matrix", (n, 1024), dtype="f8")
    mine = slice(64 * world.rank, 64 * (world.rank + 1))
    for i in range(8):
        with matrix.collective:
            matrix[mine, :] = numpy.arange(64 * 1024, dtype="f8").reshape(64, 1024) * (i + 1) + world.rank
with h5py.File("sections.h5", "r", driver="mpio", comm=world) as file:
    width = 1024 // world.size
    matrix = file["matrix"]
    columns = numpy.empty((n, width))
    with matrix.collective:
        matrix.read_direct(columns, numpy.s_[:, width * world.rank : width * (world.rank + 1)])
digests = world.gather(hashlib.sha256(columns.tobytes()).hexdigest())
if world.rank == 0:
    print("digest", hashlib.sha256("".join(digests).encode()).hexdigest())
