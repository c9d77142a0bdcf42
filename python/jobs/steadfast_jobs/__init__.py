"""Arrays, loops and messages that survive the process.

    import numpy as np
    from steadfast_jobs import job

    a = job.array("a", (rows, columns), init=first)
    for k in job.range(turns):
        improve(a, k)
    job.result("a", a)

Ranks send each other values: `job.send(a, to)`, `job.recv(source)`, `job.allreduce(a)`. Programs
for mpi4py take `from steadfast_jobs import MPI`.

Started by `steadfast job run`, such a program goes on where it was, whatever dies. Started by
`python`, it runs the same, and nothing is saved.
"""

from ._job import Job, Tracker, job
from ._messages import ANY, Message, Request
from ._native import JobError

__all__ = ["ANY", "Job", "JobError", "Message", "Request", "Tracker", "job"]
