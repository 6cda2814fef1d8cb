# SPDX-License-Identifier: BSD-3-Clause
"""PETSc: Poisson's equation on a grid, by conjugate gradients."""

import glob
import sys

sys.path += glob.glob("/usr/lib/petscdir/petsc*/x86_64-linux-gnu-real/lib/python3/dist-packages")  # Debian's place
import petsc4py  # noqa: E402

petsc4py.init(sys.argv)
from petsc4py import PETSc  # noqa: E402

n = 200
grid = PETSc.DMDA().create([n, n], stencil_width=1)
matrix = grid.createMatrix()
(left, right), (bottom, top) = grid.getRanges()
row, column = PETSc.Mat.Stencil(), PETSc.Mat.Stencil()
for j in range(bottom, top):
    for i in range(left, right):
        row.index = (i, j)
        for (x, y), value in (((i, j), 4.0), ((i - 1, j), -1.0), ((i + 1, j), -1.0), ((i, j - 1), -1.0), ((i, j + 1), -1.0)):
            if 0 <= x < n and 0 <= y < n:
                column.index = (x, y)
                matrix.setValueStencil(row, column, value)
matrix.assemble()
b, x = grid.createGlobalVec(), grid.createGlobalVec()
b.set(1.0)
solver = PETSc.KSP().create()
solver.setOperators(matrix)
solver.setType("cg")
solver.getPC().setType("jacobi")
solver.setTolerances(rtol=1e-8)
solver.solve(b, x)
PETSc.Sys.Print(f"iterations {solver.getIterationNumber()}, norm {x.norm():.10e}")
