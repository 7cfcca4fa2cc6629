"""The files that define a person's model: read once, with limits, and named by their content."""

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from trainwright.messages import UserError

SOURCE_BYTES = 1 << 20
"""Largest Python file that is read; assumed, far above any that people write."""
FILES = 500
"""Most neighbours that are followed; assumed. Those beyond are imported, and not watched."""
_IMPORT = re.compile(rb"^[ \t]*(?:from|import)[ \t]+([\w., \t]+)", re.MULTILINE)
"""Over-reads (a line of a text may look like an import), which costs nothing but a hash."""


@dataclass(frozen=True, slots=True)
class Sources:
    """A Python file and those of its neighbours that it imports."""

    root: Path
    """Folder that imports start from: the file's own, or the one that holds its package."""
    hashes: dict[str, str]
    """Path below the root, with slashes -> hash of the content."""


def regular_bytes(path: Path, limit: int, *, key: str, too_large: str) -> bytes:
    """Return the content of a regular file; pipes and devices are refused, not waited for.

    ``key`` is that of the plan that names the file, ``too_large`` the id of the complaint.

    Raises:
        UserError: it cannot be read, is no regular file, or is longer than ``limit`` bytes.
    """
    try:
        content = _content(path, limit)
    except IsADirectoryError:
        content = None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        raise UserError.of(
            "plan.config-unreadable", key=key, file=str(path), reason=reason
        ) from None
    if content is None:
        raise UserError.of("plan.config-special", key=key, file=str(path))
    if len(content) > limit:
        raise UserError.of(too_large, key=key, file=str(path), limit=limit)
    return content


def _content(path: Path, limit: int) -> bytes | None:
    """Return at most a byte more than the limit; None where it is no regular file."""
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            return None
        return file.read(limit + 1)


def python_sources(file: Path, key: str) -> Sources:
    """Return what a Python file consists of; nothing of it is run.

    Neighbours are found by their ``import`` lines; what is imported by other means, or from
    outside the folder, is not watched.

    Raises:
        UserError: the file cannot be read, or is too large; names the key.
    """
    root = _root(file)
    text = regular_bytes(file, SOURCE_BYTES, key=key, too_large="plan.code-too-large")
    found = {file: text}
    waiting = [text]
    while waiting:
        for neighbour in _imported(waiting.pop(), root):
            if neighbour not in found and len(found) < FILES:
                found[neighbour] = _neighbour(neighbour)
                waiting.append(found[neighbour])
    return Sources(
        root,
        {path.relative_to(root).as_posix(): _hash(found[path]) for path in sorted(found)},
    )


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _neighbour(path: Path) -> bytes:
    """Return the content of a neighbour; nothing where it cannot be read, as its import says."""
    try:
        return (_content(path, SOURCE_BYTES) or b"")[:SOURCE_BYTES]
    except (OSError, ValueError):
        return b""


def _root(file: Path) -> Path:
    """Return the folder above the outermost package that the file is in."""
    folder = file.parent
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        folder = folder.parent
    return folder


def _imported(content: bytes, root: Path) -> Iterator[Path]:
    """Yield the files below the root that import lines name: a module, or a whole package."""
    for line in _IMPORT.findall(content):
        for name in line.decode("ascii", "ignore").split(","):
            first = name.strip().partition(" ")[0].partition(".")[0]
            if not first:
                continue
            if (root / f"{first}.py").is_file():
                yield root / f"{first}.py"
            if (root / first / "__init__.py").is_file():
                yield from sorted((root / first).rglob("*.py"))
