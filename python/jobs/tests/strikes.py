"""Kills ranks, agents and nodes under examples/jobs, and compares results and standard output.

    python python/jobs/tests/strikes.py --steadfast target/release/steadfast --rounds 50 \\
        matmul.py 6144 / ring.py 20000 / gauss.py 1500

A round kills a rank, an agent, a node, or two of them at once (`--kinds`; `notes`: a rank and all
agents). A job that ends is compared with an undisturbed run, bit by bit, and the next one begins,
of the next program. Prints how many turns were computed twice. Run by hand: it takes some seconds a
round.
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
EXAMPLES = Path(__file__).resolve().parents[3] / "examples/jobs"

# An example, with a line for each turn in a file of the rank's own, and on its standard output.
COUNTED = """
import runpy, sys
from steadfast_jobs import _job
name, program = sys.argv[1:3]
del sys.argv[1:3]
inner = _job.Job.range
def counted(self, *arguments):
    depth, self.depth = getattr(self, "depth", 0), getattr(self, "depth", 0) + 1
    for turn in inner(self, *arguments):
        if depth == 0:
            with open(f"{name}-{self.rank}", "a") as turns:
                turns.write(f"{turn}\\n")
            print("turn", turn)
        yield turn
    self.depth = depth
_job.Job.range = counted
sys.path.insert(0, program.rpartition("/")[0])
runpy.run_path(program, run_name="__main__")
"""


class Cluster:
    """The machine's own cluster in a folder of its own."""

    def __init__(self, program, home, options):
        self.program, self.home, self.options = program, Path(home), options
        self.script = self.home / "counted.py"
        self.script.write_text(COUNTED)

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

    def submit(self, name, example):
        script = [sys.executable, str(self.script), str(self.home / name)]
        nodes = self.options.nodes
        self.steadfast(
            *["job", "run", "-n", str(RANKS), "--nodes", str(nodes)],
            *["--copies", str(min(nodes, 2)), *self.options.job],
            *["--every", self.options.every, "--name", name, "--detach"],
            *["--", *script, str(EXAMPLES / example[0]), *example[1:]],
        )

    def job(self, name):
        return json.loads(self.steadfast("job", "show", name, "--json"))

    def results(self, name):
        out = self.home / f"{name}-out"
        self.steadfast("job", "restore", name, "--results", "--out", str(out))
        files = sorted(path for path in out.rglob("*") if path.is_file())
        return {str(path.relative_to(out)): path.read_bytes() for path in files}

    def prints(self, name):
        """What each rank has printed on its standard output."""
        ranks = [["--rank", str(rank)] for rank in range(RANKS)]
        return [self.steadfast("job", "logs", name, *rank) for rank in ranks]

    def turns(self, name):
        """Turns that were computed, and those among them that were computed before."""
        files = [self.home / f"{name}-{rank}" for rank in range(RANKS)]
        lines = [file.read_text().split() for file in files if file.exists()]
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
        kinds = random.choices(self.options.kinds, k=2) if kind == "two" else [kind]
        if kind == "notes":
            # A rank is lost with its choices, wherever these are noted.
            kinds = ["rank"]
        victims = [self.processes(words[kind]) for kind in kinds]
        victims = [random.choice(some) for some in victims if some]
        if kind == "notes":
            victims += self.processes(words["agent"])
        for victim in victims:
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
                for rank in range(RANKS):
                    prints = cluster.steadfast("job", "logs", name, "--rank", str(rank))
                    print(f"rank {rank} has printed:", prints[-2_000:], sep="\n")
                print(cluster.steadfast("job", "show", name))
                sys.exit(f"{name}: {job['state']}")
            return True
        if until(job):
            return False
        time.sleep(0.05)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--steadfast", required=True, help="the program")
    options.add_argument("--rounds", type=int, default=50)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--nodes", type=int, default=3)
    options.add_argument("--kinds", default="rank,agent,node", type=lambda text: text.split(","))
    options.add_argument("--every", default="300ms", help="when ranks save")
    options.add_argument("--job", default=[], type=str.split, help="more options of `job run`")
    options.add_argument("--pause", type=float, default=2, help="the most seconds between kills")
    options.add_argument("examples", nargs="*", help="programs and arguments, with / between them")
    options = options.parse_args()
    random.seed(options.seed)
    examples = [text.split() for text in " ".join(options.examples or ["matmul.py 6144"]).split(" / ")]
    with tempfile.TemporaryDirectory() as home:
        cluster = Cluster(str(Path(options.steadfast).resolve()), home, options)
        try:
            strikes(cluster, examples)
        finally:
            cluster.close()


def strikes(cluster, examples):
    options = cluster.options
    wanted = []
    for number, example in enumerate(examples):
        cluster.submit(f"calm-{number}", example)
        wait(cluster, f"calm-{number}")
        wanted.append((cluster.results(f"calm-{number}"), cluster.prints(f"calm-{number}")))
        assert wanted[-1][0], f"{example} has no results"
    done = jobs = turns = twice = restarts = regroups = 0
    kinds = [*options.kinds] if "notes" in options.kinds else [*options.kinds, "two"]
    while done < options.rounds:
        name, number = f"struck-{jobs}", jobs % len(examples)
        cluster.submit(name, examples[number])
        over = False
        while not over and done < options.rounds:
            pause = time.time() + random.uniform(options.pause / 4, options.pause)
            over = wait(cluster, name, lambda job: time.time() > pause)
            if not over:
                cluster.strike(kinds[done % len(kinds)])
                done += 1
        wait(cluster, name)
        results, prints = wanted[number]
        if cluster.results(name) != results:
            sys.exit(f"{name}: the results of {examples[number]} differ from the undisturbed run's")
        # Workers of a farm have as many turns as they get tasks.
        ranks = 1 if examples[number][0] == "farm.py" else RANKS
        for rank, (found, calm) in enumerate(zip(cluster.prints(name)[:ranks], prints)):
            if found != calm:
                found, calm = found.splitlines(), calm.splitlines()
                sys.exit(f"{name}: rank {rank} of {examples[number]} printed {found[-20:]}, "
                         f"{len(found)} lines; undisturbed {calm[-20:]}, {len(calm)} lines")
        computed, again = cluster.turns(name)
        jobs, turns, twice = jobs + 1, turns + computed, twice + again
        ranks = cluster.job(name)["ranks"]
        restarts += sum(rank["start"] - 1 for rank in ranks)
        regroups += max(json.dumps(rank["recoveries"]).count("regrouped") for rank in ranks)
        cluster.steadfast("job", "forget", name)
        print(f"{done} rounds, {jobs} jobs, {restarts} restarts, {regroups} times all went back, "
              f"{twice} of {turns} turns twice", flush=True)
    found = dict(rounds=done, jobs=jobs, restarts=restarts, regroups=regroups)
    print(json.dumps(dict(**found, turns=turns, twice=twice)))


main()
