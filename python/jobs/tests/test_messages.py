"""Messages between two ranks, with ranks that are threads."""

import os
import pathlib
import struct
import subprocess
import sys
import unittest
from array import array

from steadfast_jobs import ANY, JobError, Message
from steadfast_jobs._packets import pack
from together import run

try:
    import numpy as np
except ModuleNotFoundError:
    np = None

SIZES = 1, 2, 3, 5
TESTS = pathlib.Path(__file__).parent


def elements(values, code="d"):
    """An array of these, by NumPy if it is there."""
    return np.array(values, code) if np else memoryview(array(code, values))


class Ranks(unittest.TestCase):
    def at_each(self, program, sizes=SIZES):
        for ranks in sizes:
            with self.subTest(ranks=ranks):
                run(ranks, program)

    def refused(self, error, text, function, *arguments, **options):
        with self.assertRaises(error) as raised:
            function(*arguments, **options)
        self.assertIn(text, str(raised.exception))


class Values(Ranks):
    def test_objects_arrive_as_they_were(self):
        values = [None, True, 5, 2**70, 1.5, "später", "\ud800", b"", b"xyz", bytearray(b"ab")]
        values += [(1, [2, {"a": {3}}]), ValueError, struct.Struct]

        def program(job):
            after, before = (job.rank + 1) % job.ranks, (job.rank - 1) % job.ranks
            for value in values:
                job.send(value, after, tag=7)
            for value in values:
                found = job.recv(before, tag=7)
                self.assertIs(type(found), type(value))
                self.assertEqual(found, value)

        self.at_each(program)

    def test_equal_objects_are_the_same_messages(self):
        word = "".join(["a", "bc"])
        other = "".join(["ab", "c"])
        for one, two in (((word, word), (word, other)), ({word: [word]}, {word: [other]})):
            self.assertEqual(pack(one), pack(two))
        around = []
        around.append(around)

        def program(job):
            job.send(around, job.rank)
            found = job.recv()
            self.assertIs(found[0], found)

        self.at_each(program, (1,))

    def test_arrays_arrive_with_memory_of_their_own(self):
        def program(job):
            sent = elements([1, 2, 3])
            job.send(sent, job.rank)
            sent[0] = 9
            found = job.recv()
            self.assertEqual(found.tolist(), [1, 2, 3])
            found[1] = 5
            self.assertEqual((found.tolist(), sent.tolist()), ([1, 5, 3], [9, 2, 3]))

        self.at_each(program, (1,))

    def test_arrays_of_each_form(self):
        def program(job):
            for code in "bBhHiIlLqQfd?":
                flat = array("d" if code == "?" else code, [1, 0, 1, 1, 0, 1])
                bytes_of = bytes(flat) if code != "?" else bytes(map(bool, flat))
                for shape in ((6,), (2, 3), (3, 1, 2)):
                    sent = memoryview(bytes_of).cast(code, shape)
                    job.send(sent, job.rank)
                    self.assertEqual(job.recv().tolist(), sent.tolist())
            for sent in (array("i", [1, 2]), memoryview(array("i", [1, 5, 2]))[::2], array("d")):
                job.send(sent, job.rank)
                self.assertEqual(job.recv().tolist(), sent.tolist())
            one = memoryview(b"\5").cast("B", ())
            job.send(one, job.rank)
            self.assertEqual(job.recv().tolist(), 5)

        self.at_each(program, (1,))

    @unittest.skipIf(np is None, "needs NumPy")
    def test_arrays_of_numpy(self):
        fields = [("x", "<f8"), ("y", ">i2", (2,))]
        names = "?", "f2", ">i4", "c16", "S3", "U2", "M8[s]", "m8[D]", fields, "V5"

        def program(job):
            for name in names:
                whole = np.zeros((2, 3, 4), name)
                one = whole[0, 0, :1].reshape(())
                for sent in (whole, whole.T, whole[:, ::2], one, whole[:0]):
                    job.send(sent, job.rank)
                    found = job.recv()
                    self.assertIs(type(found), np.ndarray)
                    self.assertEqual((found.dtype, found.shape), (sent.dtype, sent.shape))
                    self.assertTrue(found.flags.writeable and (found == sent).all())
                for sent in (whole, one.reshape(1), whole[:0]):
                    job.send(sent, job.rank)
                    into = np.empty_like(sent)
                    self.assertIs(job.recv(into=into), into)
                    self.assertTrue((into == sent).all())
                    [found] = job.allgather(sent)
                    self.assertEqual((found.dtype, found.shape), (sent.dtype, sent.shape))
            # An array of one number is no number of bytes.
            [found] = job.allgather(np.array([5]))
            self.assertEqual(found.tolist(), [5])
            # Objects that are no plain array come back as what they are.
            masked = np.ma.array([1, 2], mask=[0, 1])
            for sent in (np.float64(3), np.str_("a"), masked, np.array([None, 5])):
                job.send(sent, job.rank)
                found = job.recv()
                self.assertIs(type(found), type(sent))
                self.assertEqual(repr(found), repr(sent))

        self.at_each(program, (1,))

    @unittest.skipIf(np is None, "needs NumPy")
    def test_an_array_in_one_piece_is_not_copied_to_be_sent(self):
        from steadfast_jobs._packets import pack

        whole = np.arange(12.0).reshape(3, 4)
        for sent, shared in ((whole, True), (whole[1:], True), (whole.T, False)):
            self.assertEqual(np.shares_memory(pack(sent)[1], sent), shared)

    def test_values_that_cannot_be_sent(self):
        def program(job):
            with self.assertRaisesRegex(Exception, "pickle"):
                job.send(lambda: 0, job.rank)

        self.at_each(program, (1,))

    def test_a_receive_into_an_array(self):
        def program(job):
            into = elements([0] * 4)
            sent = elements([1, 2, 3, 4])
            job.send(sent, job.rank)
            self.assertIs(job.recv(into=into), into)
            self.assertEqual(into.tolist(), [1, 2, 3, 4])
            wrong = [b"x" * 32, "text", [1], elements([1, 2, 3]), elements([1] * 4, "q")]
            for value in wrong:
                job.send(value, job.rank)
                self.refused(JobError, "sent, and ", job.recv, into=into)
            for target in ([0], memoryview(b"1234"), elements([0] * 8)[::2]):
                self.refused(ValueError, "copy it: a[...]", job.recv, into=target)
            # The shape is the receiver's own.
            square = memoryview(bytearray(32)).cast("B").cast("d", (2, 2))
            job.send(sent, job.rank)
            job.recv(into=square)
            self.assertEqual(square.tolist(), [[1, 2], [3, 4]])

        self.at_each(program, (1,))


