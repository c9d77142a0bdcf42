"""mpi4py's names that `steadfast_jobs.MPI` has, on ranks that are threads."""

import importlib
import unittest
from array import array

from steadfast_jobs import MPI, JobError
from test_collectives import Communicator
from test_messages import SIZES, Ranks, elements, np
from together import run

make = Communicator.make

# The tests of another file are not run again here.
del Communicator


class World(Ranks):
    def at_each(self, program, sizes=SIZES):
        for ranks in sizes:
            with self.subTest(ranks=ranks):
                run(ranks, program, make)

    def test_objects(self):
        def program(comm):
            self.assertEqual((comm.Get_rank(), comm.Get_size()), (comm.rank, comm.size))
            after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
            comm.send({"a": comm.rank}, dest=after, tag=11)
            self.assertEqual(comm.recv(source=before, tag=11), {"a": before})
            self.assertEqual(comm.sendrecv(comm.rank, after, source=before), before)
            status = MPI.Status()
            comm.isend("x" * 10, dest=after, tag=3).wait()
            found = comm.recv(source=MPI.ANY_SOURCE, tag=MPI.ANY_TAG, status=status)
            self.assertEqual((found, status.Get_source(), status.Get_tag()), ("x" * 10, before, 3))
            self.assertEqual((status.source, status.tag, status.Get_count()), (before, 3, 10))

        self.at_each(program)

    def test_requests(self):
        def program(comm):
            ranks = range(comm.size)
            begun = [comm.irecv(source=source, tag=1) for source in ranks]
            sent = [comm.isend(comm.rank, dest=to, tag=1) for to in ranks]
            statuses = []
            self.assertEqual(MPI.Request.waitall(begun, statuses), [*ranks])
            self.assertEqual([it.source for it in statuses], [*ranks])
            self.assertEqual(MPI.Request.waitall(sent), [None] * comm.size)
            begun = comm.irecv(source=comm.rank, tag=2)
            self.assertEqual(begun.test(), (False, None))
            comm.send("x", comm.rank, tag=2)
            self.assertEqual((begun.test(), begun.wait()), ((True, "x"), "x"))
            into = elements([0, 0])
            begun = comm.Irecv(into, source=comm.rank)
            self.assertFalse(begun.Test())
            sent = comm.Isend(elements([3, 4]), dest=comm.rank)
            self.assertTrue(MPI.Request.Waitall([begun, sent]) and begun.Wait() and begun.Test())
            self.assertEqual(into.tolist(), [3, 4])

        self.at_each(program)

    def test_probes(self):
        def program(comm):
            status = MPI.Status()
            self.assertFalse(comm.iprobe() or comm.Iprobe(status=status))
            comm.send(b"abc", comm.rank, tag=4)
            comm.Send(elements([1, 2]), comm.rank, tag=5)
            self.assertTrue(comm.iprobe(tag=5) and comm.iprobe(status=status))
            self.assertEqual((status.source, status.tag, status.count), (comm.rank, 4, 3))
            self.assertEqual(comm.recv(source=status.source, tag=status.tag), b"abc")
            self.assertTrue(comm.probe(status=status))
            self.assertEqual((status.tag, status.Get_count(MPI.DOUBLE)), (5, 2))
            self.assertEqual(status.Get_count(MPI.C_DOUBLE_COMPLEX), 1)
            self.assertEqual(comm.recv().tolist(), [1, 2])

        self.at_each(program)

    def test_buffers(self):
        def program(comm):
            after, before = (comm.rank + 1) % comm.size, (comm.rank - 1) % comm.size
            sent, into = elements([comm.rank, 2, 3]), elements([0] * 5)
            status = MPI.Status()
            for given in (sent, [sent, MPI.DOUBLE], [sent, 3, MPI.DOUBLE], (sent, 3)):
                comm.Send(given, dest=after, tag=7)
                comm.Recv([into, MPI.DOUBLE], source=before, tag=7, status=status)
                self.assertEqual(into.tolist(), [before, 2, 3, 0, 0])
                self.assertEqual((status.source, status.Get_count(MPI.DOUBLE)), (before, 3))
            comm.Send([sent, 2, MPI.DOUBLE], dest=after)
            comm.Recv(into, source=before, status=status)
            self.assertEqual(status.Get_count(MPI.DOUBLE), 2)
            comm.Sendrecv(sent, after, recvbuf=into, source=before)
            raw = bytearray(24)
            comm.Sendrecv([sent, MPI.BYTE], after, 1, [raw, MPI.BYTE], before, 1)
            self.assertEqual(raw, bytes(elements([before, 2, 3])))
            comm.Send(b"ab", comm.rank)
            comm.Recv(raw)
            self.assertEqual(raw[:2], b"ab")

        self.at_each(program)

    def test_buffers_that_do_not_fit(self):
        def program(comm):
            comm.Send(elements([1]), 0)
            text = 'an array "<f8 (1,)" of 8 bytes was sent, and the one to receive it'
            self.refused(JobError, text, comm.Recv, elements([1], "q"))
            self.refused(ValueError, "not in one piece", comm.Send, elements([1] * 4)[::2], 0)
            self.refused(ValueError, "4 elements, and not 5", comm.Send, [elements([1] * 4), 5], 0)
            self.refused(TypeError, "", comm.Send, [[1, 2]], 0)
            self.refused(AttributeError, "one count", comm.Send, [elements([1]), (1,), (0,)], 0)
            into = elements([1] * 4)
            self.refused(ValueError, "gets 2", comm.Allreduce, elements([1, 2]), into)
            self.refused(AttributeError, "reduce()", comm.Allreduce, into, into, MPI.MAXLOC)

        self.at_each(program, (1,))

    @unittest.skipIf(np is None, "needs NumPy")
    def test_buffers_in_the_order_of_columns(self):
        def program(comm):
            sent, into = np.arange(6.0).reshape(2, 3).T, np.empty((2, 3)).T
            comm.Sendrecv(sent, comm.rank, recvbuf=into)
            np.testing.assert_array_equal(sent, into)
            comm.Bcast(np.ones(2, "c16"), root=comm.rank)

        self.at_each(program, (1,))

    def test_bcast_and_reductions_of_buffers(self):
        def program(comm):
            ranks = range(comm.size)
            for root in ranks:
                into = elements([root, 5]) if comm.rank == root else elements([0, 0])
                comm.Bcast(into, root=root)
                self.assertEqual(into.tolist(), [root, 5])
                mine = elements([comm.rank, 1])
                result = [into, MPI.DOUBLE] if comm.rank == root else None
                comm.Reduce([mine, MPI.DOUBLE], result, op=MPI.SUM, root=root)
                expected = [sum(ranks), comm.size] if comm.rank == root else [root, 5]
                self.assertEqual(into.tolist(), expected)
                given = (MPI.IN_PLACE, mine) if comm.rank == root else (mine, None)
                comm.Reduce(*given, op=MPI.MAX, root=root)
                expected = comm.size - 1 if comm.rank == root else comm.rank
                self.assertEqual(mine[0], expected)
            mine, into = elements([comm.rank, 1], "q"), elements([0, 0], "q")
            comm.Allreduce(mine, into)
            self.assertEqual(into.tolist(), [sum(ranks), comm.size])
            comm.Allreduce(MPI.IN_PLACE, mine, op=MPI.PROD)
            self.assertEqual(mine.tolist(), [0, 1])

        self.at_each(program)

    def test_blocks_of_buffers(self):
        def program(comm):
            size, mine = comm.size, elements([comm.rank, 10 + comm.rank])
            whole = [it for rank in range(size) for it in (rank, 10 + rank)]
            for root in range(size):
                into = elements([0] * (2 * size)) if comm.rank == root else None
                comm.Gather(mine, into, root=root)
                if into is not None:
                    self.assertEqual(into.tolist(), whole)
                back = elements([0, 0])
                comm.Scatter(into, back, root=root)
                self.assertEqual(back.tolist(), mine.tolist())
            into = elements([0] * (2 * size))
            comm.Allgather(mine, into)
            self.assertEqual(into.tolist(), whole)
            into = elements([0] * (2 * size))
            into[2 * comm.rank] = comm.rank
            into[2 * comm.rank + 1] = 10 + comm.rank
            comm.Allgather(MPI.IN_PLACE, into)
            self.assertEqual(into.tolist(), whole)
            here = comm.rank == 0
            comm.Gather(MPI.IN_PLACE if here else mine, into if here else None)
            comm.Scatter(into if here else None, MPI.IN_PLACE if here else mine)
            self.assertEqual(into.tolist(), whole)
            self.assertEqual(mine.tolist(), [comm.rank, 10 + comm.rank])
            comm.Alltoall(MPI.IN_PLACE, into)
            self.assertEqual(into.tolist(), whole[2 * comm.rank :][:2] * size)
            sent = elements([100 * comm.rank + to for to in range(size)])
            into = elements([0] * size)
            comm.Alltoall(sent, into)
            self.assertEqual(into.tolist(), [100 * to + comm.rank for to in range(size)])
            if size > 1:
                odd = elements([0] * (size + 1))
                self.refused(ValueError, "cannot be divided", comm.Alltoall, odd, into)
            comm.Barrier()

        self.at_each(program)

    def test_operations(self):
        def program(comm):
            pairs = comm.allgather(((comm.rank * 7) % 3, comm.rank))
            mine = pairs[comm.rank]
            largest = max(pairs, key=lambda pair: (pair[0], -pair[1]))
            self.assertEqual(comm.allreduce(mine, op=MPI.MAXLOC), largest)
            self.assertEqual(comm.allreduce(mine, op=MPI.MINLOC), min(pairs))
            self.assertEqual(comm.allreduce(comm.rank + 1, op=MPI.MIN), 1)
            self.assertEqual(comm.allreduce(comm.rank, op=lambda a, b: max(a, b)), comm.size - 1)
            self.assertEqual((MPI.LAND(2, 0), MPI.BOR(1, 2), MPI.SUM(3, 4)), (False, 3, 7))

        self.at_each(program)

    def test_the_rank_that_is_none(self):
        def program(comm):
            status = MPI.Status()
            comm.send(1, MPI.PROC_NULL)
            comm.Send(elements([1]), MPI.PROC_NULL)
            self.assertIsNone(comm.recv(source=MPI.PROC_NULL, status=status))
            self.assertEqual((status.source, status.tag, status.count), (MPI.PROC_NULL, -1, 0))
            into = elements([5])
            comm.Recv(into, source=MPI.PROC_NULL)
            comm.Irecv(into, source=MPI.PROC_NULL).Wait()
            self.assertEqual(comm.irecv(source=MPI.PROC_NULL).test(), (True, None))
            self.assertTrue(comm.iprobe(MPI.PROC_NULL) and comm.probe(MPI.PROC_NULL))
            self.assertEqual(into[0], 5)

        self.at_each(program, (1,))


