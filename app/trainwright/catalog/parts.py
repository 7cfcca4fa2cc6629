"""Processors and drives: what feeding a GPU depends on, looked up by what people type.

Few and seldom asked for, so that their YAML is read as it is, once. A person's own records, in
``cpu`` and ``storage`` beside the ``gpu`` folder of the overlay, win over the shipped ones.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from trainwright.catalog.compiled import yaml_files
from trainwright.catalog.load import overlay_folder, state
from trainwright.catalog.part_records import CpuRecord, DriveRecord, PartRecord
from trainwright.data import hardware_db
from trainwright.messages import Message, UserError

R = TypeVar("R", bound=PartRecord)
_Kind = tuple[str, str]
_CPUS: _Kind = ("cpu", "cpus")
_DRIVES: _Kind = ("storage", "drives")
"""Folder of the records, and the key of their list."""


def find_cpu(text: str) -> CpuRecord | None:
    """Return the processor of an id or a name, as ``/proc/cpuinfo`` writes it too."""
    return _known(CpuRecord, _CPUS).get(_key(text))


def find_drive(text: str) -> DriveRecord | None:
    """Return the drive of an id or a name; None where the catalog does not have it."""
    return _known(DriveRecord, _DRIVES).get(_key(text))


def own_problems() -> tuple[Message, ...]:
    """Return what of a person's own processors and drives was left out, and why."""
    kinds: tuple[tuple[type[PartRecord], _Kind], ...] = ((CpuRecord, _CPUS), (DriveRecord, _DRIVES))
    return tuple(message for made, kind in kinds for message in _own(made, kind)[1])


def _known(made: type[R], kind: _Kind) -> Mapping[str, R]:
    return _shipped(made, kind) | _own(made, kind)[0]


@lru_cache(maxsize=2)
def _shipped(made: type[R], kind: _Kind) -> dict[str, R]:
    return {
        key: record
        for path in yaml_files(hardware_db(kind[0]))
        for key, record in _named(made, _entries(path, kind[1])).items()
    }


def _own(made: type[R], kind: _Kind) -> tuple[dict[str, R], tuple[Message, ...]]:
    folder = overlay_folder().parent / kind[0]
    return _read_own(made, kind, folder, state(folder))


@lru_cache(maxsize=4)
def _read_own(
    made: type[R], kind: _Kind, folder: Path, _state: object
) -> tuple[dict[str, R], tuple[Message, ...]]:
    """Return a folder's records, and why a file of it was left out."""
    found: dict[str, R] = {}
    problems: list[Message] = []
    for path in yaml_files(folder):
        try:
            found |= _named(made, _entries(path, kind[1]))
        except UserError as error:
            problems.append(error.message)
        except (ValidationError, KeyError, TypeError, AttributeError) as error:
            reason = _reason(error)
            problems.append(Message.of("catalog.bad-part", file=path.name, reason=reason))
    return found, tuple(problems)


def _reason(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return f"{type(error).__name__}: {error}"


def _named(made: type[R], entries: list[dict[str, Any]]) -> dict[str, R]:
    records = [made.model_validate(data) for data in entries]
    return {_key(name): record for record in records for name in (record.id, record.name)}


def _entries(path: Path, key: str) -> list[dict[str, Any]]:
    """Return the records of a file, its defaults filled in."""
    from trainwright.catalog.yaml_file import read_yaml  # loads the YAML reader

    content = read_yaml(path)
    return [_filled(entry, content.get("defaults", {})) for entry in content[key]]


def _filled(entry: dict[str, Any], defaults: dict[str, Any]) -> dict[str, Any]:
    """Return the entry with what it leaves to the defaults, each value with its own source.

    A value that stands in an entry with a source is the entry's, whatever the defaults say of it.
    """
    theirs = defaults.get("sources", {})
    if "source" in entry:
        theirs = {field: source for field, source in theirs.items() if field not in entry}
    return defaults | entry | {"sources": theirs | entry.get("sources", {})}


_NOISE = re.compile(
    r"\((?:r|tm)\)|@.*$|\d+th gen\b|\b(?:\d+|\w+)-core\b|with radeon graphics"
    r"|\b(?:amd|intel|core|cpu|processor|western digital|ssd|nvme)\b"
)
_THOUSANDS = re.compile(r"\b(\d+)000gb\b")


def _key(text: str) -> str:
    """Return the name without what makers and drivers put around it."""
    plain = _NOISE.sub(" ", text[:200].casefold()).replace("wd_", "").replace("wd", "")
    plain = _THOUSANDS.sub(r"\1tb", plain)
    return re.sub(r"[^0-9a-z.]+", "", plain)
