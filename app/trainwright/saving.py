"""Files that are replaced in one step: a crash leaves the old one or the new one."""

import hashlib
import os
import re
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

from trainwright import locks
from trainwright.messages import Message, UserError

if sys.platform != "win32":
    import fcntl

DAMAGED = ".damaged"
"""Ending of a file that was set aside."""
_TEMPORARY = re.compile(r"\.[a-z0-9_]{8}\.saving")
"""What ``tempfile`` makes of our beginning and ending."""
_STREAMS = ("/dev/std", "/dev/fd/", "/proc/")
"""Names of what a program has open: they may lead to a regular file that others write to."""
_MOST_DIGESTED = 16 << 20
"""Bytes; assumed, documents have at most one MiB."""


class NotAFileError(OSError):
    """The name belongs to a folder, a device or a pipe, which is never replaced."""


def write(path: Path, content: str | bytes) -> None:
    """Save a file for a person, as ``replace`` does; text as UTF-8.

    Raises:
        UserError: it cannot be written; nothing has changed then.
    """
    try:
        replace(path, content.encode() if isinstance(content, str) else content)
    except (OSError, ValueError) as error:
        raise _refusal(path, error) from None


def check(path: Path) -> None:
    """Refuse a place that ``write`` would refuse, before the work whose result goes there.

    Raises:
        UserError: the folder cannot be written, or the name is not one of a regular file.
    """
    try:
        with tempfile.TemporaryFile(dir=_target(path).parent):
            pass
    except (OSError, ValueError) as error:
        raise _refusal(path, error) from None


def reason(error: OSError | ValueError) -> Message | str:
    """Return why a file cannot be written or read: ours, or the system's words."""
    if isinstance(error, NotAFileError):
        return Message.of("saving.not-a-file")
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _refusal(path: Path, error: OSError | ValueError) -> UserError:
    return UserError.of("saving.cannot-write", where=str(path), reason=reason(error))


@contextmanager
def changing(path: Path, unwritable: str) -> Iterator[None]:
    """Keep other programs from a file between reading and writing it.

    Args:
        path: the file.
        unwritable: the message where its folder cannot be written, with ``file`` and ``reason``.

    Raises:
        UserError: the folder cannot be written, or another program keeps the file too long.
    """
    try:
        with locks.held(path):
            yield
    except OSError as error:
        raise UserError.of(unwritable, file=str(path), reason=reason(error)) from error


def replace(path: Path, content: bytes) -> None:
    """Put content in a file's place, whole or not at all; what was there before is lost.

    A link stays a link, and the file keeps its permissions. What programs that were killed
    here left behind goes.

    Raises:
        OSError: it cannot be written, ``NotAFileError`` among them; nothing has changed then.
        ValueError: the name cannot be one.
    """
    target = _target(path)
    for left in left_behind(target.parent, _TEMPORARY):
        with suppress(OSError):
            os.unlink(left)
    handle, temporary = _temporary(target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
            _keep_mode(target, temporary)
            if sys.platform != "win32":
                os.replace(temporary, target)
        if sys.platform == "win32":  # where an open file cannot be renamed
            os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(target.parent)


def left_behind(folder: Path, name: re.Pattern[str]) -> Iterator[Path]:
    """Yield what programs that were killed left in a folder: ours, and in nobody's use.

    Args:
        folder: where to look.
        name: what the names of temporary files, or of temporary folders, are like.
    """
    if sys.platform == "win32":  # where a file cannot be renamed while its mark holds
        return
    with suppress(OSError), os.scandir(folder) as entries:
        paths = [Path(entry.path) for entry in entries if name.fullmatch(entry.name)]
        for path in paths:
            status = path.lstat()
            plain = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
            handle = _taken(path) if plain and status.st_uid == os.geteuid() else None
            if handle is not None:
                try:
                    yield path
                finally:
                    os.close(handle)


def mark(handle: int) -> bool:
    """Mark an open file or folder as in use until it is closed, as a kill closes it, too.

    Returns whether it is still there. Where locks are not known, nothing is marked, and nobody
    takes it for left behind.
    """
    if sys.platform == "win32":
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False  # taken for left behind before it was marked
    except OSError:
        return True
    return os.fstat(handle).st_nlink > 0


def set_aside(path: Path) -> Path:
    """Rename a damaged file to a name that nothing has yet, and return it.

    Raises:
        OSError: it cannot be renamed.
    """
    for number in count(1):
        aside = path.with_name(path.name + DAMAGED + (f".{number}" if number > 1 else ""))
        if not os.path.lexists(aside):
            os.replace(path, aside)
            return aside
    raise AssertionError


def digest(path: Path) -> str:
    """Return what changes when a file's content does; empty where there is no file.

    Of what is not a regular file, or far larger than any of ours, only its kind and size count.
    """
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_DIGESTED:
            return f"{stat.S_IFMT(status.st_mode)} {status.st_size}"
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        return type(error).__name__


def check_name(path: Path) -> None:
    """Refuse a name that belongs to something else than a regular file.

    Raises:
        NotAFileError: it does.
    """
    if str(path) == "-" or str(path).startswith(_STREAMS):
        raise NotAFileError
    with suppress(FileNotFoundError):
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise NotAFileError


def _temporary(folder: Path) -> tuple[int, str]:
    """Make a file that is marked as in use; return its handle and its name."""
    while True:
        handle, name = tempfile.mkstemp(dir=folder, prefix=".", suffix=".saving")
        if mark(handle):
            return handle, name
        os.close(handle)


def _taken(path: Path) -> int | None:
    """Return a file or folder opened and marked; None where a program has it, or nobody knows."""
    if sys.platform == "win32":
        return None
    handle = None
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        if handle is not None:
            os.close(handle)
        return None
    return handle


def _target(path: Path) -> Path:
    """Return the file that a name leads to."""
    check_name(path)
    return Path(os.path.realpath(path))


def _keep_mode(target: Path, temporary: str) -> None:
    """Give the new file the old one's permissions, or those of any new file.

    Windows has no such bits: access there follows the folder.
    """
    if sys.platform == "win32":
        return
    try:
        mode = target.stat().st_mode & 0o777
    except FileNotFoundError:
        umask = os.umask(0)
        os.umask(umask)
        mode = 0o666 & ~umask
    os.chmod(temporary, mode)


def _sync_folder(folder: Path) -> None:
    """Make the renaming itself durable, where folders can be opened (not on Windows)."""
    if sys.platform == "win32":
        return
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
