"""Sizes in the field's notation: ``2·B·S·V`` rather than 256512·B·S."""

from collections.abc import Mapping
from typing import Any

from trainwright.estimate.cuda import ITEMSIZE
from trainwright.profile.profile import MONOMIALS, SCALE, Ints

_SYMBOLS = {"1": "", "B": "B", "S": "S", "BS": "B·S", "SS": "S²", "BSS": "B·S²"}

_CERTAIN = 32
"""Narrower widths are only believed at the op's own bytes for an element."""

_FEW = 64
"""Largest number that stands before a width: 16·B·S·hidden, but not 1000·hidden."""


def formula(coefficients: Ints, dtype: str, model: Mapping[str, Any]) -> str:
    """Return a size polynomial as text.

    Args:
        coefficients: One row of ``Profile.sizes``; (6,).
        dtype: Of the op that made it, the first guess for the bytes of an element.
        model: ``Profile.model``; widths found there appear by name.
    """
    widths = _widths(model)
    own = ITEMSIZE.get(dtype, 4)
    texts = [
        _product(int(value), own, _SYMBOLS[name], widths)
        for name, value in zip(MONOMIALS, coefficients, strict=True)
        if value
    ]
    return " + ".join(texts) if texts else "0"


def _product(scaled: int, own: int, symbol: str, widths: Mapping[int, str]) -> str:
    if scaled % SCALE:
        return _times(f"{scaled / SCALE:.6g}", symbol)
    nbytes = scaled // SCALE
    for itemsize in dict.fromkeys((own, 2, 4, 1, 8)):
        width, left = divmod(nbytes, itemsize)
        if left == 0 and width in widths and (itemsize == own or width >= _CERTAIN):
            return _times(str(itemsize), symbol, widths[width])
    return _multiple(nbytes, symbol, widths) or _times(_grouped(nbytes), symbol)


def _multiple(nbytes: int, symbol: str, widths: Mapping[int, str]) -> str:
    """Return the bytes as a small multiple of the widest width that divides them."""
    for width in sorted(widths, reverse=True):
        times, left = divmod(nbytes, width)
        if left == 0 and width >= _CERTAIN and 1 < times <= _FEW:
            return _times(str(times), symbol, widths[width])
    return ""


def _times(*factors: str) -> str:
    return "·".join(factor for factor in factors if factor)


def _grouped(value: int) -> str:
    """Return the number with commas between thousands."""
    return f"{value:,}"


def _widths(model: Mapping[str, Any]) -> dict[int, str]:
    """Return what the model's widths, and weights between two of them, are called."""
    size = int(model.get("head_dim") or 0)
    named = {
        "hidden": model.get("hidden"),
        "V": model.get("vocabulary"),
        "ffn": model.get("intermediate"),
        "kv_heads·head_dim": int(model.get("kv_heads") or 0) * size,
        "heads·head_dim": int(model.get("heads") or 0) * size,
        "heads": model.get("heads"),
    }
    found: dict[int, str] = {}
    for text, value in named.items():
        if value and int(value) > 1:
            found.setdefault(int(value), text)
    hidden = int(model.get("hidden") or 0)
    for width, text in list(found.items()):
        if hidden and text != "heads":
            found.setdefault(hidden * width, "hidden²" if width == hidden else f"{text}·hidden")
    return found
