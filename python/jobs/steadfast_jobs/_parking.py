"""A process that waits with a program's imports done, and forks ranks that start again.

The agent starts it beside the ranks: the program's interpreter, options and arguments, with this
module instead of the script. It imports what the script imports before it does anything else, and
forks where it is asked to; the fork runs the script from its first line. So nothing of the script
is done before there is a rank for it, and the script cannot tell the two ways to start apart: but
for the modules that are there already. io/agent/src/warm.rs has what goes over the socket.

Only installed packages are imported beforehand, and in the script's order. What else a script does
at its top, such as setting a variable that a package reads, ends the list: it comes first there.
"""

import ast
import contextlib
import io
import os
import select
import signal
import socket
import sys
import sysconfig
from collections.abc import Iterator
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec

from . import _native
from ._job import job

# Imports that take longer are of no use to anybody: the agent has given up by then.
_PATIENCE = 60

# Bytes of a request, and files that come with one: standard output and error, and the status.
_REQUEST, _FILES = 64 << 10, 3
_CLOSED = socket.MSG_CMSG_CLOEXEC

# Letters of a reason.
_WHY = 200

_PACKAGE = __name__.partition(".")[0]

# What NumPy and this package import as late as they need it: modules that only define something.
_LATER = ("numpy.fft", "numpy.random", f"{_PACKAGE}._arrays")


