"""Kills ranks, agents and nodes under examples/jobs/matmul.py, and compares the results.

    python python/tests/strikes.py --steadfast target/release/steadfast --rounds 50

A round kills a rank, an agent, a node, or two of them at once. A job that ends is compared with an
undisturbed run, bit by bit, and the next one begins. Prints how many turns were computed twice. Run
by hand: it takes some seconds a round.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RANKS = 4
EXAMPLE = Path(__file__).resolve().parents[2] / "examples/jobs/matmul.py"

# The example, with a line for each turn in a file of the rank's own.
COUNTED = """
import os, runpy, sys
from steadfast_jobs import job, _job
inner = _job.Job.range
def counted(self, *arguments):
    for turn in inner(self, *arguments):
        with open(sys.argv[2] + f"-{self.rank}", "a") as turns:
            turns.write(f"{turn}\\n")
        yield turn
_job.Job.range = counted
runpy.run_path(%r, run_name="__main__")
"""


class Cluster:
    """The machine's own cluster in a folder of its own."""

    def __init__(self, program, home, size):
        self.program, self.home, self.size = program, Path(home), size
        self.script = self.home / "counted.py"
        self.script.write_text(COUNTED % str(EXAMPLE))

    def steadfast(self, *arguments):
        environment = dict(os.environ, STEADFAST_HOME=str(self.home))
        until = time.time() + 30
        while True:
            command = [self.program, *arguments]
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if not done.returncode:
                return done.stdout
            # The node that it asks may just have been killed.
            if time.time() > until:
                sys.exit(f"{arguments}: {done.stderr}")
            time.sleep(0.1)

    def submit(self, name):
        script = [sys.executable, str(self.script), str(self.size), str(self.home / name)]
        self.steadfast(
            *["job", "run", "-n", str(RANKS), "--nodes", "3", "--copies", "2"],
            *["--every", "300ms", "--name", name, "--detach", "--", *script],
        )

    def job(self, name):
        return json.loads(self.steadfast("job", "show", name, "--json"))

    def results(self, name):
        out = self.home / f"{name}-out"
        self.steadfast("job", "restore", name, "--results", "--out", str(out))
        return {path.relative_to(out): path.read_bytes() for path in sorted(out.rglob("*.npy"))}

    def turns(self, name):
        """Turns that were computed, and those among them that were computed before."""
        lines = [(self.home / f"{name}-{rank}").read_text().split() for rank in range(RANKS)]
        return sum(map(len, lines)), sum(len(it) - len(set(it)) for it in lines)

    def processes(self, word):
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                line = (folder / "cmdline").read_bytes().decode(errors="replace").replace("\0", " ")
            except OSError:
                continue
            if str(self.home) in line and word in line:
                found.append(int(folder.name))
        return found

    def strike(self, kind):
        words = {"rank": " " + str(self.script), "agent": " agent ", "node": " node "}
        kinds = random.sample(["rank", "agent", "node"], 2) if kind == "two" else [kind]
        victims = [self.processes(words[kind]) for kind in kinds]
        for victim in [random.choice(some) for some in victims if some]:
            try:
                os.kill(victim, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def keepers(self):
        """The processes that keep the cluster."""
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                line = (folder / "cmdline").read_bytes().split(b"\0")
                environment = (folder / "environ").read_bytes()
            except OSError:
                continue
            if b"keep" in line and f"STEADFAST_HOME={self.home}".encode() in environment:
                found.append(int(folder.name))
        return found

    def close(self):
        for pid in self.keepers():
            os.kill(pid, signal.SIGTERM)
        # Nodes end with their keeper, and agents and ranks with these.
        while self.keepers() or self.processes(""):
            time.sleep(0.05)


def wait(cluster, name, until=lambda job: False):
    """Waits until the job is over (true), or until this is so of it."""
    while True:
        job = cluster.job(name)
        if job["state"] != "running":
            if job["state"] != "finished":
                sys.exit(f"{name}: {job}")
            return True
        if until(job):
            return False
        time.sleep(0.05)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steadfast", required=True, help="the program")
    options.add_argument("--rounds", type=int, default=50)
    options.add_argument("--size", type=int, default=6144, help="rows of the matrices")
    options.add_argument("--seed", type=int, default=1)
    options = options.parse_args()
    random.seed(options.seed)
    with tempfile.TemporaryDirectory() as home:
        cluster = Cluster(str(Path(options.steadfast).resolve()), home, options.size)
        try:
            strikes(cluster, options.rounds)
        finally:
            cluster.close()


def strikes(cluster, rounds):
    cluster.submit("calm")
    wait(cluster, "calm")
    wanted = cluster.results("calm")
    assert len(wanted) == RANKS, wanted.keys()
    done = jobs = turns = twice = restarts = 0
    while done < rounds:
        name = f"struck-{jobs}"
        cluster.submit(name)
        over = False
        while not over and done < rounds:
            pause = time.time() + random.uniform(0.5, 2)
            over = wait(cluster, name, lambda job: time.time() > pause)
            if not over:
                cluster.strike(["rank", "agent", "node", "two"][done % 4])
                done += 1
        wait(cluster, name)
        if cluster.results(name) != wanted:
            sys.exit(f"{name}: the results differ from the undisturbed run's")
        computed, again = cluster.turns(name)
        jobs, turns, twice = jobs + 1, turns + computed, twice + again
        restarts += sum(rank["start"] - 1 for rank in cluster.job(name)["ranks"])
        cluster.steadfast("job", "forget", name)
        print(f"{done} rounds, {jobs} jobs, {restarts} restarts, {twice} of {turns} turns twice")
    print(json.dumps(dict(rounds=done, jobs=jobs, restarts=restarts, turns=turns, twice=twice)))


main()
