"""What the window remembers: look, language, recent files, where it stood. Never the plan."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import cast

from PySide6.QtCore import QByteArray, QLocale, QSettings

from trainwright import locks
from trainwright.messages import Language, UserError
from trainwright.ui.i18n import Preference as LanguagePreference
from trainwright.ui.i18n import system_language
from trainwright.ui.theme import Preference as ThemePreference

_RECENT = 9
_WAIT_S = 2.0
"""Longest that the window waits for another one that writes its preferences; assumed."""


class Preferences:
    """Typed access to the settings file."""

    def __init__(self, file: Path | None = None) -> None:
        if file is not None:
            self._settings = QSettings(str(file), QSettings.Format.IniFormat)
        else:
            self._settings = QSettings(
                QSettings.Format.IniFormat, QSettings.Scope.UserScope, "trainwright", "window"
            )

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
        value = str(self._settings.value("theme", "system"))
        known = value if value in ("system", "light", "dark") else "system"
        return cast(ThemePreference, known)

    @theme.setter
    def theme(self, value: ThemePreference) -> None:
        self._put("theme", value)

    @property
    def language(self) -> LanguagePreference:
        """English, Korean, or as the system."""
        value = str(self._settings.value("language", "system"))
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
        stored = self._settings.value("recent", [])
        values = [stored] if isinstance(stored, str) else list(cast(list[str], stored or []))
        return [Path(value) for value in values if value][:_RECENT]

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
        stored = self._settings.value("recent-models", [])
        values = [stored] if isinstance(stored, str) else list(cast(list[str], stored or []))
        return tuple(value for value in values if value)[:_RECENT]

    def picked(self, model: str) -> None:
        """Put a model at the head of the recent ones."""
        with self._changing():
            others = [old for old in self.recent_models if old != model]
            self._put("recent-models", [model, *others][:_RECENT])

    @property
    def python(self) -> str | None:
        """The interpreter that traces; None for the one that runs this program."""
        return str(self._settings.value("python", "")) or None

    @python.setter
    def python(self, value: str | None) -> None:
        self._put("python", value or "")

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
        value = str(self._settings.value("export-folder", ""))
        return Path(value) if value else None

    @export_folder.setter
    def export_folder(self, value: Path) -> None:
        self._put("export-folder", str(value))

    @property
    def alerts(self) -> str:
        """The alerts on live readings, as text."""
        return str(self._settings.value("alerts", ""))

    @alerts.setter
    def alerts(self, value: str) -> None:
        self._put("alerts", value)

    @property
    def pace(self) -> int:
        """Live readings a second."""
        value = str(self._settings.value("pace", "1"))
        return int(value) if value in ("1", "2", "5", "10") else 1

    @pace.setter
    def pace(self, value: int) -> None:
        self._put("pace", str(value))
