"""Messages among all ranks, as `job` and as a communicator have them."""

import math
import random
import unittest
from array import array

from steadfast_jobs._collectives import Collectives
from steadfast_jobs._mpi import Comm
from test_messages import SIZES, Ranks, elements, np
from together import Recorded, Repeated, run


class Together(Ranks):
    """The same programs by a job; below, by a communicator."""

    make = Collectives

    @staticmethod
    def size(job):
        return job.ranks

    def each(self, program):
        for ranks in (*SIZES, 8):
            with self.subTest(ranks=ranks):
                run(ranks, program, self.make)

    def test_bcast(self):
        def program(job):
            for root in range(self.size(job)):
                mine = job.rank == root
                value = job.bcast({"root": root} if mine else None, root)
                self.assertEqual(value, {"root": root})
                found = job.bcast(elements([root, 2]) if mine else None, root)
                self.assertEqual(found.tolist(), [root, 2])

        self.each(program)

    def test_values_are_joined_in_the_order_of_ranks(self):
        def program(job):
            ranks = [*range(self.size(job))]
            for root in ranks:
                found = job.reduce([job.rank], lambda a, b: a + b, root)
                self.assertEqual(found, ranks if job.rank == root else None)
            self.assertEqual(job.allreduce(str(job.rank)), "".join(map(str, ranks)))

        self.each(program)

    def test_arrays_are_joined_element_by_element(self):
        def program(job):
            ranks = [*range(self.size(job))]
            mine = elements([job.rank, 1, -job.rank])
            for found in (job.allreduce(mine), job.allreduce(array("d", mine.tolist()))):
                self.assertEqual(found.tolist(), [sum(ranks), len(ranks), -sum(ranks)])
            # Nothing that is sent is changed, and the result is nobody else's.
            self.assertEqual(mine.tolist(), [job.rank, 1, -job.rank])
            found[0] = 99
            self.assertEqual(mine[0], job.rank)
            root = ranks[-1]
            found = job.reduce(mine, root=root)
            self.assertEqual(found is None, job.rank != root)

        self.each(program)

    def test_sums_are_the_same_bit_by_bit(self):
        for ranks in SIZES:
            numbers = [random.Random(rank).uniform(-1e16, 1e16) for rank in range(ranks)]

            def program(job):
                mine = numbers[job.rank]
                found = {job.allreduce(mine), job.allreduce(elements([mine]))[0]}
                for root in range(self.size(job)):
                    found |= {job.bcast(job.reduce(mine, root=root), root)}
                return found

            first, *others = run(ranks, program, self.make)
            self.assertEqual(len(first), 1)
            self.assertTrue(all(other == first for other in others))
            self.assertAlmostEqual(first.pop(), math.fsum(numbers), delta=16)

    def test_gather_and_allgather(self):
        def program(job):
            ranks = range(self.size(job))
            for root in ranks:
                found = job.gather((job.rank, root), root)
                here = [(rank, root) for rank in ranks]
                self.assertEqual(found, here if job.rank == root else None)
            self.assertEqual(job.allgather({job.rank}), [{rank} for rank in ranks])
            mine = elements([job.rank])
            found = job.allgather(mine)
            mine[0] = 99
            self.assertEqual([it.tolist() for it in found], [[rank] for rank in ranks])

        self.each(program)

    def test_scatter_and_alltoall(self):
        def program(job):
            ranks = range(self.size(job))
            for root in ranks:
                values = [[root, rank] for rank in ranks] if job.rank == root else None
                found = job.scatter(values, root)
                self.assertEqual(found, [root, job.rank])
                self.assertFalse(values and found is values[job.rank])
            found = job.alltoall([(job.rank, to) for to in ranks])
            self.assertEqual(found, [(source, job.rank) for source in ranks])
            found = job.alltoall([elements([job.rank] * (to + 1)) for to in ranks])
            expected = [[source] * (job.rank + 1) for source in ranks]
            self.assertEqual([it.tolist() for it in found], expected)

        self.each(program)

    def test_values_that_are_not_one_for_each_rank(self):
        def program(job):
            ranks = self.size(job)
            text = f"{ranks + 1} values for {ranks} ranks: one for each is sent"
            self.refused(ValueError, text, job.scatter, [0] * (ranks + 1), job.rank)
            self.refused(ValueError, text, job.alltoall, [0] * (ranks + 1))
            self.refused(ValueError, "there is no rank", job.bcast, 0, ranks)

        self.each(program)

    def test_nobody_leaves_a_barrier_before_all_have_come(self):
        for ranks in (*SIZES, 8):
            here, left = [], []

            def program(job):
                for turn in range(5):
                    here.append(turn)
                    job.barrier()
                    left.append(here.count(turn))

            run(ranks, program, self.make)
            self.assertEqual({*left}, {ranks})


