#!/usr/bin/env python3
"""Ranks meet in pairs that change from turn to turn, and exchange what they have.

    steadfast job run -n 4 -- python examples/jobs/matching.py 10000

All ranks draw the same pairs: a generator for each turn needs no message, and no state.
"""

import hashlib
import sys

import numpy as np
from steadfast_jobs import job

LENGTH = 4_096


def partner(turn):
    """The rank that this one meets. With an odd number of ranks, one meets itself."""
    order = np.random.default_rng([1, turn]).permutation(job.ranks)
    place = int(np.flatnonzero(order == job.rank)[0])
    other = place ^ 1
    return int(order[other if other < job.ranks else place])


def main(turns):
    mine = job.array("mine", LENGTH, init=lambda: np.random.default_rng(job.rank).random(LENGTH))
    for turn in job.range(turns):
        theirs = job.sendrecv(mine, partner(turn))
        # Chaotic: a message that is lost or doubled is never made up for.
        mine += 1.5 * np.roll(theirs, turn)
        mine %= 1
    job.result("mine", mine)
    everybody = job.gather(mine)
    if everybody is not None:
        print(f"all have {hashlib.sha256(np.stack(everybody)).hexdigest()[:16]}")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
