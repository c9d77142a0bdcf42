"""The protocol needs no library: a rank and an agent by the standard library alone."""

import pathlib
import struct
import sys
import unittest

from agent import Agent

BARE = pathlib.Path(__file__).parents[3] / "examples/jobs/bare.py"


class Bare(unittest.TestCase):
    def test_a_rank_that_is_killed_delivers_what_an_undisturbed_one_does(self):
        for kill_after in (None, 2, 5):
            with self.subTest(kill_after=kill_after):
                with Agent([sys.executable, BARE, "25"]) as agent:
                    results = agent.until_finished(kill_after)
                total = sum(turn * turn for turn in range(25))
                self.assertEqual(results, {"sum": ("<u8", struct.pack("<Q", total))})
                self.assertEqual(agent.starts == 1, kill_after is None)


if __name__ == "__main__":
    unittest.main()
