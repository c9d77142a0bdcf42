#!/usr/bin/env python3
"""Registers and logs, as the black box calls them: replicas in Python under faults of their nodes.

    steadfast-lab blackbox --faults 20 -- python3 python/client/tests/objects.py
"""

from typing import Dict, List, Optional

from steadfast_client import read, service

Fields = Optional[Dict[str, int]]


@service
class Objects:
    registers: Dict[int, int]
    logs: Dict[int, List[int]]

    def __init__(self):
        self.registers, self.logs, self.forgotten = {}, {}, 0

    def ask(
        self, Write: Fields = None, Swap: Fields = None, Append: Fields = None, Forget: Fields = None
    ) -> List[int]:
        if Forget:
            self.forgotten = max(self.forgotten, Forget["below"])
            for kept in (self.registers, self.logs):
                for key in [key for key in kept if key < self.forgotten]:
                    del kept[key]
            return []
        key = (Write or Swap or Append)["key"]
        if Append:
            log = self.logs.setdefault(key, []) if key >= self.forgotten else []
            log.append(Append["entry"])
            return [len(log)]
        held = self.registers.get(key, 0)
        if key >= self.forgotten and (Write or held == Swap["old"]):
            self.registers[key] = Write["value"] if Write else Swap["new"]
        return [] if Write else [held]

    @read
    def look(self, Read: Fields = None, Entries: Fields = None) -> List[int]:
        return [self.registers.get(Read["key"], 0)] if Read else self.logs.get(Entries["key"], [])


if __name__ == "__main__":
    Objects.serve()
