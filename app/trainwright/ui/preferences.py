"""What the window remembers: look, language, recent files, where it stood. Never the plan."""

import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QByteArray, QLocale, QSettings

from trainwright import locks, saving
from trainwright.messages import Language, UserError
from trainwright.ui.i18n import Preference as LanguagePreference
from trainwright.ui.i18n import system_language
from trainwright.ui.theme import Preference as ThemePreference
from trainwright.ui.usual import DIGITS, Usual

if TYPE_CHECKING:
    from trainwright.prices import Currency

SCALES = ("100", "110", "125", "150")
_RECENT = 9
_WAIT_S = 2.0
"""Longest that the window waits for another one that writes its preferences; assumed."""
_MOST_BYTES = 1 << 20
"""Largest file that is read; assumed, one has some KB."""
_LONGEST_PATH, _LONGEST_NAME = 4096, 255
"""Bytes that a path and a name in it may have (Linux, limits.h)."""


def _set_aside_what_is_none(file: Path) -> None:
    """Rename what cannot be preferences: Qt would wait for a pipe, and read all that is there."""
    with suppress(OSError):
        status = file.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            saving.set_aside(file)


def _may_be_path(text: str) -> bool:
    """Return whether the system takes a text for a path, wherever it leads."""
    try:
        name = os.fsencode(text)
    except UnicodeEncodeError:
        return False
    short = len(name) <= _LONGEST_PATH and all(
        len(os.fsencode(part)) <= _LONGEST_NAME for part in Path(text).parts
    )
    return short and b"\0" not in name


