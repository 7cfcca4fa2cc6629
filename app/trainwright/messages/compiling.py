"""Catalogues of messages: the area files of a language, compiled into one ``.mo`` for gettext."""

import json
import os
import re
import struct
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_LINE = re.compile(r'^(?:(msgid|msgid_plural|msgstr)(?:\[\d\])? )?(".*")$', re.MULTILINE)
"""A line of a ``.po`` file with text: a keyword and its string, or a string that continues it."""
_MAGIC, _HEADER = 0x950412DE, struct.Struct("<7I")
"""How a ``.mo`` file begins (GNU gettext manual, 10.3)."""


def fresh(folder: Path) -> bytes:
    """Return the catalogue of a language's folder, compiled again where a ``.po`` file is newer.

    It is kept in ``<folder>.mo``; a folder that cannot be written to costs only speed.
    """
    goal, sources = folder.with_suffix(".mo"), (folder, *folder.glob("*.po"))
    with suppress(OSError):
        if goal.stat().st_mtime_ns > max(path.stat().st_mtime_ns for path in sources):
            return goal.read_bytes()
    content = compiled(folder)
    with suppress(OSError):
        written = goal.with_suffix(f".{os.getpid()}")
        written.write_bytes(content)
        written.replace(goal)  # in one step: other processes read it
    return content


def compiled(folder: Path) -> bytes:
    """Return the ``.mo`` of the sentences in a language's ``*.po`` files."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.po")):
        found.update(_sentences(path.read_text(encoding="utf-8")))
    pairs = sorted((id.encode(), text.encode()) for id, text in found.items())
    texts = [text for column in zip(*pairs, strict=True) for text in column]
    table = _HEADER.size + 8 * len(pairs)
    places, offset = [], _HEADER.size + 8 * len(texts)
    for text in texts:
        places += [len(text), offset]
        offset += len(text) + 1
    header = _HEADER.pack(_MAGIC, 0, len(pairs), _HEADER.size, table, 0, 0)
    return header + struct.pack(f"<{len(places)}I", *places) + b"\0".join((*texts, b""))


def _sentences(text: str) -> Iterator[tuple[str, str]]:
    """Yield each id with its text, plural forms behind a NUL as gettext has them."""
    for entry in re.split("^(?=msgid )", text, flags=re.MULTILINE):
        parts: list[str] = []
        ids = 1
        for keyword, quoted in _LINE.findall(entry):
            if keyword:
                parts.append("")
                ids += keyword == "msgid_plural"
            parts[-1] += json.loads(quoted)
        if parts:
            yield "\0".join(parts[:ids]), "\0".join(parts[ids:])
