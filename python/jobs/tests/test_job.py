"""Programs by the package, with an agent that kills them."""

import os
import pathlib
import pickle
import socket
import struct
import subprocess
import sys
import tempfile
import textwrap
import unittest

import numpy as np
from agent import FAREWELL, PAGE, SAVE, SAVED, SNAPSHOT, WELCOME, Agent, Image, Snapshot, frame

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples/jobs"

# NumPy is as good as absent where its entry is None.
PLAIN = "import sys; sys.modules['numpy'] = None\n"


def program(text):
    return [sys.executable, "-c", textwrap.dedent(text)]


def alone(text, **variables):
    """What a program does that no agent has started."""
    environment = {**os.environ, **variables}
    pipe = subprocess.PIPE
    return subprocess.run(program(text), env=environment, stdout=pipe, stderr=pipe, text=True)


def array(result):
    """A result as an array."""
    form, content = result
    dtype, shape = form.split(" ", 1)
    return np.frombuffer(content, dtype).reshape(eval(shape))


# Loops within loops, one of them left early, random numbers, and an array of which a turn changes
# one page. Each turn adds to its own number: one that is done twice or left out is seen.
NESTED = """
    import os
    import random
    import numpy as np
    from steadfast_jobs import job

    turns = job.array("turns", (3, 4, 5), "i4")
    later = job.array("later", 6, "i4", init=lambda: np.arange(6) * 100)
    wide = job.array("wide", (64, 512))
    chance = job.state.setdefault("chance", random.Random(job.rank))
    for i in job.range(3):
        for j in job.range(4):
            for k in job.range(5):
                if "SAVES" in os.environ:
                    job.save()
                if k == 2 + i:
                    break
                turns[i, j, k] += 1 + 10 * i
                wide[(5 * i + j) % 64, k] += chance.random()
    for i in job.range(10, -2, -2):
        if "SAVES" in os.environ:
            job.save()
        later[i // 2] += i
        wide[i] += job.state["chance"].random()
    job.result("turns", turns)
    job.result("later", later)
    job.result("wide", wide[:, ::2])
    job.result("text", "später")
    job.result("bytes", b"xyz")
    job.result("one", np.int64(5))
    job.result("object", {"a": (1, None)})
"""


class Killed(unittest.TestCase):
    def same(self, command, kills, **options):
        """Its results, which are the same whenever it is killed. Each loop that it is in begins with
        a checkpoint; one more is progress."""
        with Agent(command, **options) as agent:
            undisturbed = agent.until_finished(None)
            self.assertEqual(agent.starts, 1)
        for kill_after in kills:
            with Agent(command, **options) as agent:
                self.assertEqual(agent.until_finished(kill_after), undisturbed)
                self.assertGreater(agent.starts, 1)
        return undisturbed, agent

    def test_loops_arrays_and_objects_go_on(self):
        for full in (False, True):
            with self.subTest(full=full):
                results, agent = self.same(program(NESTED), (6, 11), full=full)
                fulls = sum(snapshot.full for snapshot in agent.saved)
                self.assertEqual(fulls, len(agent.saved) if full else 1)
                # A rank that does not wait saves when it says so.
                options = {"full": full, "blocking": False, "every": 0, "SAVES": "1"}
                self.assertEqual(self.same(program(NESTED), (8,), **options)[0], results)
        turns = np.zeros((3, 4, 5), "i4")
        for i in range(3):
            turns[i, :, : 2 + i] = 1 + 10 * i
        np.testing.assert_array_equal(array(results["turns"]), turns)
        later = [0, 102, 204, 306, 408, 510]
        np.testing.assert_array_equal(array(results["later"]), later)
        self.assertEqual(results["wide"][0], "<f8 (64, 256)")
        self.assertEqual(results["text"], ("text", "später".encode()))
        self.assertEqual(results["bytes"], ("bytes", b"xyz"))
        self.assertEqual(results["one"], ("<i8 ()", (5).to_bytes(8, "little")))
        form, content = results["object"]
        self.assertEqual((form, pickle.loads(content)), ("pickle", {"a": (1, None)}))

    def test_an_increment_has_what_has_changed(self):
        with Agent(program(NESTED)) as agent:
            agent.until_finished(None)
        whole, *increments = agent.saved
        self.assertTrue(whole.full)
        for snapshot in increments:
            names = [snapshot.arrays[number][0] for number, _, _ in snapshot.spans]
            sizes = [len(content) for _, _, content in snapshot.spans]
            pages = sum(size for name, size in zip(names, sizes) if "." not in name)
            self.assertLessEqual(pages, 3 * PAGE, names)

    def test_examples(self):
        for name, *arguments in [("matmul.py", "200"), ("fft.py", "9"), ("plain.py", "12")]:
            with self.subTest(name):
                command = [sys.executable, EXAMPLES / name, *arguments]
                results, agent = self.same(command, (3,))
                by_itself = subprocess.run(command, capture_output=True, text=True, check=True)
                self.assertEqual(agent.output, by_itself.stdout)
                if name == "plain.py":
                    text = PLAIN + (EXAMPLES / name).read_text()
                    plain, _ = self.same([sys.executable, "-c", text, "12"], (3,))
                    self.assertEqual(plain, results)

    def test_a_state_that_never_was_and_arrays_that_are_not_asked_for_again(self):
        text = """
            from steadfast_jobs import job
            if job.fresh:
                job.array("first", 3, init=[1, 2, 3])
            for k in job.range(4):
                pass
            job.array("second", 1, "u1", init=[job.start])
        """
        with Agent(program(text)) as agent:
            agent.until_finished(2)
        self.assertNotIn("steadfast.object.state", agent.image.arrays)
        self.assertIn("first", agent.image.arrays)

    def test_a_loop_left_by_an_exception_is_over(self):
        text = """
            from steadfast_jobs import job
            done = job.array("done", 3, "u1")
            for k in job.range(3):
                try:
                    for i in job.range(100):
                        if i == 3:
                            raise KeyError
                        done[k] += 1
                except KeyError:
                    pass
                for _ in job.range(2):
                    done[k] += 10
            job.result("done", done)
        """
        results, _ = self.same(program(text), (3, 8))
        self.assertEqual(results["done"], ("|u1 (3,)", bytes([23, 23, 23])))


