#!/usr/bin/env python3
"""Gauss's elimination with partial pivoting. Ranks have the columns in turn, as in star.txt, 6.

    python examples/jobs/gauss.py 256
    steadfast job run -n 4 -- python examples/jobs/gauss.py 1024

In each turn the rank that has the pivot's column sends the pivot's row and the multipliers to all.
"""

import sys

import numpy as np
from steadfast_jobs import job

from elimination import column, columns, eliminate, step, substitute, told


def main(n):
    rank, ranks = job.rank, job.ranks
    mine = len(range(rank, n, ranks))
    a = job.array("a", (n, mine), init=lambda: columns(n, rank, ranks))
    b = job.array("b", n, init=lambda: column(n, n))
    x = job.array("x", n)
    for k in job.range(n):
        owner, place = k % ranks, k // ranks
        below = step(a[:, place], k) if rank == owner else np.empty(n - k)
        below = job.bcast(below, owner, into=below)
        # The first of this rank's columns that is not before column k.
        eliminate(a, b, k, place + (rank < owner), below)
    for k in job.range(n - 1, -1, -1):
        owner, place = k % ranks, k // ranks
        above = job.bcast(a[: k + 1, place] if rank == owner else None, owner)
        substitute(x, b, k, above)
    if rank == 0:
        job.result("x", x)
        print(told(x))


main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)
