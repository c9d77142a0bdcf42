#!/usr/bin/env python3
"""C = A B by blocks. Each rank has some rows of A and C; a turn adds the products of one block.

    python examples/jobs/matmul.py 1024
    steadfast job run -n 2 -- python examples/jobs/matmul.py 8192

Only C is saved. A and B are made again wherever a rank starts: their numbers depend on nothing but
the rows and the block.
"""

import sys

import numpy as np
from steadfast_jobs import job

BLOCK = 32


def numbers(seed, rows, columns):
    return np.random.default_rng(seed).random((rows, columns))


def main(n):
    first, last = (n * rank // job.ranks for rank in (job.rank, job.rank + 1))
    c = job.array("c", (last - first, n))
    for k in job.range(0, n, BLOCK):
        width = min(BLOCK, n - k)
        c += numbers([0, job.rank, k], last - first, width) @ numbers([1, k], width, n)
    job.result("c", c)
    print(f"rank {job.rank}: rows {first} to {last - 1} of C, sum {c.sum():.17g}")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)
