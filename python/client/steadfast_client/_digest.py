"""Digests of states, which replicas compare."""

import os
import struct
import sys
import zlib
from typing import List, Tuple

_COUNTS = struct.Struct("<256Q")


def digest_of_bytes(state: bytes) -> int:
    """FNV-1a of how often each byte is there: snapshot() may write a set in any order."""
    return _hash(_COUNTS.pack(*(state.count(byte) for byte in range(256))))


def form_of_program() -> int:
    """A word for the loaded modules: others may write the same state otherwise."""
    told: List[Tuple[str, int]] = []
    for name, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if not isinstance(file, str) or not os.path.isfile(file):
            continue
        if file.startswith((sys.prefix, sys.base_prefix)):
            told.append((name, os.path.getsize(file)))
        else:
            with open(file, "rb") as opened:
                told.append((name, zlib.crc32(opened.read())))
    return _hash(repr(told).encode())


def _hash(words: bytes) -> int:
    value = 0xCBF29CE484222325
    for byte in words:
        value = (value ^ byte) * 0x100000001B3 % 2**64
    return value