class Matching(Ranks):
    def test_messages_are_taken_by_rank_and_tag(self):
        def program(job):
            for to in range(job.ranks):
                for tag in (3, 0, 2**31 - 1):
                    job.send((job.rank, tag, "first"), to, tag)
                    job.send((job.rank, tag, "second"), to, tag)
            for tag in (0, 2**31 - 1, 3):
                for source in reversed(range(job.ranks)):
                    for word in ("first", "second"):
                        found = job.recv_message(source, tag)
                        self.assertEqual(found, Message((source, tag, word), source, tag))

        self.at_each(program)

    def test_messages_of_anybody(self):
        def program(job):
            for to in range(job.ranks):
                job.send(job.rank, to, tag=job.rank)
            found = [job.recv_message() for _ in range(job.ranks)]
            self.assertTrue(all(value == source == tag for value, source, tag in found))
            self.assertEqual({it.source for it in found}, {*range(job.ranks)})

        self.at_each(program)

    def test_any_tag_is_none_of_a_collective(self):
        def program(job):
            if job.rank == 0:
                self.assertEqual(job.bcast("all"), "all")
                job.send("one", 1)
            else:
                self.assertEqual(job.recv(0), "one")
                self.assertEqual(job.bcast(None), "all")

        self.at_each(program, (2,))

    def test_exchanges(self):
        def program(job):
            after, before = (job.rank + 1) % job.ranks, (job.rank - 1) % job.ranks
            self.assertEqual(job.sendrecv(job.rank, after, before, tag=4), before)
            other = job.ranks - 1 - job.rank
            self.assertEqual(job.sendrecv(job.rank, other), other)
            into = elements([0])
            job.sendrecv(elements([job.rank]), after, ANY, into=into)
            self.assertEqual(into[0], before)

        self.at_each(program)

    def test_probe(self):
        def program(job):
            self.assertFalse(job.probe() or job.probe(job.rank) or job.probe(tag=5))
            job.send(1, job.rank, tag=5)
            self.assertTrue(job.probe() and job.probe(job.rank, 5) and job.probe(tag=5))
            self.assertFalse(job.probe(tag=4))
            begun = job.irecv(tag=5)
            self.assertFalse(job.probe())
            self.assertEqual(begun.wait(), 1)

        self.at_each(program, (1,))

    def test_names_that_are_none(self):
        def program(job):
            for rank in (-2, job.ranks, 2**40):
                for call in ((job.send, 0, rank), (job.isend, 0, rank), (job.recv, rank)):
                    self.refused(ValueError, f"there is no rank {rank}: the job has", *call)
            self.refused(ValueError, "there is no rank -1", job.send, 0, ANY)
            for tag in (-2, 2**31):
                text = f"the tag {tag} is not a number from 0 to 2147483647"
                for call in ((job.send, 0, 0, tag), (job.recv, 0, tag), (job.probe, 0, tag)):
                    self.refused(ValueError, text, *call)
            self.refused(ValueError, "the tag -1", job.send, 0, 0, ANY)
            self.refused(TypeError, "", job.send, 0, 0.5)

        self.at_each(program, (1, 3))

    def test_numbers_from_outside_are_recorded(self):
        def program(job):
            transport = job._transport()
            self.assertGreater(job.now(), 1.5e9)
            self.assertLess(job.random_seed(), 2**64)
            self.assertEqual(transport.choices, 2)

        self.at_each(program, (1,))


