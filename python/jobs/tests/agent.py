"""An agent by the standard library, written after docs/protocol/rank.md: for tests, of one rank.

It starts the rank, keeps in memory what it saves, and kills it where a test says so.
"""

import contextlib
import os
import secrets
import shutil
import socket
import struct
import subprocess
import tempfile

HELLO, WELCOME, SNAPSHOT, SAVED, STEP, SAVE, FINISH, FINISHED, FAREWELL = range(1, 10)
MESSAGES = range(10, 17)
VERSION, PAGE = 1, 4096
RESTORED, FULL, BLOCKING = 1, 2, 4
RESULT = "steadfast.result."

# No test waits so long unless it fails.
PATIENCE, STARTS = 30, 100


def frame(kind, body=b""):
    return struct.pack("<IB3x", len(body), kind) + body


class Image:
    """What a rank has saved: its arrays, name by name, each a form and its bytes."""

    def __init__(self, arrays):
        self.arrays = arrays

    def file(self):
        """Each array from a page on, in the order of the list."""
        file = os.memfd_create("state")
        place = 0
        for _, content in self.arrays.values():
            os.pwrite(file, content, place)
            place += -(-len(content) // PAGE) * PAGE
        os.ftruncate(file, place)
        return file

    def listed(self):
        listed = b""
        for name, (form, content) in self.arrays.items():
            name, form = name.encode(), form.encode()
            listed += struct.pack("<HHQ", len(name), len(form), len(content)) + name + form
        return listed

    def results(self):
        arrays = self.arrays.items()
        return {name.removeprefix(RESULT): it for name, it in arrays if name.startswith(RESULT)}


class Snapshot:
    """A frame of a rank, and its file."""

    def __init__(self, body, file):
        head = struct.unpack_from("<QB3sIIII", body)
        self.step, self.full, zeros, self.stop_us, spans, arrays, ranks = head
        assert zeros == bytes(3) and self.full in (0, 1)
        place, self.arrays, self.spans = 28, [], []
        for _ in range(arrays):
            name, form, length = struct.unpack_from("<HHQ", body, place)
            place += 12
            texts = body[place : place + name].decode(), body[place + name :][:form].decode()
            self.arrays.append((*texts, length))
            place += name + form
        begin = 0
        for number in range(spans):
            array, offset, length = struct.unpack_from("<IQQ", body, place + 20 * number)
            assert offset % PAGE == 0 and offset + length <= self.arrays[array][2]
            content = os.pread(file, length, begin)
            assert len(content) == length
            self.spans.append((array, offset, content))
            begin += length
        assert place + 20 * spans + 48 * ranks == len(body)
        os.close(file)

    def onto(self, image):
        """The image that this makes of the one below."""
        assert self.full or image, "an increment needs an image below"
        below = {} if self.full else image.arrays
        contents = []
        for name, form, length in self.arrays:
            old = below.get(name, (form, b""))
            known = old[0] == form and len(old[1]) == length
            contents.append(bytearray(old[1] if known else bytes(length)))
        for array, offset, content in self.spans:
            contents[array][offset : offset + len(content)] = content
        named = zip(self.arrays, contents)
        return Image({name: (form, bytes(it)) for (name, form, _), it in named})


class Agent:
    def __init__(
        self, command, every=1, blocking=True, full=False, image=None, prints=None, **variables
    ):
        self.command, self.variables = command, variables
        self.every, self.blocking, self.full, self.image = every, blocking, full, image
        self.rank, self.ranks = 0, 1
        self.starts, self.saved, self.finished = 0, [], False
        self.output = self.errors = ""
        # The file for its standard output, if there is one; what another host might have there.
        self.prints, self.before = prints, b""

    def __enter__(self):
        self.folder = tempfile.mkdtemp()
        self.path = os.path.join(self.folder, "ranks")
        self.door = socket.socket(socket.AF_UNIX)
        self.door.bind(self.path)
        self.door.listen()
        self.door.settimeout(PATIENCE)
        return self

    def __exit__(self, *_):
        self.door.close()
        shutil.rmtree(self.folder)

    def until_finished(self, kill_after=2):
        """Starts the rank again and again. Each time it is killed when it has saved so often: at
        least twice, because the first time is where it began."""
        while not self.finished:
            assert self.starts < STARTS, "it comes no further"
            status = self.run(kill_after)
            assert self.finished or status == -9, (status, self.errors)
        assert status == 0, self.errors
        return self.image.results()

    def run(self, kill_after=None):
        """Starts the rank once, and serves it to its end: its exit status."""
        self.starts += 1
        self.token = secrets.token_bytes(32)
        variables = {
            **os.environ,
            "STEADFAST_JOB_SOCKET": self.path,
            "STEADFAST_JOB_TOKEN": self.token.hex(),
            "STEADFAST_JOB_RANK": str(self.rank),
            "STEADFAST_JOB_RANKS": str(self.ranks),
            **self.variables,
        }
        with self.printed(variables) as output:
            self.process = self.begin(variables, output)
        try:
            self.serve(kill_after)
            self.output, self.errors = self.process.communicate(timeout=PATIENCE)
        finally:
            self.process.kill()
            self.process.communicate()
        return self.process.returncode

    def begin(self, variables, output):
        """Its process."""
        pipe = subprocess.PIPE
        return subprocess.Popen(
            self.command, env=variables, stdout=output, stderr=pipe, text=True
        )

    @contextlib.contextmanager
    def printed(self, variables):
        """Where it prints: a file as at another host, or a pipe."""
        if not self.prints:
            yield subprocess.PIPE
            return
        with open(self.prints, "a+b") as file:
            file.truncate(0)
            file.write(self.before if self.image else b"")
            data = os.fstat(file.fileno())
            variables["STEADFAST_JOB_OUTPUT"] = f"{data.st_dev}:{data.st_ino}"
            file.flush()
            yield file

    def serve(self, kill_after):
        with self.let_in() as self.stream:
            saved = 0
            while received := self.receive():
                kind, body, file = received
                if kind == SNAPSHOT:
                    self.keep(Snapshot(body, file))
                    saved += 1
                    if saved == kill_after:
                        # It is saved, and the rank does not know.
                        self.process.kill()
                        return
                    # It says each time whether the next snapshot is to be a full one.
                    self.stream.sendall(frame(SAVED, self.done()))
                elif kind == FINISH:
                    self.finished = True
                    self.stream.sendall(frame(FINISHED))
                elif kind == STEP:
                    assert len(body) == 16
                else:
                    # What it says because of messages is for other ranks, of which there are none.
                    assert kind in MESSAGES, kind
                    if file is not None:
                        os.close(file)

    def done(self):
        """The last snapshot is saved."""
        return struct.pack("<QQBB", self.saved[-1].step, len(self.saved), True, self.full)

    def let_in(self):
        """The rank's stream, when both have introduced themselves."""
        stream, _ = self.door.accept()
        stream.settimeout(PATIENCE)
        self.stream = stream
        hello = (HELLO, b"SFRK" + bytes([VERSION, 0, 0, 0]) + self.token, None)
        assert self.receive() == hello
        files = [self.image.file()] if self.image else []
        socket.send_fds(stream, [self.welcome()], files)
        for file in files:
            os.close(file)
        return stream

    def welcome(self):
        flags = RESTORED if self.image else 0
        flags |= (FULL if self.full else 0) | (BLOCKING if self.blocking else 0)
        count, listed = (len(self.image.arrays), self.image.listed()) if self.image else (0, b"")
        step, day = 0, 86_400_000_000
        numbers = self.rank, self.ranks, 7, self.starts, step, self.every, day
        body = struct.pack("<BBHIIQQQQQ", VERSION, flags, count, *numbers)
        return frame(WELCOME, body + struct.pack("<QQQ", len(self.saved), 0, 0) + listed)

    def keep(self, snapshot):
        self.saved.append(snapshot)
        self.image = snapshot.onto(self.image)

    def receive(self):
        """The next frame: kind, body, file. None: the stream has ended."""
        head, files, _, _ = socket.recv_fds(self.stream, 8, 1, socket.MSG_WAITALL)
        if len(head) < 8:
            return None
        length, kind = struct.unpack("<IB3x", head)
        body = b""
        while len(body) < length:
            body += self.stream.recv(length - len(body))
        return kind, body, files[0] if files else None
