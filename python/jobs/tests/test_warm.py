"""Ranks that are forked by a process with their imports done are as any others."""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap
import unittest

from agent import PATIENCE
from parked import Forked, Parked, Warm
from test_job import NESTED, alone
from test_output import PRINTS

# It was imported by the process that wrote the number.
MARKER = "import os\nBY = os.getpid()\nRANK = os.environ.get('STEADFAST_JOB_RANK')\n"

# What a program can see of its start.
SEES = """
    "What it is about."
    import json, os, signal, sys
    import marker, own
    said = dict(
        argv=sys.argv, orig=sys.orig_argv, path=sys.path, flags=str(sys.flags), hash=hash("x"),
        main={name: str(it) for name, it in globals().items() if name != "said"},
        same=sys.modules["__main__"].__dict__ is globals(), cwd=os.getcwd(),
        group=os.getpgid(0) == os.getpid(), session=os.getsid(0), nice=os.nice(0),
        mask=list(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))),
        pipe=str(signal.getsignal(signal.SIGPIPE)), affinity=list(os.sched_getaffinity(0)),
        policy=os.sched_getscheduler(0), input=sys.stdin.read(), rank=os.environ["RANK"],
        files=[it for it in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{it}")],
        environment=sorted(os.environ.items()), line=sys._getframe().f_code.co_filename,
    )
    print(json.dumps(said))
    print(marker.BY == os.getpid(), marker.RANK, own.BY == os.getpid(), file=sys.stderr)
    if len(sys.argv) > 2:
        exec(sys.argv[2])
    def fail():
        raise ValueError("as it is")
    fail()
"""


