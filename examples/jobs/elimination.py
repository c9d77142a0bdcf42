"""The numbers of gauss.py and gauss_mpi.py: both do the same with them, so they find the same x.

Column j of the matrix belongs to rank j % ranks, where it is column j // ranks.
"""

import hashlib

import numpy as np


def column(n, j):
    """Column j of the matrix; its right side, where j is n. It depends on nothing else."""
    return np.random.default_rng([n, j]).uniform(-1, 1, n)


def columns(n, rank, ranks):
    """A rank's columns of the matrix."""
    mine = range(rank, n, ranks)
    a = np.empty((n, len(mine)))
    for place, j in enumerate(mine):
        a[:, place] = column(n, j)
    return a


def step(pivots, k):
    """The row of the pivot, and the multipliers of the rows below row k when it has come there."""
    row = k + np.abs(pivots[k:]).argmax()
    below = pivots[k:].copy()
    below[0], below[row - k] = pivots[row], pivots[k]
    below /= pivots[row]
    below[0] = row
    return below


def eliminate(a, b, k, first, below):
    """Row k becomes the pivot's, and is subtracted from those below: in columns from `first` on."""
    row = int(below[0])
    for part in a[:, first:], b:
        part[[k, row]] = part[[row, k]]
    a[k + 1 :, first:] -= np.multiply.outer(below[1:], a[k, first:])
    b[k + 1 :] -= below[1:] * b[k]


def substitute(x, b, k, above):
    """Element k of the solution, by column k of what is left of the matrix, down to row k."""
    x[k] = b[k] / above[k]
    b[:k] -= x[k] * above[:k]


def told(x):
    """What is printed of a solution: its checksum, and how well it solves A x = b."""
    n = len(x)
    rest = column(n, n)
    for j in range(n):
        rest -= x[j] * column(n, j)
    return f"x {hashlib.sha256(x).hexdigest()[:16]}, largest residual {np.abs(rest).max():.1e}"