class Asked(Agent):
    """Wants one checkpoint, and then says that this start is over."""

    def serve(self, kill_after):
        with self.let_in() as self.stream:
            self.stream.sendall(frame(SAVE))
            while (received := self.receive())[0] != SNAPSHOT:
                pass
            self.keep(Snapshot(*received[1:]))
            self.stream.sendall(frame(SAVED, self.done()))
            self.stream.sendall(frame(FAREWELL, b"another one runs"))
            while self.receive():
                pass


class Speaks(Agent):
    """Answers the first hello with these bytes."""

    says = b""

    def welcome(self):
        return self.says


class Babbles(Agent):
    """Says nonsense to the rank after its first snapshot, and is another agent then."""

    def serve(self, kill_after):
        with self.let_in():
            while self.receive()[0] != SNAPSHOT:
                pass
            self.stream.sendall(b"\xff" * 8)
            while self.receive():
                pass
        super().serve(kill_after)


class Ends(unittest.TestCase):
    FOREVER = """
        from steadfast_jobs import job
        a = job.array("a", 10)
        try:
            a[3] = 5
            for k in job.range(10**12):
                pass
        finally:
            print("never")
    """

    def test_a_checkpoint_is_asked_for_and_the_start_is_over(self):
        with Asked(program(self.FOREVER), every=0, blocking=False) as agent:
            status = agent.run()
        self.assertEqual((status, agent.output), (3, ""))
        self.assertEqual(agent.errors, "steadfast: this start of the rank is over: another one runs\n")
        self.assertEqual(struct.unpack_from("<d", agent.image.arrays["a"][1], 24), (5,))

    def test_only_a_good_end_finishes(self):
        ends = {
            "pass": 0,
            "raise SystemExit": 0,
            "sys.exit(0)": 0,
            "job.finish(); sys.exit(5)": 5,
            "sys.exit(2)": 2,
            "raise SystemExit(2)": 2,
            "exit('why')": 1,
            "1 / 0": 1,
            "raise KeyboardInterrupt": -2,
            "os._exit(4)": 4,
            "job.state['f'] = lambda: 0": 1,
            "child = os.fork() or sys.exit(0); sys.exit(os.waitpid(child, 0)[1] or 7)": 7,
        }
        for end, status in ends.items():
            with self.subTest(end):
                text = f"import os, sys\nfrom steadfast_jobs import job\njob.result('x', 'y')\n{end}"
                with Agent([sys.executable, "-c", text], every=0) as agent:
                    self.assertEqual(agent.run(), status, agent.errors)
                finishes = status == 0 or "finish" in end
                self.assertEqual(agent.finished, finishes)
                if finishes:
                    self.assertEqual(agent.image.results(), {"x": ("text", b"y")})

    def test_hostile_bytes(self):
        numbers = struct.pack("<IIQQQQQ", 0, 1, 7, 1, 0, 1, 1)
        listed = struct.pack("<HHQ", 1, 1, 2**63) + b"a\xff"
        for says in (
            b"\xff" * 64,
            frame(WELCOME, b""),
            frame(WELCOME, b"\1\xff\0\0" + numbers),
            frame(WELCOME, b"\1\1\0\0" + numbers),
            frame(WELCOME, b"\1\1\1\0" + numbers + listed),
            frame(WELCOME, b"\1\0\xff\xff" + numbers),
            frame(SAVED, b""),
            b"",
        ):
            with self.subTest(says):
                text = "from steadfast_jobs import job; job.rank"
                with Speaks([sys.executable, "-c", text]) as agent:
                    agent.says = says
                    self.assertEqual(self.refused(agent), 1)
                self.assertIn("steadfast_jobs.JobError: ", agent.errors)

    @staticmethod
    def refused(agent):
        """The status of a rank with which nobody speaks any more."""
        agent.serve = lambda _: agent.let_in().close()
        return agent.run()

    def test_an_agent_that_comes_back_gets_all_there_is(self):
        text = """
            from steadfast_jobs import job
            a = job.array("a", 10)
            for k in job.range(10):
                a[k] = k
                job.save()
            job.result("a", a)
        """
        with Babbles(program(text), every=0) as agent:
            self.assertEqual(agent.run(), 0)
        self.assertTrue(agent.saved[0].full and agent.finished)
        np.testing.assert_array_equal(array(agent.image.results()["a"]), range(10))

    def test_an_agent_that_goes_while_results_are_saved(self):
        with Babbles(program("from steadfast_jobs import job; job.result('x', 'y')")) as agent:
            self.assertEqual(agent.run(), 0)
        self.assertTrue(agent.finished)
        self.assertEqual(agent.image.results(), {"x": ("text", b"y")})

    def test_a_form_that_differs(self):
        image = Image({"a": ("<f8 (10,)", bytes(80)), "steadfast.loops": ("", b"0\n")})
        for form in ("10, 'i8'", "(2, 5)", "11", "10, '>f8'"):
            text = f"from steadfast_jobs import job; job.array('a', {form})"
            with Agent([sys.executable, "-c", text], image=image) as agent:
                self.assertEqual(agent.run(), 1)
            self.assertIn('array "a" is "<f8 (10,)" in the state', agent.errors)
            self.assertIn("give it another name", agent.errors)
            self.assertFalse(agent.finished)

    def test_an_agent_that_is_not_there(self):
        with tempfile.TemporaryDirectory() as folder:
            place = {"STEADFAST_JOB_SOCKET": f"{folder}/none", "STEADFAST_JOB_TOKEN": "00" * 32}
            ended = alone("from steadfast_jobs import job; job.rank", **place)
            self.assertIn("JobError: the agent of this job cannot be reached at", ended.stderr)
            place["STEADFAST_JOB_TOKEN"] = "none"
            ended = alone("from steadfast_jobs import job; job.rank", **place)
            self.assertIn("JobError: STEADFAST_JOB_TOKEN is not", ended.stderr)


