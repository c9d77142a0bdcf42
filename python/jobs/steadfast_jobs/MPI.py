"""mpi4py's names over messages that survive the process.

    from steadfast_jobs import MPI    # before: from mpi4py import MPI

    comm = MPI.COMM_WORLD
    total = comm.allreduce(comm.rank)

The page docs/jobs-messages.md lists what is here. All else is refused by its name.
"""

import socket
import struct
from typing import Any

from ._collectives import Collectives
from ._job import job
from ._mpi import (
    ANY_SOURCE,
    ANY_TAG,
    BYTE,
    PROC_NULL,
    SUM,
    UNDEFINED,
    Alone,
    Comm,
    Request,
    Status,
)
from ._mpi_types import IN_PLACE, Datatype, Op, better_of, refused

# fmt: off
__all__ = [
    "ANY_SOURCE", "ANY_TAG", "BAND", "BOOL", "BOR", "BXOR", "BYTE", "CHAR", "COMM_SELF",
    "COMM_WORLD", "COMPLEX", "C_BOOL", "C_DOUBLE_COMPLEX", "C_FLOAT_COMPLEX", "Comm", "DOUBLE",
    "DOUBLE_COMPLEX", "Datatype", "FLOAT", "Finalize", "Get_processor_name", "INT", "INT16_T",
    "INT32_T", "INT64_T", "INT8_T", "IN_PLACE", "Init", "Intracomm", "Is_finalized",
    "Is_initialized", "LAND", "LONG", "LONG_LONG", "LOR", "LXOR", "MAX", "MAXLOC", "MIN",
    "MINLOC", "Op", "PROC_NULL", "PROD", "Request", "SHORT", "SIGNED_CHAR", "SUM", "Status",
    "UINT16_T", "UINT32_T", "UINT64_T", "UINT8_T", "UNDEFINED", "UNSIGNED", "UNSIGNED_CHAR",
    "UNSIGNED_LONG", "UNSIGNED_LONG_LONG", "UNSIGNED_SHORT", "Wtime",
]
# fmt: on

_LONG = struct.calcsize("l")

CHAR = Datatype("CHAR", "i1")
SIGNED_CHAR = Datatype("SIGNED_CHAR", "i1")
UNSIGNED_CHAR = Datatype("UNSIGNED_CHAR", "u1")
SHORT = Datatype("SHORT", "i2")
UNSIGNED_SHORT = Datatype("UNSIGNED_SHORT", "u2")
INT = Datatype("INT", "i4")
UNSIGNED = Datatype("UNSIGNED", "u4")
LONG = Datatype("LONG", f"i{_LONG}")
UNSIGNED_LONG = Datatype("UNSIGNED_LONG", f"u{_LONG}")
LONG_LONG = Datatype("LONG_LONG", "i8")
UNSIGNED_LONG_LONG = Datatype("UNSIGNED_LONG_LONG", "u8")
INT8_T, UINT8_T = Datatype("INT8_T", "i1"), Datatype("UINT8_T", "u1")
INT16_T, UINT16_T = Datatype("INT16_T", "i2"), Datatype("UINT16_T", "u2")
INT32_T, UINT32_T = Datatype("INT32_T", "i4"), Datatype("UINT32_T", "u4")
INT64_T, UINT64_T = Datatype("INT64_T", "i8"), Datatype("UINT64_T", "u8")
FLOAT = Datatype("FLOAT", "f4")
DOUBLE = Datatype("DOUBLE", "f8")
COMPLEX = C_FLOAT_COMPLEX = Datatype("C_FLOAT_COMPLEX", "c8")
DOUBLE_COMPLEX = C_DOUBLE_COMPLEX = Datatype("C_DOUBLE_COMPLEX", "c16")
BOOL = C_BOOL = Datatype("C_BOOL", "b1")

PROD = Op("PROD", "prod")
MIN = Op("MIN", "min")
MAX = Op("MAX", "max")
LAND = Op("LAND", "land")
LOR = Op("LOR", "lor")
LXOR = Op("LXOR", "lxor")
BAND = Op("BAND", "band")
BOR = Op("BOR", "bor")
BXOR = Op("BXOR", "bxor")
MINLOC = Op("MINLOC", better_of(lambda a, b: bool(a < b)))
MAXLOC = Op("MAXLOC", better_of(lambda a, b: bool(a > b)))

COMM_WORLD = Comm("COMM_WORLD", job)
COMM_SELF = Comm("COMM_SELF", Collectives(Alone))
Intracomm = Comm


def Wtime() -> float:
    """Seconds since 1970, recorded as `job.now()`."""
    return job.now()


def Get_processor_name() -> str:
    """The name of this host. A rank that starts again may run on another one."""
    return socket.gethostname()


def Init() -> None:
    """The first use of the communicator finds the agent."""


def Is_initialized() -> bool:
    return True


def Finalize() -> None:
    """The job ends with the process."""


def Is_finalized() -> bool:
    return False


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    raise refused(f"MPI.{name}")
