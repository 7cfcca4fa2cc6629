"""The compiled catalog: all records and names of a folder of YAML, keyed by its hash."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainwright import reading
from trainwright.messages import Message, UserError

MAX_BYTES = 1 << 20
"""Largest file that is read; assumed, the largest shipped one is a fiftieth of it."""
COPY_BYTES = 64 << 20
"""Largest compiled copy that is read; assumed, those that ship are a hundredth of it."""
FORMAT = 2
"""Raised when records or names come out differently for the same YAML."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a folder of catalog YAML says, ready to be looked up."""

    sources: str
    """Hash of the YAML files that it was made from."""
    records: Mapping[str, Mapping[str, Any]]
    """Plain data of a ``GpuRecord`` or ``PartRecord``, by id, in the files' order."""
    names: Mapping[str, Sequence[str]]
    """Ids that answer to a name key; several where the name is shared, preferred one first."""
    problems: tuple[Message, ...] = ()
    """Files and records that were left out, and why."""


def sources_hash(folder: Path) -> str:
    """Return the hash of the folder's YAML; line endings do not count."""
    digest = hashlib.sha256(f"format {FORMAT}\n".encode())
    for path in yaml_files(folder):
        digest.update(path.name.encode("utf-8", "surrogateescape"))
        digest.update(_content(path).replace(b"\r\n", b"\n"))
        digest.update(b"\0")
    return digest.hexdigest()


def _content(path: Path) -> bytes:
    """Return what decides the hash; of a file too large to be read, its beginning and size."""
    try:
        with reading.opened(path, str(path)) as file:
            content = file.read(MAX_BYTES + 1)
            size = os.fstat(file.fileno()).st_size
        return content if len(content) <= MAX_BYTES else b"%d" % size + content
    except UserError:
        return b"unreadable"


def yaml_files(folder: Path) -> list[Path]:
    """Return the folder's ``*.yaml`` and ``*.yml`` files by name; none if it is absent."""
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if path.suffix.lower() in {".yaml", ".yml"}
            and not path.name.startswith(".")
            and path.is_file()
        )
    except OSError:
        return []


def to_json(compiled: Compiled) -> str:
    """Return the text of a compiled copy: a line for each record, so that changes read well."""
    lines = [
        f"{json.dumps(id)}: {json.dumps(record, ensure_ascii=False)}"
        for id, record in compiled.records.items()
    ]
    names = json.dumps(dict(sorted(compiled.names.items())), ensure_ascii=False)
    body = ",\n".join(lines)
    return f'{{"sources": "{compiled.sources}",\n"records": {{\n{body}\n}},\n"names": {names}\n}}\n'


def from_json(path: Path, sources: str) -> Compiled | None:
    """Return the compiled copy if it is there, whole, and made from these sources."""
    try:
        data = json.loads(reading.content(path, COPY_BYTES))
        if data["sources"] != sources:
            return None
        return Compiled(sources, data["records"], data["names"])
    except (UserError, ValueError, KeyError, TypeError, RecursionError):
        return None
