#!/usr/bin/env python3
"""Rank 0 hands out tasks, and the others do them: whoever is ready gets the next one.

    python examples/jobs/farm.py 200
    steadfast job run -n 4 -- python examples/jobs/farm.py 5000

A task is to find the longest Collatz sequence that begins in a block of numbers.
"""

import sys

import numpy as np
from steadfast_jobs import job

BLOCK = 1_000


def longest(task):
    """Steps of the longest sequence from a number of this block, until it comes to 1."""
    numbers = np.arange(task * BLOCK + 1, (task + 1) * BLOCK + 1)
    steps = 0
    while (numbers := numbers[numbers > 1]).size:
        numbers = np.where(numbers % 2, 3 * numbers + 1, numbers // 2)
        steps += 1
    return steps


def hand_out(tasks, found):
    workers = job.ranks - 1
    for worker in range(1, job.ranks):
        job.send(worker - 1 if worker <= tasks else None, worker)
    for turn in job.range(tasks):
        # Anybody's result: which one comes first is recorded, and the same after a restart.
        (task, steps), worker, _ = job.recv_message()
        found[task] = steps
        task = workers + turn
        job.send(task if task < tasks else None, worker)


def work(tasks):
    for _ in job.range(tasks + 1):
        task = job.recv(0)
        if task is None:
            break
        job.send((task, longest(task)), 0)


def main(tasks):
    if job.rank > 0:
        work(tasks)
        return
    found = job.array("found", tasks, "i4")
    if job.ranks > 1:
        hand_out(tasks, found)
    else:
        for task in job.range(tasks):
            found[task] = longest(task)
    job.result("found", found)
    print(f"the longest sequence has {found.max()} steps, all of them {found.sum()}")


main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