class Requests(Ranks):
    def test_requests_end_in_any_order(self):
        def program(job):
            ranks = range(job.ranks)
            into = elements([0])
            begun = [job.irecv(source, tag) for source in ranks for tag in (1, 2)]
            begun.append(job.irecv(job.rank, 3, into))
            for to in ranks:
                for tag in (2, 1):
                    self.assertIsNone(job.isend((job.rank, tag), to, tag).wait())
            self.assertTrue(job.isend(elements([5]), job.rank, 3).test())
            *pairs, last = reversed(job.wait_all(reversed(begun)))
            self.assertEqual(pairs, [(source, tag) for source in ranks for tag in (1, 2)])
            self.assertEqual((last is into, into[0]), (True, 5))
            self.assertEqual(begun[0].wait(), (0, 1))

        self.at_each(program)

    def check(self, wanted, tags, waited, expected):
        """Requests for these messages, among messages to itself with these tags: each gets its
        own, in whatever order they are waited for."""

        def program(job):
            begun = [job.irecv(*pattern) for pattern in wanted]
            for place, tag in enumerate(tags):
                job.send(place, job.rank, tag)
            for place in waited:
                self.assertEqual(begun[place].wait(), expected[place])

        self.at_each(program, (1,))

        def asking(job):
            begun = [job.irecv(*pattern) for pattern in wanted]
            self.assertFalse(any(it.test() for it in begun))
            for place, tag in enumerate(tags):
                job.send(place, job.rank, tag)
            self.assertTrue(all([begun[place].test() for place in waited]))
            self.assertEqual(job.wait_all(begun), expected)

        self.at_each(asking, (1,))

    def test_earlier_requests_get_earlier_messages(self):
        for waited in ((0, 1, 2), (2, 1, 0), (1, 2, 0), (2, 0, 1)):
            self.check([(0, 5)] * 3, [5, 5, 5], waited, [0, 1, 2])
            self.check([(ANY, ANY), (0, 5), (ANY, 5)], [7, 5, 5], waited, [0, 1, 2])
            self.check([(0, 5), (0, ANY), (0, 5)], [7, 5, 5], waited, [1, 0, 2])
            self.check([(ANY, 5), (0, ANY), (0, ANY)], [7, 5, 6], waited, [1, 0, 2])
            self.check([(0, 5), (0, 6), (0, ANY)], [7, 6, 5], waited, [2, 1, 0])

    def test_a_receive_leaves_earlier_requests_theirs(self):
        def program(job):
            into = elements([0, 0])
            begun = job.irecv(ANY, 5, into)
            job.send(elements([1, 2]), job.rank, 5)
            job.send("next", job.rank, 5)
            self.assertEqual(job.recv(tag=5), "next")
            self.assertIs(begun.wait(), into)
            self.assertEqual(into.tolist(), [1, 2])

        self.at_each(program, (1,))

    def test_an_order_that_cannot_be_kept_is_refused(self):
        def program(job):
            begun = job.irecv(0, ANY)
            job.send("a", 0, 5)
            job.send("b", 0, 5)
            text = "a receive of any tag from rank 0 was begun: wait for it before one of tag 5"
            self.refused(JobError, text, job.recv, ANY, 5)
            self.assertEqual((begun.wait(), job.recv(ANY, 5)), ("a", "b"))

        self.at_each(program, (1,))

    def test_a_receive_that_fails_is_over(self):
        def program(job):
            job.send("text", 0)
            self.refused(JobError, "a text was sent", job.recv, into=elements([1]))
            job.send("next", 0)
            self.assertEqual(job.recv(), "next")

        self.at_each(program, (1,))

    def test_a_message_that_is_looked_at_is_received_next(self):
        def program(job):
            for tag in (7, 5, 5):
                job.send((tag, job._transport().choices), 0, tag)
            found = job._look(ANY, 5)
            self.assertEqual((found.source, found.tag), (0, 5))
            self.refused(JobError, "was probed for: receive it in the same turn", job._all_received)
            self.refused(JobError, "receive it by its tag before", job.recv)
            self.assertTrue(job.probe(0, 5))
            self.assertEqual(job._look(0, 5), found)
            self.assertEqual([job.recv(0, 5)[0] for _ in range(2)] + [job.recv()[0]], [5, 5, 7])
            job._all_received()

        self.at_each(program, (1,))


@unittest.skipIf(np is None, "is without already")
class WithoutNumPy(unittest.TestCase):
    def test_all_of_this(self):
        code = "import sys, unittest; sys.modules['numpy'] = None; unittest.main(sys.argv[1])"
        for module in ("test_messages", "test_collectives", "test_mpi"):
            with self.subTest(module):
                path = os.pathsep.join([str(TESTS), *filter(None, sys.path)])
                command = [sys.executable, "-c", code.replace("sys.argv[1]", f"{module!r}")]
                environment = {**os.environ, "PYTHONPATH": path}
                ended = subprocess.run(command, env=environment, capture_output=True, text=True)
                self.assertEqual(ended.returncode, 0, ended.stderr)


if __name__ == "__main__":
    unittest.main()
