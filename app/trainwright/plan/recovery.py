"""Copies of unsaved documents, kept while the program runs and offered again after a crash."""

import json
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from io import BufferedRandom
from pathlib import Path
from typing import Generic, Self, TypeVar

from platformdirs import user_state_path

from trainwright import locks, saving
from trainwright.messages import Message, UserError
from trainwright.yamltext import MAX_BYTES

_ORIGIN = "# origin: "
_LITTER_S = 3600.0
"""Age from which a file that a killed program left half-made is removed; assumed."""
_LEFT_ALONE = ("plan.newer", "mig.newer", "reading.unreadable", "reading.not-found")
"""Refusals of copies that may be whole: of a later version, or not ours to read."""

T = TypeVar("T")


def folder() -> Path:
    """Return where the copies lie."""
    state = os.environ.get("TRAINWRIGHT_STATE")
    root = Path(state) if state else user_state_path("trainwright", appauthor=False)
    return root / "recovery"


@dataclass(frozen=True, slots=True)
class Origin:
    """The file that a document was opened from."""

    path: Path
    digest: str
    """``saving.digest`` of the file as the document knew it."""


@dataclass(frozen=True, slots=True)
class Recovered(Generic[T]):
    """A document that was never saved."""

    document: T
    origin: Origin | None
    """None where it had no file yet."""
    kept_at: float
    """Seconds since the epoch."""
    copy: Path

    def discard(self) -> None:
        """Remove the copy for good."""
        _remove(self.copy)


@dataclass(frozen=True, slots=True)
class Offered(Generic[T]):
    """What earlier programs left."""

    found: tuple[Recovered[T], ...]
    """Newest first."""
    notes: tuple[Message, ...]
    """What is wrong with copies that cannot be offered."""


class Autosave:
    """The copy of one open document; it is locked, so that other windows do not offer it."""

    def __init__(self, suffix: str, where: Path | None = None) -> None:
        """Open a place for the copy; nothing is written before the first ``keep``."""
        name = f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(4)}{suffix}"
        self._copy = (where or folder()) / name
        self._lock: BufferedRandom | None = None

    @classmethod
    def adopting(cls, recovered: Recovered[T]) -> Self | None:
        """Go on with the copy of a document that is restored; None where another window does."""
        found = cls("")
        found._copy = recovered.copy
        try:
            return found if found._locked() else None
        except OSError:
            return None

    def keep(self, text: str, origin: Origin | None) -> None:
        """Replace the copy in one step.

        It outlives the program from here on, and a power failure from ``sync`` on. Few calls, and
        no wait for the drive: next to a busy window each call waits for its turn.

        Raises:
            UserError: it cannot be written.
        """
        if origin is not None:
            head = json.dumps([str(origin.path.absolute()), origin.digest])
            text = f"{_ORIGIN}{head}\n{text}"
        try:
            self._locked()
            new = self._copy.with_name(f".{self._copy.name}.saving")
            new.write_bytes(text.encode())
            os.replace(new, self._copy)
        except (OSError, ValueError) as error:
            where, reason = str(self._copy.parent), saving.reason(error)
            raise UserError.of("recovery.unwritable", folder=where, reason=reason) from None

    def sync(self) -> None:
        """Wait until the copy is on the drive."""
        with suppress(OSError), self._copy.open("rb+") as file:  # it may be gone: saved
            os.fsync(file.fileno())

    def release(self) -> None:
        """Leave the copy to whoever asks for it next."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def clear(self) -> None:
        """Remove the copy: the document has been saved, or discarded on purpose."""
        self.release()
        _remove(self._copy)

    def _locked(self) -> bool:
        if self._lock is None:
            self._copy.parent.mkdir(parents=True, exist_ok=True)
            lock = locks.path_of(self._copy).open("a+b")
            if not locks.take(lock):
                lock.close()
                return False
            self._lock = lock
        return True


def offered(suffix: str, read: Callable[[Path], T], where: Path | None = None) -> Offered[T]:
    """Return the copies that no running program holds.

    One that cannot be read is renamed, so that it hides no other and is not lost. What is not a
    regular file of a document's size is not ours.
    """
    place = where or folder()
    found: list[Recovered[T]] = []
    notes: list[Message] = []
    for path in _copies(place, suffix):
        try:
            found.append(Recovered(read(path), _origin(path), path.stat().st_mtime, path))
        except UserError as error:
            notes.append(error.message if error.message.id in _LEFT_ALONE else _set_aside(path))
        except (OSError, ValueError, TypeError, RecursionError):  # of the line with the origin
            notes.append(_set_aside(path))
    _sweep(place)
    return Offered(tuple(sorted(found, key=lambda one: one.kept_at, reverse=True)), tuple(notes))


def _copies(place: Path, suffix: str) -> Iterator[Path]:
    for path in sorted(place.glob(f"[!.]*{suffix}")):
        with suppress(OSError):
            status = path.lstat()  # nothing is opened before: a pipe would never end
            sized = status.st_size <= MAX_BYTES
            if stat.S_ISREG(status.st_mode) and sized and not _held(path):
                yield path


def _origin(path: Path) -> Origin | None:
    with path.open(encoding="utf-8") as lines:
        first = lines.readline().rstrip("\n")
    if not first.startswith(_ORIGIN):
        return None
    name, digest = json.loads(first.removeprefix(_ORIGIN))
    return Origin(Path(name), str(digest))


def _set_aside(path: Path) -> Message:
    try:
        aside = saving.set_aside(path)
    except OSError as error:
        where, reason = str(path.parent), saving.reason(error)
        return Message.of("recovery.unwritable", folder=where, reason=reason)
    _remove(path)
    return Message.of("recovery.damaged", aside=str(aside))


def _remove(copy: Path) -> None:
    for path in (copy, locks.path_of(copy)):
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _held(copy: Path) -> bool:
    """Return whether a running program holds the copy's lock."""
    lock = locks.path_of(copy)
    if not lock.is_file():
        return False
    with lock.open("r+b") as file:
        return not locks.take(file)


def _sweep(place: Path) -> None:
    """Remove what killed programs left half-made: temporary files, and locks of no copy."""
    for path in (*place.glob(".*.saving"), *place.glob(f"*{locks.SUFFIX}")):
        with suppress(OSError):
            copy = path.with_name(path.name.removesuffix(locks.SUFFIX))
            old = time.time() - path.lstat().st_mtime > _LITTER_S
            if old and (copy == path or not (copy.exists() or _held(copy))):
                path.unlink()
