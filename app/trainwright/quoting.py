"""Text from outside, written so that it stays text: a function for each language we write.

Names, paths and messages come from plans, drivers, price lists and other people's files, and
may hold anything. Whatever we emit takes them through here; YAML is ``yamltext.dump``'s.
"""

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_HIDDEN = re.compile(
    "[\0-\x1f\x7f-\x9f"  # control characters: line breaks, terminal sequences
    "\xad\u061c\u180e\u200b\u200e\u200f\u2060-\u206f\ufeff\ufff9-\ufffb"  # unseen, direction
    "\u2028-\u202e"  # line and paragraph separators, embeddings and overrides
    "\ud800-\udfff"  # halves of a pair: bytes of a file name that are not UTF-8
    "\U000e0000-\U000e007f]"  # tags
)
"""Characters that do not show as themselves (Unicode 15, categories Cc, Cf, Cs, Zl and Zp,
without the joiners and the number signs, which scripts need)."""
_SPACE = re.compile(r"[^\S\xa0\u202f]+")
"""White space and line breaks; the spaces inside numbers stay."""


def visible(text: str) -> str:
    r"""Return text on one line, characters that do not show as escapes: ``\x1b``, ``\n``."""
    return _HIDDEN.sub(_escape, text)


def visible_lines(text: str) -> str:
    """Return text of several lines, each of them visible."""
    return "\n".join(map(visible, text.split("\n")))


def _escape(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode("ascii")


def one_line(text: str, limit: int | None = 40) -> str:
    """Return text as a sentence may quote it: visible, line breaks as spaces, and short."""
    text = visible(_SPACE.sub(" ", text).strip())
    return text if limit is None or len(text) <= limit else text[: limit - 1] + "…"


def dotted(place: Sequence[str | int]) -> str:
    """Return a place in a file as people write it, ``machine.gpus[0].count``, on one line."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{one_line(part)}" if text else one_line(part)
    return text


# Programs and shells

ENCODING = "# -*- coding: utf-8 -*-  # noqa: UP009"
"""First line of a Python file: where it stands, no later comment can name another encoding
(Python reference, 2.1.4). Linters find it needless in a file without foreign text."""


def python_file(text: str) -> str:
    """Return a program that says its encoding first."""
    return f"{ENCODING}\n{text}"


def quoted(text: str) -> str:
    """Return text in double quotes, as Python and TOML read it; nothing hides in it."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in plain)


def shell_word(text: str) -> str:
    """Return text as one word of a POSIX shell."""
    return shlex.quote(text)


def shell_comment(text: str) -> str:
    """Return text as the comment that ends a line.

    It is quoted too: an interactive zsh takes ``#`` for a word, and runs what follows a ``;``.
    """
    return f"# {shlex.quote(visible(text))}"


# Data


def json_text(value: Any, *, indent: int | None = None) -> str:
    """Return JSON in which letters of any language show, and nothing hides.

    Raises:
        ValueError: infinity, or not a number.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return _HIDDEN.sub(_json_escape, text)


def _json_escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if found[0] == "\n":  # of the indentation; within a text it is escaped already
        return "\n"
    return f"\\u{code:04x}" if code < 0x10000 else json.dumps(found[0])[1:-1]


_FORMULA = re.compile(r"'*(\s*[-=+@＝＋－＠]|[\t\r\n])")
"""How a formula begins where a spreadsheet opens CSV, apostrophes before it or not (OWASP, CSV
injection)."""
_NUMBER = re.compile(r"[-+]?[\d.,\xa0\u202f]*\d([eE][-+]?\d+)?\s?%?")
_NEEDS_QUOTES = re.compile(r'[",;\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]|^ | $')


def csv_row(cells: Iterable[object]) -> str:
    """Return a line of CSV; a text that a spreadsheet would compute has an apostrophe first.

    Numbers, and texts that are one, stay as they are.
    """
    return ",".join(map(_csv_cell, cells)) + "\n"


def _csv_cell(value: object) -> str:
    text = "" if value is None else str(value)
    if isinstance(value, str):
        text = sheet_cell(text)
    return '"' + text.replace('"', '""') + '"' if _NEEDS_QUOTES.search(text) else text


def sheet_cell(text: str) -> str:
    """Return text as the cell of a spreadsheet that shows it and computes nothing."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def cell_text(cell: str) -> str:
    """Return the text that ``sheet_cell`` made a cell of."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell


# Markup


def html(text: str) -> str:
    """Return HTML that shows the text, lines and spaces included."""
    lines = visible_lines(escape(text)).replace("\n", "<br>")
    return f'<p style="white-space:pre-wrap">{lines}</p>'


_MARKS = re.compile(r"[\\`*_\[\]<&|~]")


def markdown(text: str) -> str:
    """Return text for a line or a table's cell of Markdown (CommonMark 2.4; GFM tables)."""
    return _MARKS.sub(r"\\\g<0>", visible(text))
