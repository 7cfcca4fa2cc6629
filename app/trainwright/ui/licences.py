"""What Trainwright ships with or asks for, and under which licences."""

import re
from dataclasses import dataclass
from functools import cache
from importlib import metadata

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_NOT_OURS = re.compile(r"extra == (?!['\"]torch['\"])")
"""Of requirements for our tests and for models of others; torch is what tracing stands on."""


@dataclass(frozen=True, slots=True)
class Part:
    """An installed package."""

    name: str
    version: str
    licence: str
    """As the package itself says; empty where it says none."""

    def __str__(self) -> str:
        return f"{self.name} {self.version}: {self.licence or '–'}"


@cache
def parts() -> tuple[Part, ...]:
    """Return the packages that this installation of Trainwright depends on, as they are here."""
    try:
        required = metadata.requires("trainwright") or []
    except metadata.PackageNotFoundError:
        return ()
    named = (_NAME.match(line) for line in required if not _NOT_OURS.search(line))
    found = [_part(name[0]) for name in named if name is not None]
    known = (part for part in found if part is not None)
    return tuple(sorted(known, key=lambda part: part.name.lower()))


def _part(name: str) -> Part | None:
    try:
        about = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    return Part(about["Name"], about["Version"], _licence(about))


def _licence(about: metadata.PackageMetadata) -> str:
    """Return a licence as its expression, its first line, or its class (PEP 639 and before)."""
    said = about.json.get("license_expression") or about.json.get("license") or ""
    lines = str(said).strip().splitlines()
    if lines and len(lines[0]) < 120:
        return lines[0]
    classes = about.get_all("Classifier") or []
    return ", ".join(each.rpartition(" :: ")[2] for each in classes if each.startswith("License"))