class Saved(unittest.TestCase):
    def test_objects_are_pickled_when_they_are_saved(self):
        text = """
            from steadfast_jobs import job
            class Counted:
                times = 0
                def __reduce__(self):
                    Counted.times += 1
                    return int, (5,)
            job.state["it"] = Counted()
            for k in job.range(1000):
                pass
            print(Counted.times)
            job.save()
            print(Counted.times, job.saved_by_agent, job.tracker.kind in ("written", "compared"))
            job.finish()
            print(job.saved_by_agent, job.tracker)
        """
        with Agent(program(text), every=0) as agent:
            self.assertEqual(agent.run(), 0, agent.errors)
            self.assertEqual(agent.output, "0\n1 True True\nFalse None\n")
            agent.command = program("from steadfast_jobs import job; print(job.state, job.fresh)")
            self.assertEqual(agent.run(), 0, agent.errors)
            self.assertEqual(agent.output, "{'it': 5} False\n")

    def test_what_cannot_be_pickled_is_said(self):
        text = """
            from steadfast_jobs import job, JobError
            job.state["it"] = lambda: 0
            try:
                job.safe_point()
                job.save()
            except JobError as error:
                print(error)
            del job.state["it"]
        """
        with Agent(program(text), every=0) as agent:
            self.assertEqual(agent.run(), 0, agent.errors)
        self.assertIn("job.state cannot be pickled: ", agent.output)

    def test_processes_that_a_rank_starts_are_no_ranks(self):
        text = """
            import os, subprocess, sys
            from steadfast_jobs import job, JobError
            a = job.array("a", 3)
            print(sorted(name for name in os.environ if name.startswith("STEADFAST_JOB")))
            sys.stdout.flush()
            code = "from steadfast_jobs import job; print(job.rank, job.ranks, job.saved_by_agent)"
            subprocess.run([sys.executable, "-c", code], check=True)
            if os.fork() == 0:
                try:
                    job.array("b", 3)
                except JobError as error:
                    print(error, flush=True)
                os._exit(0)
            os.wait()
        """
        with Agent(program(text)) as agent:
            agent.rank, agent.ranks = 2, 3
            self.assertEqual(agent.run(), 0, agent.errors)
        names, rank, forked = agent.output.splitlines()
        self.assertEqual(names, "['STEADFAST_JOB_RANK', 'STEADFAST_JOB_RANKS']")
        self.assertEqual(rank, "2 3 False")
        self.assertIn("a forked process is no rank", forked)


