"""From a file or a paste to rows: its letters, its size, and which list it is."""

import codecs
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Literal

from trainwright import reading
from trainwright.messages import UserError
from trainwright.prices.imports import danawa, markup, own_csv, pcpartpicker
from trainwright.prices.imports.rows import Read

Format = Literal["csv", "pcpartpicker", "danawa", "danawa-quote"]
MOST_BYTES = 16 << 20
"""Largest file that is read; assumed, 100,000 rows take most of it."""
MOST_ROWS = 500_000
"""Assumed; the catalog has some hundred parts."""


_SEPARATOR = re.compile(r"\Asep=.\n", re.IGNORECASE)
"""A first line for Excel only."""


@dataclass(frozen=True, slots=True)
class Listing:
    """A list as it was read: every line of it that is not a heading or a total."""

    name: str
    """Of the file, or what a paste is called."""
    format: Format
    rows: tuple[Read, ...]


def read_file(source: Path | str, today: date) -> Listing:
    """Return the list in a file, or on standard input where the source is ``-``.

    Raises:
        UserError: it cannot be read, is too large, is not text, or is not a list that we know.
    """
    name = "-" if str(source) == "-" else Path(source).name
    content = reading.content(source, MOST_BYTES, or_stdin=True)
    return read(decoded(content, name), name, today)


def decoded(content: bytes, name: str) -> str:
    """Return the text of bytes in UTF-8, with or without a mark, UTF-16 with one, or cp949.

    Lines of our CSV that are not text stay, for their reader to refuse.

    Raises:
        UserError: they are not text in any of these.
    """
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        tried = ["utf-16"]
    else:
        tried = ["utf-8-sig", "cp949"]
    for encoding in tried:
        try:
            text = content.decode(encoding)
        except UnicodeError:
            continue
        if own_csv.is_text(text):
            return text
        break
    text = content.decode("utf-8-sig", errors="surrogateescape")
    head = text.lstrip("\r\n").split("\n", 1)[0]
    if own_csv.is_ours(text) and own_csv.is_text(head):
        return text
    raise UserError.of("prices.not-text", file=name)


def read(text: str, name: str, today: date) -> Listing:
    """Return the list in a text.

    Raises:
        UserError: it is not a list that we know, has no rows, or more than anybody reads.
    """
    text = text.replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    if not text.strip():
        raise UserError.of("prices.empty-list", file=name)
    if text.count("\n") > MOST_ROWS:
        raise UserError.of("prices.too-many-rows", file=name, limit=MOST_ROWS)
    text = _SEPARATOR.sub("\n", markup.plain(text))
    format: Format
    if danawa.is_table(text):
        format, rows = "danawa", danawa.read_table(text, name, today)
    elif own_csv.is_ours(text) and not (_has_bars(text) and pcpartpicker.is_pcpartpicker(text)):
        format, rows = "csv", own_csv.read_csv(text, name, today)
    elif pcpartpicker.is_pcpartpicker(text):
        format, rows = "pcpartpicker", pcpartpicker.read_list(text, today)
    elif danawa.is_quote(text):
        format, rows = "danawa-quote", danawa.read_quote(text, today)
    else:
        raise UserError.of("prices.unknown-list", file=name, columns=own_csv.NEEDED)
    found: list[Read] = []
    for row in rows:
        found.append(row)
        if len(found) > MOST_ROWS:
            raise UserError.of("prices.too-many-rows", file=name, limit=MOST_ROWS)
    if not found:
        raise UserError.of("prices.empty-list", file=name)
    return Listing(name, format, tuple(found))


def _has_bars(text: str) -> bool:
    return "|" in text.lstrip().split("\n", 1)[0]
