"""Rendering of messages from the gettext catalogues in ``resources/i18n``."""

import gettext
import re
from functools import cache
from io import BytesIO
from string import Formatter
from typing import Any, Literal, get_args

from trainwright.data import edited, resources
from trainwright.messages import particles, units
from trainwright.messages.message import Message

Language = Literal["en", "ko"]
LANGUAGES: tuple[Language, ...] = get_args(Language)
_BRACE = re.compile("[{}]")


@cache
def _translations(language: Language) -> gettext.GNUTranslations:
    if edited():
        from trainwright.messages.compiling import fresh  # needed in a checkout only

        return gettext.GNUTranslations(BytesIO(fresh(resources("i18n", language))))
    with resources("i18n", f"{language}.mo").open("rb") as file:
        return gettext.GNUTranslations(file)


class _Formatter(Formatter):
    """``str.format`` with our unit specs, such as ``{peak:gib}``."""

    def __init__(self, language: Language) -> None:
        self._language = language

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, Message):
            return render(value, self._language)
        if isinstance(value, (list, tuple)):
            return ", ".join(self.format_field(item, format_spec) for item in value)
        if format_spec in units.FORMATS:
            return units.FORMATS[format_spec](value, self._language)
        return str(super().format_field(value, format_spec))


def known(id: str) -> bool:
    """Return whether the catalogue has a sentence of this id."""
    return _translations("en").gettext(id) != id


def render(message: Message, language: Language) -> str:
    """Return the sentence in the language.

    A message with a value named ``count`` takes its plural form by it, where there is one. An
    id that the catalogue lacks renders as the id itself, so that a person still sees something;
    a test fails for each such id.
    """
    catalogue = _translations(language)
    text = message.id
    if "count" in message.values:
        text = catalogue.ngettext(message.id, message.id, int(message.values["count"]))
    if text == message.id:  # one form for every count
        text = catalogue.gettext(message.id)
    if text == message.id:
        details = ", ".join(f"{key}={value}" for key, value in message.values.items())
        return f"{message.id} ({details})" if details else message.id
    said = _Formatter(language).vformat(text, (), message.values) if _BRACE.search(text) else text
    return particles.settled(said) if language == "ko" else said
