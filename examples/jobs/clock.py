#!/usr/bin/env python3
"""Rank 0 reads a clock, on purpose: a start after a failure does something else than before.

    steadfast job run -n 3 --every 50turns --recovery group -- python examples/jobs/clock.py 5000

When rank 0 is killed, the others see that it sends other times than before. With `--recovery log`
the job ends, and says which message differs. With `group` all ranks go back to one turn. By
`job.now()` instead of `time.time_ns()` neither would be needed.
"""

import sys
import time
import zlib

from steadfast_jobs import job


def main(turns):
    told = job.array("told", 1, "i8")
    for _ in job.range(turns):
        now = job.bcast(time.time_ns() if job.rank == 0 else None)
        told[0] = zlib.crc32(now.to_bytes(8, "little"), int(told[0]))
    everybody = job.gather(int(told[0]))
    if job.rank == 0:
        assert len(set(everybody)) == 1, f"ranks were told other times: {everybody}"
        job.result("same", "all ranks were told the same times")
        print("all ranks were told the same times")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 2_000)
