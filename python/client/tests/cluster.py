"""Three nodes of a cluster as processes, for tests. Everything here waits for a bounded time."""

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

#: No test waits so long unless it fails.
PATIENCE = 60
NODES = (1, 2, 3)


def program():
    """The program, as it was built."""
    found = os.environ.get("STEADFAST_PROGRAM")
    if not found:
        sys.exit("set STEADFAST_PROGRAM to the program `steadfast`, such as target/debug/steadfast")
    return found


def _environment():
    kept = {name: value for name, value in os.environ.items() if not name.startswith("STEADFAST_")}
    return {**kept, "STEADFAST_CONTEXT": "/nowhere/context.toml"}


def _free_port():
    """A port that is free at the addresses of all nodes, for TCP and for UDP."""
    for _ in range(1000):
        sockets = []
        try:
            with socket.socket() as first:
                first.bind(("127.0.0.1", 0))
                port = first.getsockname()[1]
            for node in NODES:
                for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                    sockets.append(socket.socket(socket.AF_INET, kind))
                    sockets[-1].bind((f"127.0.0.{node}", port))
            return port
        except OSError:
            pass
        finally:
            for one in sockets:
                one.close()
    raise AssertionError("no port is free")


def wait_for(what, condition, pause=0.02):
    """Waits until the condition gives something true, and returns that."""
    deadline = time.monotonic() + PATIENCE
    while True:
        found = condition()
        if found:
            return found
        assert time.monotonic() < deadline, f"not within {PATIENCE} s: {what}"
        # A process of its own is asked: there is no event to wait for here.
        time.sleep(pause)


class Cluster:
    """Three nodes, each with a replica of the built-in group `counter`."""

    def __init__(self, tls=False):
        self._directory = tempfile.TemporaryDirectory()
        self.folder = Path(self._directory.name)
        self._processes, self._logs, self.addresses = {}, {}, {}
        self._tls = tls
        ring, client, admin = _free_port(), _free_port(), _free_port()
        if tls:
            made = self.run(
                *("init", "--cluster", "trial", "--out", self.folder / "made", "--local", 3),
                *("--ring-port", ring, "--client-port", client, "--admin-port", admin, "--json"),
            )
            configs = {node["id"]: Path(node["config"]) for node in json.loads(made)["nodes"]}
        else:
            configs = {node: self._configure(node, ring, client) for node in NODES}
        self.configs = configs
        self.addresses = {node: f"127.0.0.{node}:{client}" for node in NODES}

    def _configure(self, node, ring, client):
        folder = self.folder / f"node-{node}"
        folder.mkdir()
        nodes = "".join(f'[[nodes]]\nid = {n}\nring = "127.0.0.{n}:{ring}"\n' for n in NODES)
        config = folder / "node.toml"
        config.write_text(
            f'node = {node}\nadmin = "{folder}/node.sock"\n'
            f'listen.client = "127.0.0.{node}:{client}"\n{nodes}'
            '[[replica]]\ngroup = "counter"\nservice = "counter"\n'
        )
        return config

    def __enter__(self):
        for node in NODES:
            self.start(node)
        self.wait_for_replicas("counter", 3)
        return self

    def __exit__(self, *_):
        for process in self._processes.values():
            process.terminate()
        for process in self._processes.values():
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._directory.cleanup()

    def start(self, node):
        log = open(self.folder / f"log-{node}", "ab")
        command = [program(), "node", "--config", str(self.configs[node]), "--log", "warn"]
        self._processes[node] = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment()
        )
        log.close()

    def kill(self, node):
        """As `kill -9` does."""
        process = self._processes.pop(node)
        process.send_signal(signal.SIGKILL)
        process.wait()

    def stop(self, node):
        """It hangs, until it is let go on."""
        self._processes[node].send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, self._processes[node].pid, os.WSTOPPED)

    def go_on(self, node):
        self._processes[node].send_signal(signal.SIGCONT)

    def run(self, *arguments, check=True):
        """Runs the program to its end: its standard output."""
        command = [program(), *map(str, arguments)]
        done = subprocess.run(
            command, env=_environment(), capture_output=True, text=True, timeout=PATIENCE
        )
        if check:
            assert done.returncode == 0, f"{command}: {done.stderr}\n{self.log()}"
        return done.stdout

    def log(self):
        return "".join(path.read_text() for path in sorted(self.folder.glob("log-*")))

    def status(self, node):
        """What a node tells of itself; None if it does not answer."""
        told = self.run("status", "--json", "--config", self.configs[node], check=False)
        return json.loads(told) if told else None

    def group(self, name):
        """The group as some node sees it."""
        for node in self._processes:
            groups = (self.status(node) or {}).get("groups", [])
            for group in groups:
                if group["name"] == name:
                    return group
        return None

    def wait_for_replicas(self, name, count):
        def synced():
            group = self.group(name)
            return group and sum(replica["synced"] for replica in group["replicas"]) == count

        wait_for(f"{count} replicas of {name} have the state\n{self.log()}", synced)

    def primary(self, name):
        """The node of the group's primary."""
        return wait_for(f"{name} has a primary", lambda: (self.group(name) or {}).get("primary"))["node"]

    def serve(self, node, group, script, *options):
        """Has a node serve a replica by a program in Python."""
        path = f"PYTHONPATH={os.environ.get('PYTHONPATH', '')}"
        where = ("--config", self.configs[node], "--env", path)
        self.run("run", "--group", group, *where, *options, "--", sys.executable, script)

    def programs(self, node):
        """The programs that a node has started."""
        return json.loads(self.run("programs", "--json", "--config", self.configs[node]))


class Background:
    """A function in a thread: its result or its exception, within a bounded time."""

    def __init__(self, function):
        self._result = self._error = None

        def run():
            try:
                self._result = function()
            except BaseException as error:
                self._error = error

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()

    def is_running(self):
        return self._thread.is_alive()

    def result(self):
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "a thread has not ended"
        if self._error:
            raise self._error
        return self._result
