#!/usr/bin/env python3
"""A token goes around a ring of all ranks, once in each turn. Each rank adds its number to it.

    python examples/jobs/ring.py 1000
    steadfast job run -n 4 -- python examples/jobs/ring.py 100000
"""

import sys

from steadfast_jobs import job

LENGTH = 1_000


def main(turns):
    after, before = (job.rank + 1) % job.ranks, (job.rank - 1) % job.ranks
    token = job.array("token", LENGTH, "i8")
    for _ in job.range(turns):
        if job.rank == 0:
            token += 1
            job.send(token, after)
            job.recv(before, into=token)
        else:
            job.recv(before, into=token)
            token += job.rank + 1
            job.send(token, after)
    if job.rank == 0:
        expected = turns * job.ranks * (job.ranks + 1) // 2
        assert (token == expected).all(), f"{token} is not {expected}"
        job.result("token", token)
        print(f"the token is {token[0]} after {turns} turns, as it should be")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000)
