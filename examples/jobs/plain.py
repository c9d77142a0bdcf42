#!/usr/bin/env python3
"""Heat in a rod whose ends are kept cold, by the standard library alone: no NumPy is needed.

    python examples/jobs/plain.py 2000
    steadfast job run -- python examples/jobs/plain.py 1000000
"""

import sys
from array import array

from steadfast_jobs import job

POINTS = 201


def main(turns):
    rod = job.array("rod", POINTS, init=lambda: [i * (POINTS - 1 - i) for i in range(POINTS)])
    for _ in job.range(turns):
        old = rod.tolist()
        flows = (a - 2 * b + c for a, b, c in zip(old, old[1:], old[2:]))
        rod[1:-1] = array("d", [b + flow / 4 for b, flow in zip(old[1:], flows)])
    job.result("rod", rod)
    print(f"rank {job.rank}: {rod[POINTS // 2]:.17g} degrees in the middle")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
