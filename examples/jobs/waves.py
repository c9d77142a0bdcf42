#!/usr/bin/env python3
"""Heat in a square, by Fourier transforms that all ranks compute together.

    python examples/jobs/waves.py 100
    steadfast job run -n 4 -- python examples/jobs/waves.py 10000

Each rank has some rows. It transforms these, gets columns for rows by a transposition among all,
transforms them, lets each wave fade, and goes the same way back.
"""

import hashlib
import sys

import numpy as np
from steadfast_jobs import job

N = 256


def rows(rank):
    """The first row of a rank, and the one after its last."""
    return N * rank // job.ranks, N * (rank + 1) // job.ranks


def transposed(mine):
    """This rank's rows of the transposed square."""
    blocks = [mine[:, slice(*rows(rank))].T for rank in range(job.ranks)]
    return np.concatenate(job.alltoall(blocks), axis=1)


def main(turns):
    first, last = rows(job.rank)
    begin = np.random.default_rng(1).random((N, N))[first:last]
    heat = job.array("heat", begin.shape, init=begin)
    waves = np.fft.fftfreq(N)
    fading = np.exp(-(waves[first:last, None] ** 2 + waves**2))
    for turn in job.range(turns):
        columns = np.fft.fft(transposed(np.fft.fft(heat))) * fading
        heat[...] = np.fft.ifft(transposed(np.fft.ifft(columns))).real
        # A little heat comes in at one place.
        if first <= turn % N < last:
            heat[turn % N - first, turn * 7 % N] += 1
    square = job.gather(heat)
    if square is not None:
        whole = np.concatenate(square)
        job.result("heat", whole)
        print(f"heat {hashlib.sha256(whole).hexdigest()[:16]}, sum {whole.sum():.9f}")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
