"""Crash files: what went wrong, for a bug report, without a traceback in anybody's face."""

import faulthandler
import platform
import sys
import traceback
from datetime import datetime
from pathlib import Path

from trainwright import __version__

_KEPT = 50
"""Crash files that are kept, the newest; assumed."""


def folder() -> Path:
    """Return where crash files are kept."""
    import platformdirs

    return Path(platformdirs.user_state_dir("trainwright", appauthor=False)) / "crashes"


def record(error: BaseException) -> Path | None:
    """Write the exception to a new file and return its path; None where none can be written."""
    moment = datetime.now().astimezone()
    path = folder() / f"{moment:%Y%m%d-%H%M%S-%f}.txt"
    lines = [
        f"trainwright {__version__}, Python {platform.python_version()}, {platform.platform()}\n",
        f"{moment.isoformat()}\n",
        f"arguments: {sys.argv[1:]!r}\n\n",
        *traceback.format_exception(error),
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines), encoding="utf-8", errors="backslashreplace")
        for old in sorted(path.parent.glob("2*.txt"))[:-_KEPT]:
            old.unlink(missing_ok=True)
    except OSError:
        return None
    return path


def watch_native() -> Path | None:
    """Let a crash of native code leave its stack in a file; return what an earlier one left.

    Such a crash ends the program at once: nothing else can say what happened. What is returned is
    renamed, so that it is returned once.
    """
    path = folder() / "native.txt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        left = _set_aside(path)
        if path.exists() and not path.is_file():
            return left
        faulthandler.enable(path.open("a", encoding="utf-8"))  # it keeps the file open
    except OSError:
        return None
    return left


def _set_aside(path: Path) -> Path | None:
    if not path.is_file() or path.stat().st_size == 0:
        return None
    moment = datetime.fromtimestamp(path.stat().st_mtime).astimezone()
    return path.rename(path.with_name(f"{moment:%Y%m%d-%H%M%S-%f}-native.txt"))
