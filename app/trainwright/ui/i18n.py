"""The language of the window: messages rendered from the shared catalogues."""

from functools import lru_cache
from typing import Any, Literal

from PySide6.QtCore import QCoreApplication, QLibraryInfo, QLocale, QTranslator

from trainwright.messages import Language, Message
from trainwright.messages.keys import said

_language: Language = "en"
_pseudo = False
_words_of_qt: QTranslator | None = None
"""Qt's own words, in file dialogs and menus of fields; None in English, which Qt is written in."""

Text = Message | str
"""A message, or text that is the same in every language: a name, a number, a path."""


def use(language: Language) -> None:
    """Make a language the one that ``tr`` answers in; views are then built again."""
    global _language
    _language = language
    QLocale.setDefault(QLocale(language))
    _translate_qt(language)


def _translate_qt(language: Language) -> None:
    global _words_of_qt
    app = QCoreApplication.instance()
    if app is None:
        return
    if _words_of_qt is not None:
        app.removeTranslator(_words_of_qt)
    _words_of_qt = None if language == "en" else QTranslator()
    if _words_of_qt is not None:
        folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
        _words_of_qt.load(f"qtbase_{language}", folder)
        app.installTranslator(_words_of_qt)


def language() -> Language:
    """Return the language in use."""
    return _language


def lengthen(on: bool) -> None:
    """Make every sentence 40 % longer, as a trial of the layouts."""
    global _pseudo
    _pseudo = on


def tr(id: str, /, **values: Any) -> str:
    """Return the sentence of a message id."""
    return say(Message.of(id, **values)) if values else _fixed(id, _language, _pseudo)


@lru_cache(maxsize=1024)
def _fixed(id: str, _in: Language, _longer: bool) -> str:
    """Return a sentence without values; screens ask for the same ones at every repaint."""
    return say(Message.of(id))


def say(text: Text) -> str:
    """Return the text of a message in the current language."""
    if isinstance(text, str):
        return text
    sentence = said(text, _language)
    return lengthened(sentence) if _pseudo else sentence


def lengthened(sentence: str) -> str:
    """Return a sentence 40 % longer."""
    extra = max(1, round(len(sentence) * 0.4))
    return sentence + ("ěñlárgéd " * (extra // 9 + 1))[:extra].rstrip()


def system_language(tag: str) -> Language:
    """Return the language for a locale name such as ``ko_KR``."""
    return "ko" if tag.lower().startswith("ko") else "en"


Preference = Literal["system", "en", "ko"]
