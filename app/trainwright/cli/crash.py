"""Crash files: what went wrong, for a bug report, without a traceback in anybody's face.

They hold no values of options, no secrets, and no folders or names of people.
"""

import platform
import sys
import traceback
from datetime import datetime
from pathlib import Path

from trainwright import __version__, saving
from trainwright.diagnose import recorder_redact


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
        recorder_redact.here().prose(text),
    ]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        saving.replace(path, "".join(lines).encode(errors="backslashreplace"))
    except OSError:
        return None
    return path


def _command(words: list[str]) -> str:
    """Return the sub-command, which is a module here, and the names of its options."""
    modules = {module.stem for module in Path(__file__).parent.glob("*.py")}
    known = [word for word in words[:1] if word in modules]
    return " ".join([*known, recorder_redact.command(words[len(known) :])])