class Started(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        self.packages = self.folder / "site-packages"
        self.packages.mkdir()
        self.installed("marker", MARKER)
        self.variables = {"PYTHONPATH": str(self.packages), "PYTHONHASHSEED": "0"}
        # As the agent has it: else NumPy starts threads.
        self.variables["OPENBLAS_NUM_THREADS"] = "1"

    def installed(self, name, text):
        (self.packages / f"{name}.py").write_text(textwrap.dedent(text))

    def script(self, text, name="program.py"):
        path = self.folder / name
        path.write_text(textwrap.dedent(text))
        return str(path)

    def park(self, text, *arguments, **more):
        parked = Parked(self.script(text), *arguments, **self.variables, **more)
        self.addCleanup(parked.__exit__)
        return parked

    def forked(self, parked, **variables):
        """A fork's exit status, and what it has printed."""
        with tempfile.TemporaryFile("a+") as output, tempfile.TemporaryFile("a+") as errors:
            status = parked.fork({"RANK": 0, **variables}, output, errors).wait()
            printed = []
            for file in (output, errors):
                file.seek(0)
                printed.append(file.read())
        return status, *printed

    def test_killed_ranks_go_on_in_forks_and_print_once(self):
        seen = self.folder / "seen"
        began = "import os, sys, numpy, marker\nopen(os.environ['SEEN'], 'a').write("
        began += "f'{marker.BY == os.getpid()} {marker.RANK}\\n')\n"
        for number, text in enumerate((PRINTS, NESTED)):
            text = began + textwrap.dedent(text)
            script = self.script(text)
            self.variables["SEEN"] = str(seen)
            wanted = alone(text, **self.variables).stdout.encode()
            prints = self.folder / f"prints-{number}"
            kinds = {}
            for kill_after in (None, 9):
                agent = Warm([sys.executable, script], prints=str(prints), **self.variables)
                seen.write_text("")
                with agent:
                    kinds[kill_after] = agent.until_finished(kill_after)
                self.assertEqual(prints.read_bytes(), wanted)
                self.assertEqual(kinds[kill_after], kinds[None])
                cold, *warm = seen.read_text().splitlines()
                self.assertEqual(cold, "True 0")
                self.assertEqual(warm, ["False None"] * (agent.starts - 1))
            self.assertGreater(agent.starts, 2)

    def test_a_program_sees_the_same_as_at_a_start_of_its_own(self):
        script = self.script(SEES)
        (self.folder / "own.py").write_text(MARKER)
        link = self.folder / "elsewhere"
        link.mkdir()
        (link / "link.py").symlink_to(script)
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(self.folder)
        for path in (script, "program.py", "./program.py", "elsewhere/link.py"):
            for options in ([], ["-u", "-W", "ignore"], ["-P"]):
                variables = {**self.variables}
                if "-P" in options:
                    variables["PYTHONPATH"] += f":{self.folder}"
                command = [sys.executable, *options, path, "1"]
                pipe = subprocess.PIPE
                cold = subprocess.run(
                    command, env={**os.environ, **variables, "RANK": "3"}, text=True,
                    stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, process_group=0,
                )
                with Parked(path, "1", options=options, **variables) as parked:
                    self.assertEqual(parked.word, b"ready")
                    status, output, errors = self.forked(parked, RANK=3)
                self.assertEqual(status, 1)
                self.assertEqual(status, cold.returncode)
                wanted, found = (
                    json.loads(re.sub(r" at 0x\w+|=\d+ fd", "", it)) for it in (cold.stdout, output)
                )
                self.assertEqual(found, wanted)
                wanted, found = cold.stderr.split("\n", 1), errors.split("\n", 1)
                self.assertEqual(found[1], wanted[1])
                self.assertEqual((wanted[0], found[0]), ("True None True", "False None True"))

    def test_the_status_is_told_however_it_ends(self):
        (self.folder / "own.py").write_text(MARKER)
        ends = {"sys.exit(7)": 7, "sys.exit()": 0, "os._exit(3)": 3, "os.kill(os.getpid(), 9)": -9}
        for text, status in ends.items():
            with self.subTest(text):
                self.assertEqual(self.forked(self.park(SEES, "1", text), RANK=0)[0], status)
        broken = self.park("import marker\n1 +")
        self.assertIn(b"SyntaxError", broken.word)

    def test_what_an_import_does_is_not_done_for_all(self):
        does = {
            "print('here')": "prints",
            "import sys\nprint('here', file=sys.stderr)": "prints",
            "import threading, time\nthreading.Timer(9, print).start()": "threads",
            "kept = open('/dev/null')": "files",
            "from steadfast_jobs import job\njob.rank": "job",
            "import sys\nsys.exit()": "SystemExit",
            "import none": "ModuleNotFoundError",
        }
        for text, why in does.items():
            with self.subTest(text):
                self.installed("does", text)
                parked = self.park("import does")
                self.assertRegex(parked.word.decode(), f"no: .*{why}")
                self.assertEqual(parked.process.wait(PATIENCE), 0)

    def test_a_module_of_the_program_is_not_taken_for_another(self):
        away = self.folder / "away"
        away.mkdir()
        here = os.getcwd()
        self.addCleanup(os.chdir, here)
        os.chdir(away)
        # Here is another one than beside the script, and only that counts.
        (away / "select.py").write_text("raise SystemExit('a module of no program')")
        self.assertEqual(self.park("import marker").word, b"ready")
        for name in ("select", "secrets"):
            with self.subTest(name):
                own = self.folder / f"{name}.py"
                own.write_text("def token_bytes(): pass\ndef randbits(bits): return 7")
                self.assertIn(b"name of a module", self.park("import numpy").word)
                own.unlink()

    def test_only_what_comes_first_is_imported_before(self):
        seen = "\nimport sys, os\nprint(marker.BY == os.getpid())"
        (self.folder / "own.py").write_text("'Own.'\nimport marker\nX = 1")
        for text, own in {
            "import marker": False,
            "'It.'\nfrom __future__ import division\nfrom marker import *\nimport marker": False,
            "import own\nimport marker": False,
            "import os\nos.environ['X'] = '1'\nimport marker": True,
            "print(end='')\nimport marker": True,
            "if True:\n    import marker": True,
            "import own2\nimport marker": True,
        }.items():
            (self.folder / "own2.py").write_text("X = 1\nimport json")
            with self.subTest(text):
                parked = self.park(text + seen)
                self.assertEqual(parked.word, b"ready")
                self.assertEqual(self.forked(parked)[1:], (f"{own}\n", ""))

    def test_forks_draw_other_random_numbers(self):
        draws = "import random, numpy\nprint(random.random(), numpy.random.random())"
        parked = self.park(draws)
        numbers = " ".join(self.forked(parked)[1] for _ in range(3)).split()
        self.assertEqual(len(set(numbers)), 6, numbers)

    def test_it_ends_with_its_last_rank_or_with_its_agent(self):
        waits = "import os\nos.read(os.open(os.environ['GOES'], os.O_RDONLY), 1)\nos._exit(5)"
        fifo = str(self.folder / "goes")
        os.mkfifo(fifo)
        nothing = open(os.devnull, "w")
        self.addCleanup(nothing.close)
        ranks = []
        for dies in (False, True):
            parked = self.park(waits)
            rank = parked.fork({"GOES": fifo}, nothing, nothing)
            self.addCleanup(rank.kill)
            ranks.append(rank)
            parked.channel.close()
            if dies:
                rank.status.close()
                self.assertEqual(parked.process.wait(PATIENCE), 0)
                os.kill(rank.pid, 0)
            else:
                with open(fifo, "w") as goes:
                    goes.write("x")
                self.assertEqual(rank.wait(), 5)
                self.assertEqual(parked.process.wait(PATIENCE), 0)


if __name__ == "__main__":
    unittest.main()
