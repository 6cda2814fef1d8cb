# SPDX-License-Identifier: BSD-3-Clause
"""heat.cpp's plate in NumPy, checked by rank 0: parc run -n 4 python3 heat.py [FILE for the whole plate]"""
import sys
import numpy as np
import parc

COLUMNS, POINTS, STEPS, R = 64, 1000, 22, 0.2  # columns of each rank, points of a column


def start(first, columns, whole):  # a cold plate with a warm left rim and three hot spots; a row here is a column of it
    x, y = np.arange(first, first + columns + 2)[:, None] / (whole + 1), np.arange(POINTS) / (POINTS - 1)
    plate = np.where(x == 0, 0.6 * y * (1 - y) * 4, 0)
    for at_x, at_y, radius, peak in (0.5, 0.45, 0.2, 1.0), (0.22, 0.7, 0.12, 0.8), (0.8, 0.75, 0.15, 0.9):
        distance = ((x - at_x) * (x - at_x) + (y - at_y) * (y - at_y)) / (radius * radius)
        plate = plate + peak * np.maximum(0, 1 - distance)
    return plate


def advance(new, old, first, end):  # columns first to end - 1 of the next time step
    here, left, right = old[first:end], old[first - 1 : end - 1, 1:-1], old[first + 1 : end + 1, 1:-1]
    new[first:end, 1:-1] = (R * left + R * right + (1 - 2 * R - 2 * R) * here[:, 1:-1]
                            + R * here[:, :-2] + R * here[:, 2:])


with parc.open() as p:
    whole, first, last = p.size * COLUMNS, p.rank == 0, p.rank == p.size - 1
    old, new = p.zeros((2, COLUMNS + 2, POINTS))  # the kernel moves messages from and to it in place
    old[:] = new[:] = start(p.rank * COLUMNS, COLUMNS, whole)
    sides = ([] if first else [(p.rank - 1, 1, 0)]) + ([] if last else [(p.rank + 1, COLUMNS, COLUMNS + 1)])
    for _ in range(STEPS):
        for _, border, _ in sides:
            advance(new, old, border, border + 1)
        moving = [p.initread(peer, 0, new[ghost]) for peer, _, ghost in sides]
        moving += [p.initwrite(peer, 0, new[border]) for peer, border, _ in sides]
        advance(new, old, 1 if first else 2, COLUMNS + 1 if last else COLUMNS)  # while the borders travel
        p.waitall(moving)
        old, new = new, old
    writing, same = p.initwrite(0, 1, old[1:-1]), True
    if first:
        result, serial, spare = (start(0, whole, whole) for _ in range(3))
        p.waitall([p.initread(r, 1, result[1 + r * COLUMNS : 1 + (r + 1) * COLUMNS]) for r in range(p.size)])
        for _ in range(STEPS):
            advance(spare, serial, 1, whole + 1)
            serial, spare = spare, serial
        same = np.array_equal(result, serial)
        print(f"{p.size} ranks: {'equal to' if same else 'not'} what one calculates alone, bit for bit")
        result[1:-1].tofile(sys.argv[1] if len(sys.argv) > 1 else "/dev/null")
    writing.wait()
sys.exit(not same)
