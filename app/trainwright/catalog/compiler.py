"""From a folder of catalog YAML to records, names and what is wrong with them."""

from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from pydantic import ValidationError

from trainwright.catalog import problems
from trainwright.catalog.compiled import Compiled, sources_hash, yaml_files
from trainwright.catalog.gpu_file import GpuFile, IncompleteError, records
from trainwright.catalog.names import name_key, short_keys
from trainwright.catalog.part_kinds import PartKind
from trainwright.catalog.records import GpuRecord
from trainwright.catalog.yaml_file import read_document
from trainwright.messages import Message, UserError


def compile_folder(folder: Path, kind: PartKind = "gpu") -> Compiled:
    """Return the folder's records; what is broken is left out and told in ``problems``.

    A broken GPU file is left out whole: formulas and defaults tie its records together.
    """
    if kind != "gpu":
        from trainwright.catalog.part_compiler import compile_parts

        return compile_parts(folder, kind)
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
    document = read_document(path, path.name)
    try:
        return tuple(records(GpuFile.model_validate(document.data)))
    except ValidationError as error:
        wrong.extend(problems.of_validation(error, path.name, document))
    except IncompleteError as error:
        ids = [entry["id"] for entry in document.data["gpus"]]
        file = document.where(path.name, ("gpus", ids.index(error.id)))
        key = f"{error.id}.{error.key}"
        wrong.append(Message.of("catalog.missing-key", file=file, key=key))
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