# Long: a property for each thing that is kept, with its setter.
class Preferences:
    """Typed access to the settings file."""

    def __init__(self, file: Path | None = None) -> None:
        ini = QSettings.Format.IniFormat
        if file is None:
            user = QSettings.Scope.UserScope
            # Of another name, which is not there: to ask for the file's own name would read it.
            file = Path(QSettings(ini, user, "trainwright", "-").fileName()).with_name("window.ini")
        _set_aside_what_is_none(file)
        self._settings = QSettings(str(file), ini)

    def _text(self, key: str, default: str = "") -> str:
        """Return a text; the default where the file has nothing, or something else there."""
        value = self._settings.value(key, default)
        return value if isinstance(value, str) else default

    def _texts(self, key: str) -> list[str]:
        """Return texts, newest first; Qt gives a list of one as its item."""
        value = self._settings.value(key, [])
        values = value if isinstance(value, list) else [value]
        return [each for each in values if isinstance(each, str) and each]

    def _put(self, key: str, value: object) -> None:
        """Write a value at once: Qt replaces the file, with what other windows wrote in it."""
        self._settings.setValue(key, value)
        self._settings.sync()

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Read what other windows wrote, and keep them waiting until the change is written.

        Where no lock is to be had, the change is made all the same: lists of recent things are
        not worth an error.
        """
        lists = Path(self._settings.fileName() + ".lists")  # Qt locks the file's own name
        with ExitStack() as stack:
            with suppress(OSError, UserError):
                stack.enter_context(locks.held(lists, _WAIT_S))
            self._settings.sync()
            yield

    @property
    def theme(self) -> ThemePreference:
        """Light, dark, or as the system."""
        value = self._text("theme")
        known = value if value in ("system", "light", "dark") else "system"
        return cast(ThemePreference, known)

    @theme.setter
    def theme(self, value: ThemePreference) -> None:
        self._put("theme", value)

    @property
    def language(self) -> LanguagePreference:
        """English, Korean, or as the system."""
        value = self._text("language")
        return cast(LanguagePreference, value if value in ("system", "en", "ko") else "system")

    @language.setter
    def language(self, value: LanguagePreference) -> None:
        self._put("language", value)

    def spoken_language(self) -> Language:
        """Return the language to speak: the preference, or what the system speaks."""
        if self.language == "system":
            return system_language(QLocale.system().name())
        return self.language

    @property
    def recent(self) -> list[Path]:
        """Files opened or saved lately, newest first."""
        return [Path(text) for text in self._texts("recent") if _may_be_path(text)][:_RECENT]

    def opened(self, path: Path) -> None:
        """Put a file at the head of the recent ones."""
        path = path.absolute()
        with self._changing():
            others = [old for old in self.recent if old != path]
            self._put("recent", [str(p) for p in (path, *others)][:_RECENT])

    def forget(self, path: Path) -> None:
        """Take a file out of the recent ones."""
        with self._changing():
            self._put("recent", [str(p) for p in self.recent if p != path])

    @property
    def recent_models(self) -> tuple[str, ...]:
        """Ids of models picked lately, newest first."""
        return tuple(self._texts("recent-models"))[:_RECENT]

    def picked(self, model: str) -> None:
        """Put a model at the head of the recent ones."""
        with self._changing():
            others = [old for old in self.recent_models if old != model]
            self._put("recent-models", [model, *others][:_RECENT])

    @property
    def python(self) -> str | None:
        """The interpreter that traces; None for the one that runs this program."""
        text = self._text("python")
        return text if text and _may_be_path(text) else None

    @python.setter
    def python(self, value: str | None) -> None:
        self._put("python", value or "")

    @property
    def scale(self) -> int:
        """The size of texts and controls in percent; Qt takes it when it starts."""
        value = self._text("scale")
        return int(value) if value in SCALES else 100

    @scale.setter
    def scale(self, value: int) -> None:
        self._put("scale", str(value))

    @property
    def usual(self) -> Usual:
        """What a person usually has; a value that cannot be one is left out."""
        currency, digits = self._text("currency"), self._text("digits")
        return Usual(
            self._text("gpu")[:_LONGEST_NAME] or None,
            cast("Currency", currency) if currency in ("USD", "KRW") else None,
            self._number("usd-per-kwh", 10),
            self._number("household-kwh", 100_000),
            digits if digits in DIGITS else "comma",
            "GB" if self._text("memory-unit") == "GB" else "GiB",
        )

    @usual.setter
    def usual(self, value: Usual) -> None:
        self._put("gpu", value.gpu or "")
        self._put("currency", value.currency or "")
        self._put("digits", value.digits)
        self._put("memory-unit", value.memory)
        for key, number in (("usd-per-kwh", value.usd_per_kwh),
                            ("household-kwh", value.household_kwh)):  # fmt: skip
            self._put(key, "" if number is None else repr(number))

    def _number(self, key: str, most: float) -> float | None:
        """Return a number from 0 to ``most``; None where there is none."""
        try:
            value = float(self._text(key))
        except ValueError:
            return None
        return value if 0 <= value <= most else None

    @property
    def toured(self) -> bool:
        """Whether the tour was shown; once is enough."""
        return self._text("toured") == "yes"

    @toured.setter
    def toured(self, value: bool) -> None:
        self._put("toured", "yes" if value else "")

    def reset(self) -> None:
        """Forget what Settings shows; files and windows are remembered."""
        for key in ("theme", "language", "scale", "python"):
            self._put(key, "")
        self.usual = Usual()

    @property
    def geometry(self) -> QByteArray | None:
        """Where the window stood."""
        value = self._settings.value("geometry")
        return value if isinstance(value, QByteArray) else None

    @geometry.setter
    def geometry(self, value: QByteArray) -> None:
        self._put("geometry", value)

    @property
    def export_folder(self) -> Path | None:
        """Where files were exported to last."""
        text = self._text("export-folder")
        return Path(text) if text and _may_be_path(text) else None

    @export_folder.setter
    def export_folder(self, value: Path) -> None:
        self._put("export-folder", str(value))

    @property
    def alerts(self) -> str:
        """The alerts on live readings, as text."""
        return self._text("alerts")

    @alerts.setter
    def alerts(self, value: str) -> None:
        self._put("alerts", value)

    @property
    def pace(self) -> int:
        """Live readings a second."""
        value = self._text("pace")
        return int(value) if value in ("1", "2", "5", "10") else 1

    @pace.setter
    def pace(self, value: int) -> None:
        self._put("pace", str(value))
