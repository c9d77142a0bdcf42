"""The agent's end of a process that forks ranks, written after io/agent/src/warm.rs."""

import os
import select
import socket
import subprocess
import sys
import tempfile

from agent import PATIENCE, Agent

PARK = (
    "(lambda it: it.flags.safe_path or it.path.pop(0))(__import__('sys')); "
    "__import__('steadfast_jobs._parking')._parking.main()"
)


class Parked:
    """A process with the imports of a script done; what it says of itself is its `word`."""

    def __init__(self, script, *arguments, options=(), **variables):
        self.channel, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.channel.settimeout(PATIENCE)
        environment = {**os.environ, **variables}
        with its, tempfile.TemporaryFile() as prints:
            self.process = subprocess.Popen(
                [sys.executable, *options, "-c", PARK, script, *arguments],
                env=environment, stdin=its, stdout=prints, stderr=prints,
            )
        self.word = self.channel.recv(512)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()
        self.process.wait(PATIENCE)

    def fork(self, variables, output, errors):
        """A rank with these variables beside, which prints to these files."""
        status, told = os.pipe()
        words = b"\0".join(f"{name}={value}".encode() for name, value in variables.items())
        files = [output.fileno(), errors.fileno(), told]
        socket.send_fds(self.channel, [words], files)
        os.close(told)
        return Forked(os.fdopen(status))


class Forked:
    """A rank that was forked, as far as `Popen` says the same of a process."""

    def __init__(self, status):
        self.status, self.returncode = status, None
        self.pid = int(status.readline())

    def kill(self):
        if self.returncode is None:
            os.killpg(self.pid, 9)

    def wait(self, timeout=PATIENCE):
        if self.returncode is None:
            assert select.select([self.status], [], [], timeout)[0], "it does not end"
            with self.status:
                self.returncode = os.waitstatus_to_exitcode(int(self.status.readline()))
        return self.returncode


class Warm(Agent):
    """An agent whose later starts are forks."""

    parked = None

    def __exit__(self, *error):
        if self.parked:
            self.parked.__exit__()
        super().__exit__(*error)

    def begin(self, variables, output):
        if self.starts == 1:
            return super().begin(variables, output)
        if not self.parked:
            self.parked = Parked(*self.command[1:], **self.variables)
            assert self.parked.word == b"ready", self.parked.word
        with tempfile.TemporaryFile("w+") as errors:
            own = {name: it for name, it in variables.items() if os.environ.get(name) != it}
            forked = self.parked.fork(own, output, errors)
            kept = os.fdopen(os.dup(errors.fileno()))

        def communicate(timeout=PATIENCE):
            forked.wait(timeout)
            if kept.closed:
                return None, ""
            with kept:
                kept.seek(0)
                return None, kept.read()

        forked.communicate = communicate
        return forked
