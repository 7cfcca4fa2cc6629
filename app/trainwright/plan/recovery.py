"""Copies of unsaved plans, kept while the program runs and offered again after a crash."""

import json
import os
import secrets
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path

from platformdirs import user_state_path

from trainwright import saving
from trainwright.messages import UserError
from trainwright.plan import file
from trainwright.plan.schema import Plan

_ORIGIN = "# origin: "
_LOCK = ".lock"


def folder() -> Path:
    """Return where the copies lie."""
    state = os.environ.get("TRAINWRIGHT_STATE")
    root = Path(state) if state else user_state_path("trainwright", appauthor=False)
    return root / "recovery"


@dataclass(frozen=True, slots=True)
class Recovered:
    """A plan that was never saved."""

    plan: Plan
    origin: Path | None
    """File that it was opened from; None where it had none yet."""
    kept_at: float
    """Seconds since the epoch."""
    copy: Path

    def discard(self) -> None:
        """Remove the copy for good."""
        _remove(self.copy)


class Autosave:
    """The copy of one open document; it is locked, so that other windows do not offer it."""

    def __init__(self, where: Path | None = None) -> None:
        """Open a place for the copy; where none can be had, keeping does nothing."""
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}{file.SUFFIX}"
        self._copy = (where or folder()) / name
        self._lock: BufferedRandom | None = None

    def keep(self, plan: Plan, origin: Path | None) -> bool:
        """Write the copy; return whether it could be written."""
        text = file.text_of(plan)
        if origin is not None:
            text = f"{_ORIGIN}{json.dumps(str(origin.absolute()))}\n{text}"
        try:
            self._copy.parent.mkdir(parents=True, exist_ok=True)
            if self._lock is None:
                self._lock = _lock_path(self._copy).open("w+b")
                _try_lock(self._lock)
            saving.replace(self._copy, text.encode())
        except (OSError, UserError):
            return False
        return True

    def clear(self) -> None:
        """Remove the copy: the document has been saved or closed on purpose."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        _remove(self._copy)


def offered(where: Path | None = None) -> tuple[Recovered, ...]:
    """Return the copies that no running program holds, newest first.

    A copy that can no longer be read is passed over and left alone.
    """
    found: list[Recovered] = []
    for path in (where or folder()).glob(f"*{file.SUFFIX}"):
        if _held(path):
            continue
        with suppress(UserError, OSError, ValueError):
            found.append(Recovered(file.read(path), _origin(path), path.stat().st_mtime, path))
    return tuple(sorted(found, key=lambda one: one.kept_at, reverse=True))


def _origin(path: Path) -> Path | None:
    with path.open(encoding="utf-8") as lines:
        first = lines.readline().rstrip("\n")
    if not first.startswith(_ORIGIN):
        return None
    return Path(json.loads(first.removeprefix(_ORIGIN)))


def _lock_path(copy: Path) -> Path:
    return copy.with_name(copy.name + _LOCK)


def _remove(copy: Path) -> None:
    for path in (copy, _lock_path(copy)):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _held(copy: Path) -> bool:
    """Return whether a running program holds the copy's lock."""
    try:
        with _lock_path(copy).open("r+b") as lock:
            return not _try_lock(lock)
    except OSError:
        return False


if sys.platform == "win32":
    import msvcrt

    def _try_lock(lock: BufferedRandom) -> bool:
        """Take the lock unless somebody has it; closing the file gives it back."""
        try:
            msvcrt.locking(lock.fileno(), msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(lock: BufferedRandom) -> bool:
        """Take the lock unless somebody has it; closing the file gives it back."""
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True
