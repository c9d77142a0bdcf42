"""Programs of examples/jobs whose ranks talk, with ranks that are threads."""

import io
import pathlib
import sys
import threading
import unittest
from contextlib import redirect_stdout
from unittest import mock

import numpy as np
import steadfast_jobs
from steadfast_jobs import MPI
from steadfast_jobs._collectives import Collectives
from steadfast_jobs._mpi import Comm
from together import run

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples/jobs"


class Job(Collectives):
    """A rank that saves nothing."""

    def __init__(self, transport):
        super().__init__(transport)
        self.results = {}
        self.range = range

    def array(self, name, shape, dtype="f8", init=None):
        array = np.zeros(shape, dtype)
        if init is not None:
            array[...] = init() if callable(init) else init
        return array

    def result(self, name, value):
        self.results[name] = value.copy()


class Local(threading.local):
    """Each thread's own one."""

    def __getattr__(self, name):
        return getattr(self.it, name)


def results(name, *arguments, ranks=1):
    """The results of each rank of an example, and what all have printed."""
    job, comm, printed = Local(), Local(), io.StringIO()
    code = compile((EXAMPLES / name).read_text(), name, "exec")

    def program(own):
        job.it, comm.it = own, Comm("COMM_WORLD", own)
        exec(code, {"__name__": "__main__"})
        return own.results

    with (
        mock.patch.object(steadfast_jobs, "job", job),
        mock.patch.object(MPI, "COMM_WORLD", comm),
        mock.patch.object(sys, "argv", [name, *map(str, arguments)]),
        mock.patch.object(sys, "path", [str(EXAMPLES), *sys.path]),
        redirect_stdout(printed),
    ):
        return run(ranks, program, Job), printed.getvalue()


class Examples(unittest.TestCase):
    def same(self, name, *arguments, ranks=(1, 2, 3, 4, 5)):
        """Its results at rank 0, which are the same for all numbers of ranks, and its words."""
        (first, *_), printed = results(name, *arguments, ranks=ranks[0])
        for count in ranks[1:]:
            with self.subTest(name, ranks=count):
                (other, *_), words = results(name, *arguments, ranks=count)
                self.assertEqual(words, printed)
                for key, value in first.items():
                    np.testing.assert_array_equal(value, other[key])
        return first, printed

    def test_gauss(self):
        n = 40
        found, printed = self.same("gauss.py", n)
        self.assertEqual(self.same("gauss_mpi.py", n)[1], printed)
        a = np.stack([np.random.default_rng([n, j]).uniform(-1, 1, n) for j in range(n)], axis=1)
        b = np.random.default_rng([n, n]).uniform(-1, 1, n)
        np.testing.assert_allclose(found["x"], np.linalg.solve(a, b), rtol=1e-9)

    def test_gauss_with_more_ranks_than_columns(self):
        self.same("gauss.py", 3, ranks=(1, 5))

    def test_ring(self):
        for ranks in (1, 2, 5):
            _, printed = results("ring.py", 9, ranks=ranks)
            self.assertIn(f"is {9 * ranks * (ranks + 1) // 2} after 9", printed)

    def test_matching(self):
        for ranks in (1, 2, 3, 5):
            printed = {results("matching.py", 20, ranks=ranks)[1] for _ in range(3)}
            self.assertEqual(len(printed), 1)

    def test_farm(self):
        found, _ = self.same("farm.py", 7, ranks=(1, 2, 3, 5, 12))
        self.assertEqual(found["found"][:2].tolist(), [178, 181])

    def test_waves(self):
        found, _ = self.same("waves.py", 3)
        begin = np.random.default_rng(1).random((256, 256))
        self.assertAlmostEqual(found["heat"].sum(), begin.sum() + 3)


if __name__ == "__main__":
    unittest.main()
