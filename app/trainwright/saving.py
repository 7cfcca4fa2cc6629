"""Files that are replaced in one step: a crash leaves the old one or the new one."""

import os
import sys
import tempfile
from contextlib import suppress
from pathlib import Path


def replace(path: Path, content: bytes) -> None:
    """Put content in a file's place, whole or not at all; what was there before is lost.

    A link stays a link, and the file keeps its permissions.

    Raises:
        OSError: it cannot be written; nothing has changed then.
        ValueError: the name cannot be one.
    """
    target = Path(os.path.realpath(path))
    handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".", suffix=".saving")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        _keep_mode(target, temporary)
        os.replace(temporary, target)
    except BaseException:
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(target.parent)


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
