"""The documents behind the keys that values name as their source."""

import re
from functools import cache

from trainwright.data import hardware_db

_ROW = re.compile(r"^\|(?P<keys>(?:\s*+`[^`]+`)+)\s*+\|(?P<document>.+)\|\s*+$")
_KEY = re.compile(r"`([^`]+)`")
_WORD = re.compile(r"[a-z0-9]+(?:-[a-z0-9.]+)*")


def documents(source: str) -> tuple[str, ...]:
    """Return the documents that a source names by key, as ``hardware_db/SOURCES.md`` has them.

    Empty where it names none: a formula, or the source of a person's own record.
    """
    known = _documents()
    named = dict.fromkeys(word for word in _WORD.findall(source.casefold()) if word in known)
    return tuple(known[key] for key in named)


@cache
def _documents() -> dict[str, str]:
    """Return all documents by key."""
    text = hardware_db("SOURCES.md").read_text(encoding="utf-8")
    rows = filter(None, map(_ROW.match, text.splitlines()))
    return {
        key: row["document"].strip().replace("<", "").replace(">", "")
        for row in rows
        for key in _KEY.findall(row["keys"])
        if key not in ("high", "medium", "low")
    }
