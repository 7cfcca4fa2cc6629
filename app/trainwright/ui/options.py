"""Entries that are chosen from, and how what is typed is compared with them."""

import unicodedata
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Option:
    """One entry: what it is called, a note beside it, and the value chosen by it."""

    key: str
    title: str
    note: str = ""


def plain(text: str) -> str:
    """Return a text for comparison: composed jamo, no case, no punctuation."""
    return "".join(c for c in unicodedata.normalize("NFC", text).casefold() if c.isalnum())
