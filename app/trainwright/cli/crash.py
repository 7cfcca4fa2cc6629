"""Crash files: what went wrong, for a bug report, without a traceback in anybody's face."""

import platform
import sys
import traceback
from datetime import datetime
from pathlib import Path

from trainwright import __version__, saving


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
        saving.replace(path, "".join(lines).encode(errors="backslashreplace"))
    except OSError:
        return None
    return path
