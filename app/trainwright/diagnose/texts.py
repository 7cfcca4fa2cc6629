"""Text as terminals, log files and notebooks hold it, made plain."""

import csv
import html
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from trainwright.messages import UserError

T = TypeVar("T")

_UTF16 = (("utf-16-le", b"\xff\xfe", 1), ("utf-16-be", b"\xfe\xff", 0))
"""Encodings, their marks, and which of two bytes is 0 in English."""
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)|[@-Z\\-_()][0-9A-B]?)"
)
"""ANSI: control sequences (ECMA-48), operating system commands (titles, links), and two-letter
escapes."""
NOT_WATCHDOG = "(?! ?Watchdog caught)"
"""Behind a rank: NCCL's watchdog names the rank that waited, which is not a prefix."""
_RANK = re.compile(
    r"^[ \t]*(?:"
    rf"\[(?:rank|default|worker)[ _]?\d{{1,6}}\]:?{NOT_WATCHDOG}"  # torchrun, accelerate
    r"|\[\d{1,6}\]:"
    r"|(?:rank|node)[ _]?\d{1,6}[:|]"
    r"|\[\d{1,6},\d{1,6}\]<std(?:out|err)>:"  # mpirun --tag-output
    r"|\d{1,6}: (?=\D)"  # srun --label
    r"|\([\w.-]{1,80} pid=\d{1,10}(?:, ip=[\d.]{7,15})?\)"  # Ray
    r"|[\w.-]{1,80} +\| "  # docker compose
    r")[ \t]?",
    re.MULTILINE | re.IGNORECASE,
)
_TAG = re.compile(r"<[^<>]{1,2000}>")


def decoded(data: bytes) -> str:
    """Return the text of a file in UTF-8, UTF-16 (PowerShell's ``>``) or cp949 (Korean Windows).

    What no encoding of these explains becomes replacement characters.
    """
    start = data[:4096]
    for encoding, mark, high in _UTF16:
        if data.startswith(mark) or start[high::2].count(0) > max(1, len(start) // 4):
            return data.removeprefix(mark).decode(encoding, "replace")
    for encoding in ("utf-8-sig", "cp949"):
        try:
            return data.decode(encoding)
        except UnicodeDecodeError:
            continue
    return data.decode("utf-8-sig", "replace")


def plain(text: str) -> str:
    """Return the text without colours, ranks before its lines and a notebook's markup.

    A carriage return, by which progress bars overwrite a line, begins a new one.
    """
    text = _ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    if re.search(r"</(?:pre|div|table|span)>", text, re.IGNORECASE):
        text = html.unescape(_TAG.sub("", re.sub(r"(?i)<br ?/?>|</(?:p|div|tr|pre)>", "\n", text)))
    return _RANK.sub("", text.replace("\xa0", " "))


_RUN = re.compile(r" {2,}")


def squeezed(text: str) -> str:
    """Return the text of a table with one space where its columns are padded with several."""
    return _RUN.sub(" ", text)


def from_json(text: str, format: str, taken: Callable[[Any], T]) -> T:
    """Return what is taken from a text of JSON.

    Raises:
        UserError: it is broken, or is not what the format has.
    """
    try:
        return taken(json.loads(text))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise UserError.of("diagnose.file.broken-json", format=format) from None


_MOST_CELLS = 5_000_000


def table(text: str) -> tuple[list[str], list[list[str]]] | None:
    """Return the names of columns, and the rows below, of a text whose cells a mark divides.

    None where its first line does not name columns, or no line below has as many cells.
    """
    lines = text.lstrip("\ufeff\n ").splitlines()
    heading = lines[0] if lines else ""
    if not heading or len(heading) > 200_000:
        return None
    mark = max(",;\t", key=heading.count)
    try:
        names, *rows = csv.reader(lines[: _MOST_CELLS // (heading.count(mark) + 1)], delimiter=mark)
    except csv.Error:
        return None
    named = len(names) > 1 and not any(
        re.fullmatch(r"\s*[-+.\d][-+.\de]*\s*", one) for one in names
    )
    whole = [row for row in rows if len(row) == len(names)]
    return ([one.strip() for one in names], whole) if named and whole else None


def columns(names: Sequence[str], rows: Sequence[Sequence[str]]) -> dict[str, list[float | None]]:
    """Return the numbers of each column by its name; None where a cell has none."""
    return {name: [number(row[at]) for row in rows] for at, name in enumerate(names)}


def number(word: str) -> float | None:
    """Return a number that a tool printed; None for ``N/A``, ``-`` and the like.

    Units behind it are left to the reader; a decimal comma without thousands is a point.
    """
    found = re.match(r"\s*([-+]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d{1,2})?)", word)
    if found is None:
        return None
    digits = found[1]
    if re.fullmatch(r"[-+]?\d+,\d{1,2}", digits):
        digits = digits.replace(",", ".")
    try:
        value = float(digits.replace(",", ""))
    except ValueError:
        return None
    return value if abs(value) < BELIEVED else None


BELIEVED = 1e18
"""Numbers in tools' output that are believed; assumed: an exabyte."""


def percent(word: str) -> float | None:
    """Return a share that a tool printed in per cent; None where it is not a share."""
    value = number(word)
    return value / 100 if value is not None and 0 <= value <= 100 else None


_AMOUNT = re.compile(r"(-?[\d.,]{1,40}) ?([A-Za-zμµ]{0,5})")
_BYTES = {"": 1, "b": 1, "byte": 1, "bytes": 1} | {
    prefix + ending: 1 << 10 * power
    for power, prefix in enumerate("kmgt", 1)
    for ending in ("", "i", "b", "ib")
}
_SECONDS = {"s": 1.0, "sec": 1.0, "ms": 1e-3, "us": 1e-6, "μs": 1e-6, "µs": 1e-6, "ns": 1e-9}


def size(word: str) -> float | None:
    """Return the bytes of ``9216MiB``, ``15Gi`` or ``12 GB``, which tools count in powers of 2."""
    return _amount(word, _BYTES)


def seconds(word: str) -> float | None:
    """Return the seconds of ``6.412s``, ``99.1ms`` or ``0.000us``."""
    return _amount(word, _SECONDS)


def _amount(word: str, units: Mapping[str, float]) -> float | None:
    found = _AMOUNT.fullmatch(word.strip())
    value = number(found[1]) if found is not None else None
    if found is None or value is None or value < 0 or found[2].lower() not in units:
        return None
    return value * units[found[2].lower()]
