"""Starts a program with limits set before any of its code runs, and ends what it leaves.

    python launch.py PROGRAM.py

The limits come as variables ``TRAINWRIGHT_LIMIT_<NAME>`` with the names of ``RLIMIT_*``. They
keep a mistake from taking the machine down; they are not a sandbox. With
``TRAINWRIGHT_LIMITS_REQUIRED`` the program is refused where one of them cannot be set. On
Windows the parent holds the child in a job object instead.

On Linux the program runs in a child of this process and in a session of its own. What it
starts and deserts becomes a child of this process, which ends all of it: when the program
ends, when this process is asked to end (SIGTERM), and when the one that started it dies.
"""

import contextlib
import ctypes
import json
import os
import runpy
import signal
import sys
from typing import Any, NoReturn

PREFIX = "TRAINWRIGHT_LIMIT_"
REQUIRED = "TRAINWRIGHT_LIMITS_REQUIRED"
DEATH_SIGNAL, ADOPT = 1, 36
"""PR_SET_PDEATHSIG and PR_SET_CHILD_SUBREAPER of ``linux/prctl.h``."""
FIRST_TO_DIE = "1000"
"""Highest ``oom_score_adj`` (proc(5)): short of memory, Linux ends this before the desktop."""


def set_limits() -> str | None:
    """Lower this process's limits to those in its variables; return one that cannot be set."""
    if sys.platform == "win32":
        return None
    import resource

    refused = None
    for name, value in sorted(os.environ.items()):
        kind = getattr(resource, f"RLIMIT_{name.removeprefix(PREFIX)}", None)
        if not name.startswith(PREFIX) or kind is None:
            continue
        _, hard = resource.getrlimit(kind)
        limit = int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard)
        try:
            resource.setrlimit(kind, (limit, limit))
        except (ValueError, OSError):  # macOS has RLIMIT_AS by name only
            refused = name.removeprefix(PREFIX)
    return refused


class _Asked(Exception):  # noqa: N818
    """This process was asked to end."""


def _signal(processes: set[int], what: int) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(process, what)


def _descendants(ancestor: int) -> set[int]:
    """Return the living processes that descend from one."""
    children: dict[int, list[int]] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open(f"/proc/{name}/stat", "rb") as file:
            state, parent = file.read().rpartition(b")")[2].split()[:2]
            if state != b"Z":
                children.setdefault(int(parent), []).append(int(name))
    found: set[int] = set()
    new = children.get(ancestor, [])
    while new:
        found.update(new)
        new = [child for process in new for child in children.get(process, [])]
    return found


if sys.platform != "win32":

    def guard() -> None:
        """Fork and return in the child; this process waits for it and ends what it leaves."""
        control = ctypes.CDLL(None).prctl
        control(ADOPT, 1)
        control(DEATH_SIGNAL, signal.SIGTERM)
        program = os.fork()
        if not program:
            control(DEATH_SIGNAL, signal.SIGKILL)
            os.setsid()
            with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
                file.write(FIRST_TO_DIE)
            return
        status = _wait(program)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _end(os.getpid())
        _exit_alike(status)

    def _wait(program: int) -> int:
        """Return the program's status, or that of an ended one when asked to end."""

        def asked(*_: Any) -> NoReturn:
            raise _Asked

        try:
            signal.signal(signal.SIGTERM, asked)
            while True:
                pid, status = os.wait()  # deserted processes are reaped on the way
                if pid == program:
                    return status
        except _Asked:
            return int(signal.SIGKILL)

    def _end(ancestor: int) -> None:
        """End all descendants: they are halted first, so that none starts another meanwhile."""
        halted: set[int] = set()
        while found := _descendants(ancestor) - halted:
            _signal(found, signal.SIGSTOP)
            halted |= found
        _signal(halted, signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()

    def _exit_alike(status: int) -> NoReturn:
        """End as the program did."""
        if os.WIFSIGNALED(status):
            ending = os.WTERMSIG(status)
            if ending not in (signal.SIGKILL, signal.SIGSTOP):
                signal.signal(ending, signal.SIG_DFL)
            os.kill(os.getpid(), ending)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def main() -> None:
    """Set the limits, stand guard, and become the program."""
    refused = set_limits()
    if refused is not None and REQUIRED in os.environ:
        print(json.dumps({"error": {"id": "worker.no-limits", "values": {"limit": refused}}}))
        return
    if sys.platform == "linux":
        guard()
    program = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
