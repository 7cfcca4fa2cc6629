"""What helps with a fault report: versions, settings and crash files, in one archive.

It holds no names of people or computers, no folders and no secrets, and a person reads all of it
before it is saved where they choose.
"""

import io
import platform
import zipfile

from PySide6.QtCore import qVersion

from trainwright import __version__, crashes, reading, saving
from trainwright.diagnose.recorder import redact
from trainwright.messages import Message, UserError
from trainwright.profile import interpreter
from trainwright.ui import filedialogs, licences
from trainwright.ui.frame import Frame
from trainwright.ui.i18n import tr
from trainwright.ui.preferences import Preferences

_CRASHES = 10
"""Crash files that go along, the newest; assumed."""
_MOST_BYTES = 1 << 20
"""Of one of them; assumed, they have some KB."""


def offer(window: Frame) -> None:
    """Show what the archive holds, and save it where a person chooses."""
    from trainwright.ui.widgets.questiondialog import QuestionDialog

    files = contents(window.preferences)
    dialog = QuestionDialog(window, Message.of("ui.diagnostics.title"),
                            Message.of("ui.diagnostics.text"))  # fmt: skip
    dialog.offer(("cancel", "save"), "save")
    dialog.show_text(Message.of("ui.diagnostics.title"), _in_one(files))
    dialog.exec()
    dialog.deleteLater()
    if dialog.answer != "save":
        return
    path = filedialogs.file_to_write(
        window, tr("ui.diagnostics.title"), "trainwright-diagnostics.zip", "ZIP (*.zip)", "zip"
    )
    if path is None:
        return
    try:
        saving.write(path, archive(files))
    except UserError as error:
        window.notice.say(str(error), stays=True)
    else:
        window.notice.say(tr("ui.diagnostics.saved", path=str(path)))


def contents(preferences: Preferences) -> dict[str, str]:
    """Return the files of the archive by name."""
    return {
        "versions.txt": _lines(_versions()),
        "settings.txt": _lines(_settings(preferences)),
        **_crash_files(),
    }


def archive(files: dict[str, str]) -> bytes:
    """Return the files as a ZIP archive, with no times and no owner."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in files.items():
            packed.writestr(zipfile.ZipInfo(name), text.encode("utf-8", "backslashreplace"))
    return data.getvalue()


def _versions() -> dict[str, str]:
    parts = {part.name: part.version for part in licences.parts()}
    return {
        "trainwright": __version__,
        "python": platform.python_version(),
        "system": platform.platform(),
        "qt": qVersion(),
        **parts,
        "torch": interpreter.torch_version(),
    }


def _settings(preferences: Preferences) -> dict[str, str]:
    """Return what Settings shows, with no path and no name of a file."""
    usual = preferences.usual
    return {
        "theme": preferences.theme,
        "language": preferences.language,
        "scale": f"{preferences.scale} %",
        "gpu": usual.gpu or "-",
        "currency": usual.currency or "-",
        "digits": usual.digits,
        "memory": usual.memory,
        "usd per kWh": str(usual.usd_per_kwh or "-"),
        "household kWh": str(usual.household_kwh or "-"),
        "python": "another" if preferences.python else "own",
        "readings a second": str(preferences.pace),
    }


def _crash_files() -> dict[str, str]:
    """Return the newest crash files; native ones are Python's own and are redacted here."""
    known = redact.here()
    found = {}
    for path in sorted(crashes.folder().glob("*.txt"))[-_CRASHES:]:
        try:
            text = reading.text(path, _MOST_BYTES)
        except UserError as error:
            text = str(error)
        if text:
            found[f"crashes/{path.name}"] = known.prose(text)
    return found


def _lines(values: dict[str, str]) -> str:
    return "".join(f"{name}: {value}\n" for name, value in values.items())


def _in_one(files: dict[str, str]) -> str:
    return "\n".join(f"== {name} ==\n{text}" for name, text in files.items())
