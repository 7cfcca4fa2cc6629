"""Phosphor icons as glyphs of a font: sharp at every scale, drawn like text.

The font ships with qtawesome. It is read from there without importing that package,
which would load every icon font it has before the first window is painted.
"""

import json
from functools import cache, lru_cache
from importlib.util import find_spec
from pathlib import Path

from PySide6.QtGui import QFont, QFontDatabase

_FONT = "phosphor-1.3.0.ttf"
_CHARMAP = "phosphor-charmap-1.3.0.json"


@cache
def _folder() -> Path | None:
    spec = find_spec("qtawesome")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "fonts"
    if (folder / _FONT).is_file() and (folder / _CHARMAP).is_file():
        return folder
    return None


@cache
def _characters() -> dict[str, str]:
    folder = _folder()
    if folder is None:
        return {}
    table = json.loads((folder / _CHARMAP).read_text(encoding="utf-8"))
    return {name: chr(int(code, 16)) for name, code in table.items()}


@cache
def _family() -> str:
    folder = _folder()
    number = QFontDatabase.addApplicationFont(str(folder / _FONT)) if folder else -1
    families = QFontDatabase.applicationFontFamilies(number) if number >= 0 else []
    return families[0] if families else ""


def glyph(name: str) -> str:
    """Return the character of an icon, or nothing where the font is missing."""
    return _characters().get(name, "")


@lru_cache(maxsize=32)
def font(px: int) -> QFont:
    """Return the icon font at a size in logical pixels."""
    result = QFont(_family())
    result.setPixelSize(px)
    result.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    return result
