"""Profiles of measured runs by name, in one archive in place of a hundred and more small files."""

import zipfile
from functools import cache
from pathlib import Path

ARCHIVE = Path(__file__).parent / "profiles.zip"
DATE = (2026, 1, 1, 0, 0, 0)
"""Of each entry, so that the same profiles give the same archive."""


@cache
def _archive() -> zipfile.ZipFile:
    return zipfile.ZipFile(ARCHIVE)


def has(name: str) -> bool:
    """Return whether a profile of this name is there."""
    return ARCHIVE.is_file() and name in _archive().NameToInfo


def read(name: str) -> bytes:
    """Return the content of a profile; KeyError where there is none."""
    return _archive().read(name)


def add(name: str, content: bytes) -> int:
    """Append a profile, which packs itself, and return its bytes."""
    with zipfile.ZipFile(ARCHIVE, "a") as archive:
        archive.writestr(zipfile.ZipInfo(name, DATE), content)
    _archive.cache_clear()
    return len(content)
