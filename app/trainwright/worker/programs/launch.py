"""Starts a program with limits set before any of its code runs.

    python launch.py PROGRAM.py

The limits come as variables ``TRAINWRIGHT_LIMIT_<NAME>`` with the names of ``RLIMIT_*``. They
keep an honest mistake from taking the machine down; they are no sandbox. On Windows the
parent holds the child in a job object instead.
"""

import contextlib
import os
import runpy
import sys

PREFIX = "TRAINWRIGHT_LIMIT_"
DEATH_SIGNAL = 1
"""PR_SET_PDEATHSIG of ``linux/prctl.h``."""


def set_limits() -> None:
    """Lower this process's limits to those in its variables, where the system has them."""
    try:
        import resource
    except ImportError:  # Windows
        return
    for name, value in os.environ.items():
        kind = getattr(resource, f"RLIMIT_{name.removeprefix(PREFIX)}", None)
        if not name.startswith(PREFIX) or kind is None:
            continue
        _, hard = resource.getrlimit(kind)
        limit = int(value) if hard == resource.RLIM_INFINITY else min(int(value), hard)
        with contextlib.suppress(ValueError, OSError):  # macOS has RLIMIT_AS by name only
            resource.setrlimit(kind, (limit, limit))


def die_with_parent() -> None:
    """Ask Linux to end this process when the one that started it dies."""
    if sys.platform == "linux":
        import ctypes
        import signal

        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(DEATH_SIGNAL, signal.SIGKILL)


if __name__ == "__main__":
    die_with_parent()
    set_limits()
    program = sys.argv[1]
    sys.argv = sys.argv[1:]
    sys.path[0] = os.path.dirname(os.path.abspath(program))
    runpy.run_path(program, run_name="__main__")
