"""The example clients of each language: how they are built, run and read."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import threading

from cluster import CLUSTER, Broken

EXAMPLES = pathlib.Path(__file__).resolve().parents[2] / "examples" / "grpc"
ENDS_WITHIN = 30  # seconds


class Skipped(Exception):
    """A toolchain or its registry is not there."""


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Skipped(f"no {program} here")


def run(words, at):
    """Runs a tool; the last lines that it printed, if it failed."""
    done = subprocess.run(words, cwd=at, capture_output=True, text=True)
    if done.returncode == 0:
        return None
    last = (done.stdout + done.stderr).strip().splitlines()[-5:]
    return f"`{' '.join(map(str, words))}` failed: {' / '.join(last)}"


def fetch(*words, at):
    """Gets packages, which some machines cannot."""
    if why := run(words, at):
        raise Skipped(why)


def check(*words, at):
    """Builds or tests our own sources, which has to work."""
    if why := run(words, at):
        raise Broken(why)


def copied(language, folder):
    """The sources in a folder of their own: packages are put beside them."""
    shutil.copytree(EXAMPLES / language, folder / language, dirs_exist_ok=True)
    return folder / language


def python(folder):
    source = EXAMPLES / "python"
    own = folder / "python" / "bin" / "python"
    if not own.exists():
        fetch(sys.executable, "-m", "venv", folder / "python", at=source)
    fetch(own, "-m", "pip", "install", "--quiet", "-r", "requirements.txt", at=source)
    check(own, "-m", "unittest", at=source)
    return [own, source / "client.py"]


def node(folder):
    need("node", "npm")
    at = copied("node", folder)
    fetch("npm", "ci", "--ignore-scripts", "--silent", at=at)
    check("node", "--test", at=at)
    return ["node", at / "client.js"]


def go(folder):
    need("go")
    fetch("go", "mod", "download", at=EXAMPLES / "go")
    check("go", "build", "-o", folder / "client-go", ".", at=EXAMPLES / "go")
    check("go", "test", ".", at=EXAMPLES / "go")
    return [folder / "client-go"]


def java(folder):
    need("java", "mvn")
    at = copied("java", folder)
    maven = ["mvn", "--quiet", "--batch-mode"]
    fetch(*maven, "dependency:copy-dependencies", "-DoutputDirectory=target/lib", at=at)
    check(*maven, "compile", at=at)
    return ["java", "-cp", f"{at}/target/classes:{at}/target/lib/*", "steadfast.Client"]


def cpp(folder):
    need("g++", "pkg-config")
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "grpc++"], capture_output=True, text=True)
    if flags.returncode != 0:
        raise Skipped("no grpc++ here: apt-get install libgrpc++-dev")
    compiler = ["g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"]
    compiler += ["-o", folder / "client-cpp", "client.cpp", *flags.stdout.split()]
    check(*compiler, at=EXAMPLES / "cpp")
    return [folder / "client-cpp"]


BUILDERS = {it.__name__: it for it in (python, java, go, node, cpp)}

# Their xDS reads certificates from the bootstrap file. Others ask a gateway beside them for the list.
XDS_WITH_TLS = ("python", "go")


class Client:
    """A client that runs, and what it says of its slow calls."""

    def __init__(self, command, target, options, cluster, bootstrap=None):
        words = [*command, *options]
        if cluster.tls:
            words += ["--tls", cluster.tls, "--authority", f"node.{CLUSTER}.steadfast"]
        environment = dict(os.environ)
        if bootstrap:
            environment["GRPC_XDS_BOOTSTRAP"] = str(bootstrap)
        self._process = subprocess.Popen(
            [*words, target],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        self.slow = []  # (begin in ms of the epoch, ms)
        self.gateways = []  # (time in ms of the epoch, address)
        self.said = []
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    def _read(self):
        for line in self._process.stderr:
            match line.split():
                case ["slow", at, span]:
                    self.slow.append((float(at), float(span)))
                case ["peer", at, gateway]:
                    self.gateways.append((float(at), gateway))
                case _ if len(self.said) < 20:
                    self.said.append(line.rstrip())

    def check(self):
        """It still runs."""
        if self._process.poll() is not None:
            raise Broken(f"the client ended: {self.said}")

    def end(self):
        """Has it end, and reads its result."""
        self._process.send_signal(signal.SIGTERM)
        try:
            out = self._process.stdout.read()
            self._process.wait(ENDS_WITHIN)
        finally:
            self.kill()
        lines = out.splitlines()
        if len(lines) != 1:
            raise Broken(f"the client printed no result: {lines} {self.said}")
        return json.loads(lines[0])

    def kill(self):
        self._process.kill()
        self._process.wait()
        self._reader.join()

    def longest(self, since, until):
        """The longest call under way between two times, in ms; 5 if none took longer."""
        spans = [span for at, span in self.slow if at + span >= since and at <= until]
        return max(spans, default=5.0)