class Alone(unittest.TestCase):
    def check(self, text, **variables):
        ended = alone(text, **variables)
        self.assertEqual((ended.returncode, ended.stderr), (0, ""))
        return ended.stdout

    def test_a_program_runs_the_same_by_itself(self):
        text = """
            from steadfast_jobs import job
            for k in job.range(1, 4):
                job.safe_point()
            job.save()
            print(k, job.rank, job.ranks, job.start, job.fresh, job.saved_by_agent, job.tracker)
        """
        self.assertEqual(self.check(text), "3 0 1 1 True False None\n")
        place = {"STEADFAST_JOB_RANK": "1", "STEADFAST_JOB_RANKS": "4"}
        self.assertEqual(self.check(text, **place), "3 1 4 1 True False None\n")
        self.check("import steadfast_jobs", STEADFAST_JOB_SOCKET="/none")

    def test_arrays_by_numpy(self):
        text = """
            import gc
            import numpy as np
            from steadfast_jobs import job
            a = job.array("a", (2, np.int64(3)), np.float32, init=[[1, 2, 3], [4, 5, 6]])
            assert a.flags.c_contiguous and a.flags.writeable and a.ctypes.data % 4096 == 0
            assert a.tolist() == [[1, 2, 3], [4, 5, 6]] and a.dtype == "f4"
            assert job.array("none", (0, 5)).shape == (0, 5)
            assert job.array("one", (), init=7) == 7
            fields = job.array("fields", 2, [("x", "<f8"), ("y", "i2")])
            fields["y"] = 3
            row = a[1]
            del a
            job.finish()
            gc.collect()
            row += 1
            assert row.tolist() == [5, 6, 7]
            for wrong in (dict(dtype=object), dict(shape=-1), dict(name="steadfast.x"), dict(name="one")):
                try:
                    job.array(**{"name": "b", "shape": 3, **wrong})
                except Exception as error:
                    print(type(error).__name__)
            try:
                job.result("x", row)
            except Exception as error:
                print(error)
        """
        errors = ["TypeError", "ValueError", "JobError", "JobError"]
        errors.append("the job is finished: results come before that")
        self.assertEqual(self.check(text).splitlines(), errors)

    def test_arrays_without_numpy(self):
        text = PLAIN + textwrap.dedent("""
            from array import array
            from steadfast_jobs import job
            a = job.array("a", (2, 3), "float32", init=[[1, 2, 3], [4, 5, 6]])
            assert type(a) is memoryview and a.format == "f" and not a.readonly
            assert a.tolist() == [[1, 2, 3], [4, 5, 6]]
            a[1, 2] = 9
            b = job.array("b", 4, "<i8", init=array("i", range(4)))
            assert b.tolist() == [0, 1, 2, 3]
            c = job.array("c", 2, "bool", init=lambda: [True, False])
            assert c.tolist() == [True, False]
            for wrong in (dict(dtype="c16"), dict(init=[1, 2])):
                try:
                    job.array(**{"name": str(wrong), "shape": 3, **wrong})
                except Exception as error:
                    print(error)
        """)
        codes = "b1, i1, i2, i4, i8, u1, u2, u4, u8, f4, f8"
        errors = [f"an array of 'c16' needs NumPy; without it: {codes}"]
        errors.append("init has 2 elements, and the array 3")
        self.assertEqual(self.check(text).splitlines(), errors)

    def test_both_kinds_of_arrays_have_the_same_forms(self):
        text = """
            from steadfast_jobs import _numpy, _plain
            for name in _plain._CODES:
                for shape in ((3,), (2, 3)):
                    assert _numpy.describe(shape, name) == _plain.describe(shape, name)
                    for flatten in (_numpy.flatten, _plain.flatten):
                        value = _numpy.numpy.ones(shape, name)
                        assert flatten(value) == _numpy.flatten(value), (name, flatten(value))
        """
        self.check(text)

    def test_loops_that_are_kept(self):
        text = """
            from steadfast_jobs import job, JobError
            for i in job.range(2):
                kept = job.range(9)
                next(kept)
            try:
                next(kept)
                for _ in job.range(2):
                    for _ in kept:
                        pass
                    for _ in kept:
                        pass
            except JobError as error:
                print(error)
            it = job.range(3)
            print(next(it), list(it), list(it))
        """
        self.assertIn("0 [1, 2] []", self.check(text))


if __name__ == "__main__":
    unittest.main()
