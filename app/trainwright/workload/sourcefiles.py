"""The files that define a person's model: read once, with limits, and named by their content."""

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from trainwright import reading
from trainwright.messages import UserError
from trainwright.workload.workload import ModelSource

CONFIG_BYTES = 1 << 20
"""Largest ``config.json`` that is read; assumed, a few KB are usual."""
SOURCE_BYTES = 1 << 20
"""Largest Python file that is read; assumed, far above any that people write."""
PROGRAM_BYTES = 8 << 30
"""Largest exported program; assumed, one is loaded with its weights, in at most 12 GiB."""
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


def check_code(model: ModelSource) -> None:
    """Refuse a model of code whose file is missing, a folder, a device or a pipe.

    Raises:
        UserError: it is; names the key.
    """
    if model.code is not None:
        key = "model.pt2" if model.pt2 is not None else "model.python.file"
        with reading.opened(Path(model.code), f"{key}: {model.code}"):
            pass


def program_hash(path: Path, key: str) -> str:
    """Return the hash of an exported program's file; the same file is read once.

    Raises:
        UserError: as ``reading.opened``, or it is too large.
    """
    name = f"{key}: {path}"
    with reading.opened(path, name) as file:
        status = os.fstat(file.fileno())
    if status.st_size > PROGRAM_BYTES:
        raise UserError.of("reading.too-large", file=name, limit=PROGRAM_BYTES)
    return _program_hash(path, name, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=16)
def _program_hash(path: Path, name: str, _changed: int, _size: int) -> str:
    with reading.opened(path, name) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def python_sources(file: Path, key: str) -> Sources:
    """Return what a Python file consists of; nothing of it is run.

    Neighbours are found by their ``import`` lines; what is imported by other means, or from
    outside the folder, is not watched.

    Raises:
        UserError: the file cannot be read, or is too large; names the key.
    """
    root = _root(file)
    text = reading.content(file, SOURCE_BYTES, f"{key}: {file}")
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
        with reading.opened(path, str(path)) as file:
            return file.read(SOURCE_BYTES)
    except UserError:
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
            if os.path.isfile(root / f"{first}.py"):
                yield root / f"{first}.py"
            if os.path.isfile(root / first / "__init__.py"):
                yield from sorted((root / first).rglob("*.py"))
