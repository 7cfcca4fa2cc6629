"""Design tokens: every colour, size and font of the application comes from here.

Widgets look tokens up while they paint, so a change of theme needs a repaint and nothing
else. Text roles keep a contrast of 4.5:1 on their surfaces, fills 3:1.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from PySide6.QtGui import QColor, QFont, QFontMetricsF

ThemeName = Literal["light", "dark"]

XS, S, M, L, XL, XXL = 4, 8, 12, 16, 24, 32
"""Spacing in logical pixels."""

CHIP, CONTROL, CARD = 4, 6, 10
"""Corner radii."""

MICRO, LABEL, BODY, SECTION, TITLE, FIGURE, DISPLAY = 11, 12, 13, 14, 16, 20, 28
"""Type sizes in logical pixels."""

CONTROL_HEIGHT, BUTTON_HEIGHT, TOP_HEIGHT, STATUS_HEIGHT, RAIL_WIDTH = 28, 32, 56, 28, 88

LIGHT: Mapping[str, str] = {
    "canvas": "#EDF1F4", "surface": "#FFFFFF", "sunken": "#F4F7F9",
    "line": "#D7DFE5", "line2": "#BCC8D1",
    "text": "#12202B", "text2": "#455663", "text3": "#586975",
    "rail": "#0E2435", "railText": "#A9BCCA", "railOn": "#FFFFFF", "railSel": "#1D3B52",
    "accent": "#1A5FB4", "accentInk": "#FFFFFF", "accentWash": "#E6EFF9",
    "accentLine": "#8FB4DE", "accentHover": "#154F96",
    "fits": "#0B7350", "fitsFill": "#13936A", "fitsWash": "#E4F4ED", "fitsInk": "#FFFFFF",
    "tight": "#7F4F00", "tightFill": "#CA8304", "tightWash": "#FCF1DA",
    "no": "#A93408", "noFill": "#CF470D", "noWash": "#FBE7DE",
    "na": "#586975", "naFill": "#8796A1", "naWash": "#E8EDF1",
    "print": "#123B5D", "printLine": "#D3E6F7", "printDim": "#A5C6E2",
    "printGrid": "#1B4A71", "printFill": "#1D4E77",
    "weights": "#2C6BA6", "optim": "#B5568C", "act": "#149273", "head": "#CE850C",
    "work": "#3F9AD3", "slack": "#7E8F9B", "ctx": "#3F4D58", "grad": "#17405F",
    "data": "#8A6FC4",
    "input": "#D9780B", "fwd": "#2C6BA6", "rec": "#3F9AD3", "bwd": "#17405F",
    "logo": "#2A74CC", "logoInk": "#FFFFFF",
}  # fmt: skip

DARK: Mapping[str, str] = {
    "canvas": "#0C1319", "surface": "#141E26", "sunken": "#101920",
    "line": "#25333E", "line2": "#3A4B58",
    "text": "#E8EFF4", "text2": "#AEBDC8", "text3": "#8798A5",
    "rail": "#081017", "railText": "#8DA1B0", "railOn": "#FFFFFF", "railSel": "#182836",
    "accent": "#72AEF5", "accentInk": "#07192B", "accentWash": "#14293D",
    "accentLine": "#335E8C", "accentHover": "#8FC0FA",
    "fits": "#58D3A4", "fitsFill": "#2DB283", "fitsWash": "#11302A", "fitsInk": "#05251B",
    "tight": "#F4BE58", "tightFill": "#E0A02A", "tightWash": "#332810",
    "no": "#FF9470", "noFill": "#E9683A", "noWash": "#3A1F16",
    "na": "#8798A5", "naFill": "#617280", "naWash": "#1A252E",
    "print": "#0D2436", "printLine": "#B9D6EE", "printDim": "#8FB2D0",
    "printGrid": "#13314A", "printFill": "#163B58",
    "weights": "#3B7BB5", "optim": "#D27BAE", "act": "#2FB28F", "head": "#EBAA38",
    "work": "#86CAF2", "slack": "#7A8B98", "ctx": "#C9D4DC", "grad": "#B9CFE3",
    "data": "#A792DC",
    "input": "#F0A04B", "fwd": "#3B7BB5", "rec": "#86CAF2", "bwd": "#B9CFE3",
    "logo": "#72AEF5", "logoInk": "#07192B",
}  # fmt: skip

_THEMES: Mapping[ThemeName, Mapping[str, str]] = {"light": LIGHT, "dark": DARK}
_FAMILIES = [
    "Inter", "Pretendard", "Noto Sans KR", "Noto Sans CJK KR", "Segoe UI Variable",
    "Malgun Gothic", "SF Pro Text", "Apple SD Gothic Neo", "NanumGothic", "sans-serif",
]  # fmt: skip
_DISPLAY_FAMILIES = ["Inter Display", *_FAMILIES]
_MONO_FAMILIES = [
    "JetBrains Mono", "Cascadia Mono", "SF Mono", "Noto Sans Mono", "DejaVu Sans Mono",
    "Noto Sans Mono CJK KR", "monospace",
]  # fmt: skip

_current: ThemeName = "light"


def theme() -> ThemeName:
    """Return the name of the theme in use."""
    return _current


def use(name: ThemeName) -> None:
    """Make a theme the one that ``colour`` answers from."""
    global _current
    _current = name
    _colour.cache_clear()


def colour(name: str, alpha: float = 1.0) -> QColor:
    """Return a token of the current theme; a name that is not a token is read as ``#RRGGBB``."""
    return _colour(name, alpha)


@lru_cache(maxsize=512)
def _colour(name: str, alpha: float) -> QColor:
    value = QColor(_THEMES[_current].get(name, name))
    value.setAlphaF(alpha)
    return value


def ink(fill: str) -> str:
    """Return the text colour, near white or near black, that reads best on a fill."""
    return "#FFFFFF" if _luminance(colour(fill)) < 0.30 else "#0B151C"


def _luminance(value: QColor) -> float:
    """Relative luminance, WCAG 2.2."""
    channels = (value.redF(), value.greenF(), value.blueF())
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@lru_cache(maxsize=64)
def font(px: int = BODY, weight: int = 400, mono: bool = False) -> QFont:
    """Return a font with figures of equal width, and in code no ligatures."""
    result = QFont()
    result.setFamilies(_MONO_FAMILIES if mono else _DISPLAY_FAMILIES if px >= FIGURE else _FAMILIES)
    result.setPixelSize(px)
    result.setWeight(QFont.Weight(weight))
    result.setHintingPreference(QFont.HintingPreference.PreferNoHinting)
    result.setFeature(QFont.Tag("calt" if mono else "tnum"), 0 if mono else 1)
    return result


@lru_cache(maxsize=64)
def metrics(px: int = BODY, weight: int = 400, mono: bool = False) -> QFontMetricsF:
    """Return the metrics of ``font``."""
    return QFontMetricsF(font(px, weight, mono))


@lru_cache(maxsize=8192)
def width(text: str, px: int = BODY, weight: int = 400, mono: bool = False) -> float:
    """Return the width of a text: measuring costs more than painting, so it is kept."""
    return metrics(px, weight, mono).horizontalAdvance(text)


def wrapped(text: str, room: float, px: int, weight: int = 400, *, mono: bool = False) -> list[str]:
    """Break a text into lines no wider than ``room``."""
    lines: list[str] = []
    line = ""
    for word in text.split():
        longer = f"{line} {word}".strip()
        if line and width(longer, px, weight, mono) > room:
            lines.append(line)
            longer = word
        line = longer
    return [*lines, line] if line else lines
