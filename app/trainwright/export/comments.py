"""Comment blocks for exported programs: reasons beside the values that they explain."""

import unicodedata
from collections.abc import Iterable

from trainwright.quoting import one_line

WIDTH = 100
"""Columns; East Asian wide characters take two, as linters count them."""


def comment(paragraphs: Iterable[tuple[int, str]]) -> str:
    """Return (indent, text) paragraphs as wrapped ``#`` lines; empty text is an empty line.

    Whatever the text holds, which may be a plan's name, it stays a comment, and no line of it
    begins metadata for what installs a script's packages (PEP 723: ``# ///``).
    """
    lines: list[str] = []
    for indent, text in paragraphs:
        lead = "# " + " " * indent
        inner = wrapped(one_line(text, None), WIDTH - len(lead))
        lines += [f"{lead}{' ' * line.startswith('///')}{line}" for line in inner] or ["#"]
    return "".join(f"{line}\n" for line in lines)


def wrapped(text: str, width: int) -> list[str]:
    """Return the lines of the text, filled by words; a word longer than a line is kept whole."""
    lines: list[str] = []
    for word in text.split(" ") if text else ():
        if lines and columns(lines[-1]) + 1 + columns(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def columns(text: str) -> int:
    """Return the width of the text in columns of a terminal."""
    if text.isascii():
        return len(text)
    return sum(2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text)
