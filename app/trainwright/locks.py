"""Locks on files: they hold between processes, and end with the process that has them."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from trainwright.messages import UserError

SUFFIX = ".lock"
"""Of the file that is locked in place of another one, which is replaced while it is held."""
WAIT_S = 10.0
"""Longest wait for a lock; assumed: whoever has it only reads and writes one small file."""
_POLL_S = 0.02


def path_of(guarded: Path) -> Path:
    """Return the file whose lock guards another file."""
    return guarded.with_name(guarded.name + SUFFIX)


@contextmanager
def held(guarded: Path, wait_s: float = WAIT_S) -> Iterator[None]:
    """Keep others from a file while it is read, changed and written.

    Raises:
        OSError: the lock's file cannot be made.
        UserError: somebody else has the lock for longer than ``wait_s`` seconds.
    """
    guarded.parent.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + wait_s
    with path_of(guarded).open("a+b") as lock:
        while not take(lock):
            if time.monotonic() > end:
                raise UserError.of("saving.locked", file=str(guarded), seconds=wait_s)
            time.sleep(_POLL_S)
        yield


if sys.platform == "win32":
    import msvcrt

    def take(lock: IO[bytes]) -> bool:
        """Take the lock unless somebody has it; closing the file gives it back."""
        try:
            lock.seek(0)
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def take(lock: IO[bytes]) -> bool:
        """Take the lock unless somebody has it; closing the file gives it back."""
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True  # a file system without locks: everybody goes on as without them
        return True
