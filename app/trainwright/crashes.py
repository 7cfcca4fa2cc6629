"""Crash files: what went wrong, for a bug report, without a traceback in anybody's face.

They hold no values of options, no secrets, and no folders or names of people.
"""

import faulthandler
import platform
import sys
import traceback
from datetime import datetime
from pathlib import Path

from trainwright import __version__, saving
from trainwright.diagnose import commandline
from trainwright.diagnose.recorder import redact

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
    text = "".join(traceback.format_exception(error))
    lines = [
        f"trainwright {__version__}, Python {platform.python_version()}, {platform.platform()}\n",
        f"{moment.isoformat()}\n",
        f"command: {_command(sys.argv[1:])}\n\n",
        redact.here().prose(text),
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        saving.replace(path, "".join(lines).encode(errors="backslashreplace"))
        for old in sorted(path.parent.glob("2*.txt"))[:-_KEPT]:
            old.unlink(missing_ok=True)
    except OSError:
        return None
    return path


def _command(words: list[str]) -> str:
    """Return the sub-command, which is a module of ``cli``, and the names of its options."""
    modules = {module.stem for module in (Path(__file__).parent / "cli").glob("*.py")}
    known = [word for word in words[:1] if word in modules]
    return " ".join([*known, commandline.command(words[len(known) :])])


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
