"""What a rank prints is printed once, wherever it is killed."""

import os
import random
import tempfile
import unittest

from agent import PAGE, Agent
from test_job import alone, program

# It prints everywhere, also by another process and without a line's end, and dies where it is told
# to: after so many lines, flushed or not. Its results say nothing of that.
PRINTS = """
    import os
    import subprocess
    import sys

    left = int(os.environ.get("DIES", "-1"))

    def say(*words):
        global left
        print(*words)
        if left == 0:
            if os.environ["FLUSHES"] == "1":
                sys.stdout.flush()
            os.kill(os.getpid(), 9)
        left -= 1

    say("before the job")
    from steadfast_jobs import job

    done = job.array("done", 2, "i4")
    say("rank", job.rank)
    for i in job.range(3):
        say("turn", i)
        for j in job.range(2):
            say("first", i, j)
        say("between", i)
        sys.stdout.write(str(i) * 3000)
        for j in job.range(4):
            say("second", i, j)
            if j == i:
                break
        for j in job.range(0):
            say("never")
        say("end of", i)
    say("after the loop")
    while done[0] < 4:
        job.safe_point()
        say("a safe point of its own", done[0])
        done[0] += 1
    job.save()
    sys.stdout.flush()
    subprocess.run(["echo", "another process"])
    for i in job.range(3, 0, -1):
        say("last", i)
    job.result("done", done)
    say("after the result")
"""

ENDS = """
    job.finish()
    print("after the end")
"""

# Nothing of it is in a loop, or at a safe point.
PLAIN = """
    from steadfast_jobs import job
    for line in range(3):
        print(line)
    job.result("line", line)
    print("end")
"""

# The last 32 MiB stay.
LONG = """
    import sys
    from steadfast_jobs import job
    for i in job.range(9):
        for line in range(1 << 16):
            sys.stdout.write(f"{i:31} {line:31}\\\\n")
    job.result("end", 1)
"""


class Dies(Agent):
    """Has its rank die after some lines, by chance."""

    chance = None

    def run(self, kill_after=None):
        if self.chance:
            # Later each time: a rank may be quicker than its agent, and come further by that alone.
            self.variables["DIES"] = str(self.chance.randrange(7, 16) + self.starts)
            self.variables["FLUSHES"] = str(self.chance.randrange(2))
            self.before = b"left from another start" * self.chance.randrange(400)
        return super().run(kill_after)

    def serve(self, kill_after):
        try:
            super().serve(kill_after)
        except (BrokenPipeError, ConnectionResetError):
            pass


class Printed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.prints = os.path.join(folder.name, "prints")

    def printed(self, agent, kill_after=None, once=None):
        with agent:
            if once:
                agent.run(once)
            agent.until_finished(kill_after)
        with open(self.prints, "rb") as prints:
            return prints.read()

    def same(self, text, kills, **options):
        wanted = alone(text).stdout.encode()
        command = program(text)
        self.assertEqual(self.printed(Agent(command, prints=self.prints, **options)), wanted)
        for kill_after in kills:
            agent = Agent(command, prints=self.prints, **options)
            agent.before = b"what another host has" * 1000
            self.assertEqual(self.printed(agent, kill_after), wanted, kill_after)
        return wanted, agent

    def test_killed_after_each_number_of_checkpoints(self):
        for text in (PRINTS, PRINTS + ENDS):
            wanted, agent = self.same(text, range(5, 14, 2))
            self.assertGreater(len(wanted), 2 * PAGE)
            self.assertGreater(agent.starts, 2)
        self.same(PRINTS, (6,), full=True)
        agent = Agent(program(PLAIN), prints=self.prints)
        self.assertEqual(self.printed(agent, once=1), alone(PLAIN).stdout.encode())
        self.assertEqual(agent.starts, 2)

    def test_killed_after_any_line(self):
        wanted = alone(PRINTS).stdout.encode()
        for seed in range(3):
            agent = Dies(program(PRINTS), prints=self.prints, blocking=seed % 2 == 0)
            agent.chance = random.Random(seed)
            self.assertEqual(self.printed(agent), wanted, seed)
            self.assertGreater(agent.starts, 3)

    def test_an_increment_has_the_pages_that_were_printed(self):
        with Agent(program(PRINTS), prints=self.prints) as agent:
            agent.until_finished(None)
        sizes = []
        for snapshot in agent.saved:
            names = [snapshot.arrays[number][0] for number, _, _ in snapshot.spans]
            spans = zip(names, snapshot.spans)
            sizes += [len(it[2]) for name, it in spans if name == "steadfast.output"]
        # It grows from one page to four, and is new each time; else a turn prints one page or two.
        self.assertEqual(sum(size > 2 * PAGE for size in sizes), 1, sizes)

    def test_a_file_that_is_not_the_agents_is_left_alone(self):
        with open(self.prints, "w") as prints:
            prints.write("others have printed\n")
        command = ["sh", "-c", 'exec "$@" >> "$PRINTS"', "sh", *program(PLAIN)]
        with Agent(command, PRINTS=self.prints) as agent:
            agent.run(1)
            agent.until_finished(None)
        with open(self.prints) as prints:
            self.assertEqual(prints.read(), "others have printed\n" + "0\n1\n2\nend\n" * 2)

    def test_of_much_the_last_stays(self):
        wanted = alone(LONG).stdout.encode()
        agent = Agent(program(LONG), prints=self.prints)
        found = self.printed(agent, once=6)
        kept = 32 << 20
        self.assertGreater(len(wanted), kept)
        self.assertEqual(len(found), len(wanted))
        self.assertEqual(found[-kept:], wanted[-kept:])
        self.assertEqual(agent.starts, 2)


if __name__ == "__main__":
    unittest.main()
