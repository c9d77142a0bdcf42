"""Ranks as threads of one process: what the native half does with messages, without an agent."""

import ctypes
import threading
from collections import deque

from steadfast_jobs._collectives import Collectives

# No test waits so long unless it fails.
PATIENCE = 30


class Network:
    """The messages of so many ranks that nobody has received yet."""

    def __init__(self, ranks):
        self.ranks = ranks
        self.changed = threading.Condition()
        self.boxes = [deque() for _ in range(ranks)]
        self.error = None

    def fail(self, error):
        with self.changed:
            self.error = self.error or error
            self.changed.notify_all()


class Endpoint:
    """The functions of `steadfast_jobs._native` for one rank."""

    def __init__(self, network, rank):
        self.network, self.number_of_rank = network, rank
        self.box = network.boxes[rank]
        self.sent, self.choices = [], 0

    def rank(self):
        return self.number_of_rank

    def ranks(self):
        return self.network.ranks

    def send(self, to, tag, head, data):
        if not (0 <= to < self.ranks() and 0 <= tag < 2**32):
            raise ValueError(f"no rank {to} or tag {tag}")
        view = memoryview(data)
        assert view.c_contiguous and type(head) is bytes
        self.sent.append((to, tag, view.nbytes))
        with self.network.changed:
            self.network.boxes[to].append((self.rank(), tag, head, view.tobytes()))
            self.network.changed.notify_all()

    def recv(self, source, tag):
        sent_by, tag, head, data = self._next(source, tag)
        return sent_by, tag, head, bytearray(data)

    def recv_into(self, source, tag, data):
        sent_by, tag, head, sent = self._next(source, tag)
        view = memoryview(data)
        assert view.c_contiguous and not view.readonly
        if len(sent) > view.nbytes:
            raise ValueError(f"{len(sent)} bytes into {view.nbytes}")
        ctypes.memmove((ctypes.c_ubyte * view.nbytes).from_buffer(data), sent, len(sent))
        return sent_by, tag, head, len(sent)

    def probe(self, source, tag):
        self.choices += 1
        with self.network.changed:
            return self._found(source, tag) is not None

    def number(self, value):
        self.choices += 1
        assert 0 <= value < 2**64
        return value

    def _next(self, source, tag):
        found = None

        def there():
            nonlocal found
            found = self._found(source, tag)
            return found is not None or self.network.error

        with self.network.changed:
            assert self.network.changed.wait_for(there, PATIENCE), f"nothing from {source}, {tag}"
            if found is None:
                raise RuntimeError("another rank has failed")
            self.box.remove(found)
        return found

    def _found(self, source, tag):
        for message in self.box:
            wanted = source in (-1, message[0])
            tagged = message[1] < 2**31 if tag == -1 else message[1] == tag
            if wanted and tagged:
                return message
        return None


class Recorded(Endpoint):
    """Records what is done, and its outcome."""

    def __init__(self, network, rank):
        super().__init__(network, rank)
        self.record = []

    def send(self, to, tag, head, data):
        super().send(to, tag, head, data)
        self.record.append((("send", to, tag, head, bytes(data)), None))

    def recv(self, source, tag):
        self.record.append((("recv", source, tag), super().recv(source, tag)))
        return self.record[-1][1]

    def probe(self, source, tag):
        self.record.append((("probe", source, tag), super().probe(source, tag)))
        return self.record[-1][1]

    def number(self, value):
        self.record.append((("number",), super().number(value)))
        return value


class Repeated(Endpoint):
    """A later start of a rank, alone: it does the same, and has the same outcome."""

    def __init__(self, recorded):
        super().__init__(Network(recorded.ranks()), recorded.rank())
        self.record = iter(recorded.record)

    def send(self, to, tag, head, data):
        self._again("send", to, tag, head, bytes(data))

    def recv(self, source, tag):
        return self._again("recv", source, tag)

    def probe(self, source, tag):
        return self._again("probe", source, tag)

    def number(self, value):
        return self._again("number")

    def _again(self, *done):
        before, outcome = next(self.record)
        assert done == before, f"{done} instead of {before}"
        return outcome


def run(ranks, function, make=Collectives, endpoint=Endpoint):
    """Runs `function` at so many ranks, each with its job: its results. No message is left."""
    network = Network(ranks)
    results = [None] * ranks

    def rank(number):
        own = endpoint(network, number)
        try:
            job = make(lambda: own)
            results[number] = function(job)
        except BaseException as error:
            network.fail(error)

    threads = [threading.Thread(target=rank, args=(number,)) for number in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if network.error:
        raise network.error
    assert not any(network.boxes), network.boxes
    return results
