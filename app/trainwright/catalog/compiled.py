"""The compiled catalog: all records and names of a folder of YAML, keyed by its hash."""

import hashlib
import json
import os
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import platformdirs
from pydantic import ValidationError

from trainwright import __version__
from trainwright.catalog import problems
from trainwright.catalog.gpu_file import GpuFile, IncompleteError, records
from trainwright.catalog.names import name_key, short_keys
from trainwright.catalog.records import GpuRecord
from trainwright.catalog.yaml_file import read_yaml
from trainwright.messages import Message, UserError

FORMAT = 1
"""Raised when records or names come out differently for the same YAML."""


@dataclass(frozen=True, slots=True)
class Compiled:
    """What a folder of catalog YAML says, ready to be looked up."""

    sources: str
    """Hash of the YAML files that it was made from."""
    records: Mapping[str, Mapping[str, Any]]
    """Plain data of a :class:`GpuRecord`, by id, in the files' order."""
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
    try:
        return path.read_bytes()
    except OSError:
        return b"unreadable"


def yaml_files(folder: Path) -> list[Path]:
    """Return the folder's ``*.yaml`` and ``*.yml`` files by name; none if it is absent."""
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if path.suffix.lower() in {".yaml", ".yml"} and not path.name.startswith(".")
        )
    except OSError:
        return []


def compile_folder(folder: Path) -> Compiled:
    """Return the folder's records; a broken file is left out whole and told in ``problems``."""
    wrong: list[Message] = []
    found: dict[str, GpuRecord] = {}
    for path in yaml_files(folder):
        try:
            for record in _file_records(path, wrong):
                if record.id in found:
                    wrong.append(Message.of("catalog.repeated-id", file=path.name, key=record.id))
                found.setdefault(record.id, record)
        except UserError as error:
            wrong.append(error.message)
    names, clashes = _names(found.values())
    return Compiled(
        sources=sources_hash(folder),
        records={
            id: record.model_dump(mode="json", exclude_defaults=True)
            for id, record in found.items()
        },
        names=names,
        problems=(*wrong, *clashes),
    )


def _file_records(path: Path, wrong: list[Message]) -> tuple[GpuRecord, ...]:
    data = read_yaml(path)
    try:
        return tuple(records(GpuFile.model_validate(data)))
    except ValidationError as error:
        wrong.extend(problems.of_validation(error, path.name, data))
    except IncompleteError as error:
        wrong.append(
            Message.of("catalog.missing-key", file=path.name, key=f"{error.id}.{error.key}")
        )
    return ()


def _names(
    found: Iterable[GpuRecord],
) -> tuple[dict[str, list[str]], list[Message]]:
    """Return ids by name key: own names first, then shared ones, then those cut short."""
    own: dict[str, str] = {}
    shared: dict[str, list[str]] = defaultdict(list)
    short: dict[str, list[str]] = defaultdict(list)
    clashes: list[Message] = []
    for record in found:
        for name in (record.id, record.name, *record.aliases):
            key = name_key(name)
            if own.setdefault(key, record.id) != record.id:
                clashes.append(
                    Message.of(
                        "catalog.repeated-alias", alias=name, first=own[key], second=record.id
                    )
                )
            for cut in short_keys(key, record.memory_bytes.value):
                _add(short[cut], record.id)
        for name in record.shared_names:
            key = name_key(name)
            _add(shared[key], record.id)
            for cut in short_keys(key, record.memory_bytes.value):
                _add(short[cut], record.id)
    clashes += [
        Message.of("catalog.repeated-alias", alias=key, first=own[key], second=ids[0])
        for key, ids in shared.items()
        if key in own
    ]
    owned = {key: [id] for key, id in own.items()}
    return dict(short) | dict(shared) | owned, clashes


def _add(ids: list[str], id: str) -> None:
    if id not in ids:
        ids.append(id)


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
        data = json.loads(path.read_bytes())
        if data["sources"] != sources:
            return None
        return Compiled(sources, data["records"], data["names"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def compiled_folder(folder: Path, shipped_copy: Path | None = None) -> Compiled:
    """Return the folder's records from a copy of the same hash, or compile them and keep one."""
    sources = sources_hash(folder)
    cached = _cache_file(sources)
    for copy in (shipped_copy, cached):
        known = from_json(copy, sources) if copy else None
        if known is not None:
            return known
    fresh = compile_folder(folder)
    if not fresh.problems:
        _keep(cached, to_json(fresh))
    return fresh


def _cache_file(sources: str) -> Path:
    folder = Path(platformdirs.user_cache_dir("trainwright", appauthor=False))
    return folder / "catalog" / f"gpu-{__version__}-{sources[:16]}.json"


def _keep(path: Path, text: str) -> None:
    """Write a cache file whole or not at all; a disk that refuses costs only speed."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, path)
        except OSError:
            os.unlink(temporary)
    except OSError:
        return
