"""The language of a run: asked for, or the system's."""

import os
import sys
from collections.abc import Mapping, Sequence

from trainwright.messages import LANGUAGES, Language

_KOREAN_ON_WINDOWS = 0x12
"""Primary language identifier of Korean, low ten bits of a Windows LANGID."""


def of_system(environment: Mapping[str, str] = os.environ) -> Language:
    """Return the language that the user set up, English where it is neither of ours."""
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        if value := environment.get(name):
            return "ko" if value.lower().startswith("ko") else "en"
    if sys.platform == "win32":
        import ctypes

        langid = ctypes.windll.kernel32.GetUserDefaultUILanguage()
        return "ko" if langid & 0x3FF == _KOREAN_ON_WINDOWS else "en"
    return "en"  # macOS terminals set LANG; a bare environment says nothing.


def asked_for(arguments: Sequence[str]) -> Language | None:
    """Return the value of ``--lang``, read ahead so that errors of parsing speak it too."""
    asked = None
    for position, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument == "--lang" and position + 1 < len(arguments):
            asked = arguments[position + 1]
        elif argument.startswith("--lang="):
            asked = argument.removeprefix("--lang=")
    return next((language for language in LANGUAGES if language == asked), None)
