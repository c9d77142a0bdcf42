"""Ranks that the program starts: by forks, where they can be. STEADFAST_PROGRAM names it."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

from parked import PARK

PROGRAM = os.environ.get("STEADFAST_PROGRAM")

# No test waits so long unless it fails.
PATIENCE = 60

# It says who has started it, waits in a turn until it may go on, and fails once when told to.
WAITS = """
    import os, sys, time
    import numpy as np
    {more}
    from steadfast_jobs import job

    here = os.environ["HERE"]
    with open(here + "/starts", "a") as starts:
        starts.write(f"{{job.rank}} {{os.getpid()}} {{os.getppid()}}\\n")
    a = job.array("a", 1000)
    for turn in job.range(40):
        a += np.arange(1000) * turn
        print("turn", turn, a.sum())
        if turn == 20:
            while not os.path.exists(here + "/goes"):
                if job.rank == 0 and os.path.exists(here + "/fails"):
                    os.remove(here + "/fails")
                    sys.exit(7)
                time.sleep(0.01)
    job.result("a", a)
"""


def command_of(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    except OSError:
        return []


@unittest.skipUnless(PROGRAM, "STEADFAST_PROGRAM is not set")
class Started(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name).resolve()
        self.addCleanup(self.close)

    def steadfast(self, *words):
        environment = dict(os.environ, STEADFAST_HOME=str(self.home))
        done = subprocess.run([PROGRAM, *words], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def close(self):
        for pid in self.processes("keep"):
            os.kill(pid, signal.SIGTERM)
        self.wait(lambda: not self.processes())

    def processes(self, word=""):
        """Those whose command or environment names this test's folder."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                words = (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes()
            except OSError:
                continue
            if str(self.home).encode() in words and word in " ".join(command_of(folder.name)):
                found.append(int(folder.name))
        return found

    def wait(self, so):
        until = time.monotonic() + PATIENCE
        while not (found := so()):
            self.assertLess(time.monotonic(), until, self.log()[-2000:])
            time.sleep(0.02)
        return found

    def log(self):
        return (self.home / "own/node-1.log").read_text()

    def begin(self, name, more=""):
        """A job of two ranks, in a folder of its own."""
        self.here = self.home / name
        self.here.mkdir()
        self.script = self.here / "program.py"
        self.script.write_text(textwrap.dedent(WAITS.format(more=more)))
        self.steadfast(
            *["job", "run", "-n", "2", "--name", name, "--every", "50ms", "--detach"],
            *["--env", f"HERE={self.here}", "--", sys.executable, str(self.script)],
        )

    def starts(self, many):
        """Each start: the rank, its process, and that one's parent."""
        def there():
            path = self.here / "starts"
            lines = path.read_text().splitlines() if path.exists() else []
            return len(lines) >= many and [list(map(int, line.split())) for line in lines]
        return self.wait(there)

    def outcome(self, name):
        (self.here / "goes").touch()
        job = lambda: json.loads(self.steadfast("job", "show", name, "--json"))
        self.wait(lambda: job()["state"] == "finished")
        out = self.here / "out"
        self.steadfast("job", "restore", name, "--results", "--out", str(out))
        files = {str(it.relative_to(out)): it.read_bytes() for it in out.rglob("*") if it.is_file()}
        prints = [self.steadfast("job", "logs", name, "--rank", rank) for rank in "01"]
        return files, prints, job()

    def test_killed_ranks_are_forked_and_end_as_if_undisturbed(self):
        self.begin("calm")
        files, prints, _ = self.outcome("calm")
        self.assertTrue(files and all(prints))
        self.begin("struck")
        starts = self.starts(2)
        self.wait(lambda: 'a warm process is ready job="struck"' in self.log())
        for many in (3, 4):
            os.kill({rank: pid for rank, pid, _ in starts}[many % 2], signal.SIGKILL)
            starts = self.starts(many)
        # One that fails is told as such, and the next one is forked again.
        (self.here / "fails").touch()
        starts = self.starts(5)
        agent = {parent for _, _, parent in starts[:2]}
        warm = {parent for _, _, parent in starts[2:]}
        self.assertEqual((len(agent), len(warm)), (1, 1), starts)
        self.assertIn(PARK, command_of(*warm))
        found = self.outcome("struck")
        self.assertEqual(found[:2], (files, prints))
        ends = [it["why"] for rank in found[2]["ranks"] for it in rank["recoveries"]]
        self.assertEqual(ends.count({"ended": {"failed": 7}}), 1, ends)
        self.assertEqual(ends.count({"ended": {"killed": 9}}), 2, ends)
        self.wait(lambda: not self.processes(str(self.script)))

    def test_a_process_that_does_not_fork_costs_nothing_but_time(self):
        self.begin("calm")
        files, prints, _ = self.outcome("calm")
        self.begin("struck")
        starts = self.starts(2)
        agent = starts[0][2]
        ready = 'a warm process is ready job="struck"'
        self.wait(lambda: ready in self.log())
        warm = [it for it in self.processes(str(self.script)) if PARK in command_of(it)]
        os.kill(*warm, signal.SIGSTOP)
        os.kill(starts[0][1], signal.SIGKILL)
        starts = self.starts(3)
        self.assertEqual(starts[2][2], agent)
        self.assertFalse(command_of(*warm), "it was ended")
        # There is another one, and its ranks outlive it.
        self.wait(lambda: self.log().count(ready) == 2)
        os.kill(starts[1][1], signal.SIGKILL)
        starts = self.starts(4)
        self.assertNotEqual(starts[3][2], agent)
        os.kill(starts[3][2], signal.SIGKILL)
        self.wait(lambda: "the warm process has ended" in self.log())
        self.assertEqual(self.outcome("struck")[:2], (files, prints))
        self.assertEqual(len(self.starts(4)), 4)

    def test_a_program_that_prints_when_it_is_imported_starts_by_its_own(self):
        self.begin("calm", "import this")
        files, prints, _ = self.outcome("calm")
        self.begin("struck", "import this")
        starts = self.starts(2)
        self.wait(lambda: "an import prints" in self.log())
        os.kill(starts[0][1], signal.SIGKILL)
        starts = self.starts(3)
        self.assertEqual(len({parent for _, _, parent in starts}), 1, starts)
        self.assertEqual(self.outcome("struck")[:2], (files, prints))


if __name__ == "__main__":
    unittest.main()
