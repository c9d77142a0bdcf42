#!/usr/bin/env python3
"""gauss.py by the names of MPI, with mpi4py or without: it finds the same x, bit by bit.

    mpirun -n 4 python examples/jobs/gauss_mpi.py 1024 mpi4py
    steadfast job run -n 4 -- python examples/jobs/gauss_mpi.py 1024

It has no `job.range`, so nothing is saved: a rank that fails does all again, by its old messages.
"""

import sys

import numpy as np

if sys.argv[2:] == ["mpi4py"]:
    from mpi4py import MPI
else:
    from steadfast_jobs import MPI

from elimination import column, columns, eliminate, step, substitute, told


def main(n):
    comm = MPI.COMM_WORLD
    rank, ranks = comm.Get_rank(), comm.Get_size()
    a, b, x = columns(n, rank, ranks), column(n, n), np.zeros(n)
    for k in range(n):
        owner, place = k % ranks, k // ranks
        below = step(a[:, place], k) if rank == owner else np.empty(n - k)
        comm.Bcast([below, MPI.DOUBLE], root=owner)
        eliminate(a, b, k, place + (rank < owner), below)
    for k in reversed(range(n)):
        owner, place = k % ranks, k // ranks
        above = a[: k + 1, place].copy() if rank == owner else np.empty(k + 1)
        comm.Bcast([above, MPI.DOUBLE], root=owner)
        substitute(x, b, k, above)
    if rank == 0:
        print(told(x))


main(int(sys.argv[1]) if len(sys.argv) > 1 else 256)
