"""The counter of examples/attach, with a state that it cannot read, cannot give, or reads in part.

    tried.py FOLDER HOW      FOLDER has counter.py; HOW is well, strict, mute, drops, or dies
"""

import os
import struct
import sys

sys.path.insert(0, sys.argv[1])
import counter  # noqa: E402

HOW = sys.argv[2]
NOTICE = 128


class Replica(counter.Replica):
    def take_state(self, body):
        if HOW == "strict":
            reason = b"not a state of this service: missing field `credit`"
            return self.send(counter.FAILED, body[:8] + reason)
        super().take_state(body)
        if HOW == "drops":
            self.send(NOTICE, struct.pack("<B7x", 3) + b"`credit`")

    def give_state(self, number):
        if HOW == "mute":
            return self.send(counter.FAILED, struct.pack("<Q", number) + b"surrogates not allowed")
        super().give_state(number)


if HOW == "dies":
    sys.exit("error: the state of this service has an attribute that no state may have")
if "LOG" in os.environ:
    with open(os.environ["LOG"], "a") as log:
        print(HOW, os.environ.get("STEADFAST_TRIAL", "serves"), file=log)
counter.Replica = Replica
counter.main()