class Module(Ranks):
    def test_names_that_are_not_here_are_refused(self):
        text = "MPI.Win_create is not in steadfast_jobs.MPI: the page docs/jobs-messages.md lists"
        self.refused(AttributeError, text, getattr, MPI, "Win_create")
        self.refused(AttributeError, "COMM_WORLD.Split is not in", getattr, MPI.COMM_WORLD, "Split")
        self.refused(AttributeError, "use tags", getattr, MPI.COMM_WORLD, "Dup")
        self.assertFalse(hasattr(MPI, "__path__") or hasattr(MPI, "File"))

    def test_each_name_is_here(self):
        for name in MPI.__all__:
            self.assertTrue(hasattr(MPI, name), name)
        self.assertIs(importlib.import_module("steadfast_jobs.MPI"), MPI)
        self.assertEqual(MPI.LONG.Get_size(), array("l").itemsize)
        self.assertTrue(MPI.Is_initialized() and not MPI.Is_finalized())
        self.assertTrue(MPI.Get_processor_name())
        MPI.Init()
        MPI.Finalize()

    def test_a_communicator_of_oneself(self):
        comm = MPI.COMM_SELF
        self.assertEqual((comm.rank, comm.size), (0, 1))
        self.assertEqual((comm.allreduce(5), comm.gather("a"), comm.bcast(3)), (5, ["a"], 3))
        self.refused(AttributeError, "on COMM_WORLD", comm.send, 5, 0)
        comm.Barrier()
        self.assertIsInstance(comm, MPI.Intracomm)


if __name__ == "__main__":
    unittest.main()