class Communicator(Together):
    """The small letters of mpi4py."""

    @staticmethod
    def make(transport):
        return Comm("COMM_WORLD", Collectives(transport))

    @staticmethod
    def size(job):
        return job.size


class Jobs(Ranks):
    def test_operations(self):
        def program(job):
            ranks = range(1, job.ranks + 1)
            mine = job.rank + 1
            expected = {
                "sum": sum(ranks),
                "prod": math.prod(ranks),
                "min": 1,
                "max": job.ranks,
                "land": True,
                "lor": True,
                "lxor": job.ranks % 2 == 1,
                "band": int(job.ranks == 1),
            }
            for op, result in expected.items():
                found = job.allreduce(mine, op)
                self.assertEqual(bool(found) if op[0] == "l" else found, result, op)
                found = job.allreduce(elements([mine, 1], "q"), op).tolist()[0]
                self.assertEqual(bool(found) if op[0] == "l" else found, result, op)
            text = "there is no operation 'avg': take a function of two values, or sum, prod"
            self.refused(ValueError, text, job.reduce, mine, "avg")

        self.at_each(program)

    def test_bcast_into_an_array(self):
        def program(job):
            for root in range(job.ranks):
                into = elements([0, 0])
                value = elements([1, root])
                found = job.bcast(value, root, into)
                self.assertIs(found, value if job.rank == root else into)
                self.assertEqual(found.tolist(), [1, root])

        self.at_each(program, (*SIZES, 8))

    def test_a_tree_has_as_few_messages_as_there_can_be(self):
        for ranks in (*SIZES, 8):
            run(ranks, lambda job: job.bcast(0))

            def program(job, ranks=ranks):
                job.bcast(b"x" * 100)
                return len(job._transport().sent)

            sent = run(ranks, program)
            self.assertEqual(sum(sent), ranks - 1)
            self.assertLessEqual(max(sent), math.ceil(math.log2(ranks)))

    def test_a_later_start_does_the_same(self):
        def program(job):
            turns = [job.now(), job.random_seed()]
            begun = [job.irecv(tag=3) for _ in range(job.ranks)]
            for to in range(job.ranks):
                job.send((job.rank, turns[0]), to, tag=3)
            while not begun[-1].test():
                turns.append("tested")
            turns += job.wait_all(begun)
            turns += [job.probe(), job.allreduce(job.rank), job.alltoall(turns[-1:] * job.ranks)]
            turns.append(job.reduce(job.rank / 7, root=job.ranks - 1))
            job.barrier()
            return turns, job._transport()

        for ranks in SIZES:
            for done, recorded in run(ranks, program, endpoint=Recorded):
                repeated = Repeated(recorded)
                self.assertEqual(program(Collectives(lambda it=repeated: it))[0], done)
                self.assertEqual([*repeated.record], [])

    @unittest.skipIf(np is None, "needs NumPy")
    def test_shapes_and_types_stay(self):
        def program(job):
            for sent in (np.ones((2, 3), "f4"), np.ones((), "i2"), np.ones((0, 3)), np.float32(1)):
                found = job.allreduce(sent)
                self.assertEqual((found.dtype, found.shape), (sent.dtype, sent.shape))
                self.assertTrue((found == sent * job.ranks).all())
            self.assertIs(type(found), np.float32)

        self.at_each(program)


if __name__ == "__main__":
    unittest.main()