def main() -> None:
    """Runs the script, in a fork. The process itself ends here."""
    channel = socket.socket(fileno=os.dup(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    # An import may hang, and the agent may be gone: no other process ends this one.
    signal.alarm(_PATIENCE)
    script = _become(sys.argv[1])
    why = _prepare(script)
    signal.alarm(0)
    channel.send(f"no: {why}"[:_WHY].encode() if why else b"ready")
    if why or not _serve(channel):
        # Without what its imports have registered for the end: they did not work for anybody.
        os._exit(0)
    _run(script)


def _become(script: str) -> str:
    """Has all that Python sets up for a script: the path that its main module is known by."""
    parked = sys.argv.pop(0)
    place = sys.orig_argv.index(parked)
    del sys.orig_argv[place : place + 2]
    path = os.path.join(os.getcwd(), script)
    if not sys.flags.safe_path:
        sys.path.insert(0, os.path.dirname(os.path.realpath(path)))
    names = sys.modules["__main__"].__dict__
    names.update(__file__=path, __cached__=None, __loader__=SourceFileLoader("__main__", path))
    return path


def _prepare(script: str) -> str | None:
    """Imports what the script does: why the process cannot be forked then, or nothing."""
    before = _descriptors()
    try:
        for name, parts in _imports(script, set()):
            __import__(name, fromlist=parts)
        for name in _LATER if "numpy" in sys.modules else ():
            __import__(name)
    except BaseException as error:
        return f"an import has failed: {error!r}"
    _native.flush()
    if sys.stderr:
        sys.stderr.flush()
    if any(os.fstat(stream).st_size for stream in (1, 2)):
        return "an import prints"
    if len(os.listdir("/proc/self/task")) > 1:
        return "an import starts threads"
    if not sys.flags.safe_path and (hidden := _hidden(sys.path[0])):
        return f"the program's own {hidden!r} has the name of a module that is imported"
    if job._connected:
        return "an import uses the job"
    if _descriptors() - before:
        return "an import opens files"
    return None


def _imports(path: str, seen: set[str]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What a file imports before it does anything else: modules, and what it takes of each."""
    seen.add(path)
    with io.open_code(path) as file:
        body = ast.parse(file.read(), path).body
    for statement in body:
        match statement:
            case ast.Import(names):
                wanted: list[tuple[str, tuple[str, ...]]] = [(it.name, ()) for it in names]
            case ast.ImportFrom(str(module), names, 0):
                wanted = [(module, tuple(it.name for it in names))]
            case ast.Expr(ast.Constant()):
                continue
            case _:
                return
        for name, parts in wanted:
            own = _own(name.partition(".")[0])
            if own is None:
                yield name, parts
                continue
            # A module of the program's own may do anything: that is for the fork.
            if own.endswith(".py") and own not in seen:
                yield from _imports(own, seen)
            return


def _own(name: str) -> str | None:
    """The file of a module that is part of the program; None: it is installed."""
    if name == _PACKAGE or name in sys.builtin_module_names:
        return None
    try:
        spec = find_spec(name)
    except ValueError:
        # A module that came by no import, such as __main__.
        return ""
    if spec is None or not spec.origin:
        return ""
    if spec.origin == "frozen":
        return None
    folder = os.path.dirname(spec.origin)
    if spec.submodule_search_locations is not None:
        folder = os.path.dirname(folder)
    if folder == sys.path[0] and not sys.flags.safe_path:
        return spec.origin
    standard = folder in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    dynamic = os.path.basename(folder) == "lib-dynload"
    packages = os.path.basename(folder) in {"site-packages", "dist-packages"}
    return None if standard or dynamic or packages else spec.origin


def _hidden(folder: str) -> str | None:
    """A module beside the script of whose name there is one: it may be the wrong one."""
    for entry in os.scandir(folder):
        name, _, suffix = entry.name.partition(".")
        package = entry.is_dir() and os.path.exists(os.path.join(entry.path, "__init__.py"))
        module = suffix == "py" or suffix.endswith("so")
        if (package or module) and name in sys.modules and name != _PACKAGE:
            return name
    return None


def _descriptors() -> set[str]:
    # One of them is the list's own, and is closed by now.
    return {name for name in os.listdir("/proc/self/fd") if os.path.exists(f"/proc/self/fd/{name}")}


def _serve(channel: socket.socket) -> bool:
    """Forks when it is asked to: true, in the fork. False: nobody asks any more."""
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    # By a descriptor that tells its end: a rank's process, and where its status is told.
    ranks: dict[int, tuple[int, int]] = {}
    asked = True
    while asked or ranks:
        for ready, _ in poll.poll():
            if ready in ranks:
                pid, status = ranks.pop(ready)
                poll.unregister(ready)
                poll.unregister(status)
                _tell(pid, status)
                os.close(ready)
            elif ready != channel.fileno():
                # Nobody reads a status any more: the agent was killed.
                return False
            elif not (request := socket.recv_fds(channel, _REQUEST, _FILES, _CLOSED))[0]:
                asked = False
                poll.unregister(channel)
            elif pid := _fork(request[0], *request[1]):
                status, ended = request[1][2], os.pidfd_open(pid)
                ranks[ended] = pid, status
                poll.register(ended, select.POLLIN)
                # With no event: an error is always told.
                poll.register(status, 0)
            else:
                # What is the parent's is not the rank's.
                for ended, (_, status) in ranks.items():
                    os.close(ended)
                    os.close(status)
                channel.close()
                return True
    return False


def _fork(request: bytes, output: int, errors: int, status: int) -> int:
    """Forks a rank: its process; 0, in the fork."""
    waits, goes = os.pipe()
    pid = os.fork()
    if pid:
        # It may not have done so yet, and whoever knows it may end its group.
        os.setpgid(pid, pid)
        os.write(status, b"%d\n" % pid)
        os.write(goes, b"\n")
        for used in (waits, goes, output, errors):
            os.close(used)
        return pid
    os.setpgid(0, 0)
    os.close(goes)
    if not os.read(waits, 1):
        # The parent was ended before the agent knew of this one: it is none.
        os._exit(1)
    os.dup2(output, 1)
    os.dup2(errors, 2)
    for used in (waits, output, errors, status):
        os.close(used)
    for variable in request.split(b"\0"):
        name, _, value = variable.partition(b"=")
        os.environb[name] = value
    if random := sys.modules.get("numpy.random"):
        # Unlike `random`, it does not know of forks: all would draw the same numbers.
        random.seed()
    return 0


def _tell(pid: int, status: int) -> None:
    _, how = os.waitpid(pid, 0)
    with contextlib.suppress(OSError):
        os.write(status, b"%d\n" % how)
    os.close(status)


def _run(path: str) -> None:
    names = sys.modules["__main__"].__dict__
    try:
        with io.open_code(path) as file:
            code = compile(file.read(), path, "exec", dont_inherit=True)
        exec(code, names)
    except (SystemExit, KeyboardInterrupt):
        raise
    except BaseException as error:
        # As everywhere, what is told of it begins with the script's own line.
        own = error.__traceback__ and error.__traceback__.tb_next
        sys.excepthook(type(error), error.with_traceback(own), own)
        sys.exit(1)
