"""Parts beside GPUs, looked up by what people, sellers and drivers call them.

A person's own records, in ``cpu``, ``board`` and so on beside the ``gpu`` folder of the
overlay, win over the shipped ones. Each kind is read when it is first asked for.
"""

from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Literal, TypeVar, overload

from trainwright.catalog.compiled import Compiled
from trainwright.catalog.copies import compiled_folder
from trainwright.catalog.load import catalog, overlay_folder, state
from trainwright.catalog.names import part_key
from trainwright.catalog.part_kinds import KINDS, NAMES, OtherKind, PartKind
from trainwright.catalog.part_records import (
    BoardRecord,
    CaseRecord,
    CoolerRecord,
    CpuRecord,
    DriveRecord,
    MemoryRecord,
    PartRecord,
    PsuRecord,
)
from trainwright.catalog.query import brief, find_gpu, nearest_gpus
from trainwright.catalog.records import GpuRecord
from trainwright.data import hardware_db, resources
from trainwright.messages import Message, UserError

R = TypeVar("R", bound=PartRecord)
MAX_NEAREST = 4
"""Candidates that are named for an unknown one; as for GPUs."""


def find_cpu(text: str) -> CpuRecord | None:
    """Return the processor of an id or a name, as ``/proc/cpuinfo`` writes it too."""
    return _find(CpuRecord, "cpu", text)


def find_board(text: str) -> BoardRecord | None:
    """Return the mainboard of an id or a name; None where the catalog does not have it."""
    return _find(BoardRecord, "board", text)


def find_memory(text: str) -> MemoryRecord | None:
    """Return the memory kit of an id, a name or a part number, or None."""
    return _find(MemoryRecord, "memory", text)


def find_drive(text: str) -> DriveRecord | None:
    """Return the drive of an id or a name, as the kernel writes it too, or None."""
    return _find(DriveRecord, "storage", text)


def find_psu(text: str) -> PsuRecord | None:
    """Return the power supply of an id or a name, or None."""
    return _find(PsuRecord, "psu", text)


def find_case(text: str) -> CaseRecord | None:
    """Return the case of an id or a name, or None."""
    return _find(CaseRecord, "case", text)


def find_cooler(text: str) -> CoolerRecord | None:
    """Return the cooler of an id or a name, or None."""
    return _find(CoolerRecord, "cooler", text)


def find_part(kind: PartKind, text: str) -> GpuRecord | PartRecord:
    """Return the part of a kind that a text means.

    Raises:
        UserError: ``catalog.unknown-gpu`` or ``catalog.unknown-part`` with the nearest names.
    """
    if kind == "gpu":
        return find_gpu(text).record
    if (found := _parts(kind).find(text)) is not None:
        return found
    near = nearest(kind, text)
    hint = (
        Message.of("catalog.hint-nearest", candidates=near)
        if near
        else Message.of("catalog.hint-list-kind", kind=kind)
    )
    raise UserError.of("catalog.unknown-part", kind=NAMES[kind], text=brief(text), hint=hint)


def nearest(kind: PartKind, text: str) -> tuple[str, ...]:
    """Return ids of the kind's parts whose names are nearest to a text, best first."""
    if kind == "gpu":
        return nearest_gpus(text)
    known = _parts(kind)
    key = part_key(text)
    words = [part for part in map(part_key, text.split()) if part]
    holding = [id for name, id in known.names() if words and all(word in name for word in words)]
    names = dict(known.names())
    close = [names[name] for name in get_close_matches(key, names, n=8, cutoff=0.6)]
    return tuple(dict.fromkeys((*holding, *close)))[:MAX_NEAREST]


@overload
def list_parts(kind: Literal["gpu"]) -> tuple[GpuRecord, ...]: ...
@overload
def list_parts(kind: Literal["cpu"]) -> tuple[CpuRecord, ...]: ...
@overload
def list_parts(kind: Literal["board"]) -> tuple[BoardRecord, ...]: ...
@overload
def list_parts(kind: Literal["memory"]) -> tuple[MemoryRecord, ...]: ...
@overload
def list_parts(kind: Literal["storage"]) -> tuple[DriveRecord, ...]: ...
@overload
def list_parts(kind: Literal["psu"]) -> tuple[PsuRecord, ...]: ...
@overload
def list_parts(kind: Literal["case"]) -> tuple[CaseRecord, ...]: ...
@overload
def list_parts(kind: Literal["cooler"]) -> tuple[CoolerRecord, ...]: ...
@overload
def list_parts(kind: OtherKind) -> tuple[PartRecord, ...]: ...
@overload
def list_parts(kind: PartKind) -> tuple[GpuRecord | PartRecord, ...]: ...
def list_parts(kind: PartKind) -> tuple[GpuRecord | PartRecord, ...]:
    """Return all parts of a kind in the files' order, the person's own last."""
    if kind == "gpu":
        known = catalog()
        return tuple(map(known.record, known.ids))
    return _parts(kind).records()


def part_problems(kind: PartKind) -> tuple[Message, ...]:
    """Return what was left out of a kind's files, shipped and own, and why."""
    return catalog().problems if kind == "gpu" else _parts(kind).problems


@dataclass(frozen=True, slots=True)
class _Parts:
    """Records of one kind by id and name; a record is built when it is first asked for."""

    type: type[PartRecord]
    shipped: Compiled
    overlay: Compiled
    _built: dict[str, PartRecord] = field(default_factory=dict, repr=False, compare=False)

    @property
    def problems(self) -> tuple[Message, ...]:
        return (*self.shipped.problems, *self.overlay.problems)

    def records(self) -> tuple[PartRecord, ...]:
        ids = dict.fromkeys((*self.shipped.records, *self.overlay.records))
        return tuple(map(self._record, ids))

    def find(self, text: str) -> PartRecord | None:
        key = part_key(text)
        for known in (self.overlay, self.shipped):
            if ids := known.names.get(key):
                return self._record(ids[0])
        return None

    def names(self) -> list[tuple[str, str]]:
        """Return all name keys with their ids, the shipped ones first."""
        return [
            (key, ids[0])
            for known in (self.shipped, self.overlay)
            for key, ids in known.names.items()
        ]

    def _record(self, id: str) -> PartRecord:
        if id not in self._built:
            data = self.overlay.records.get(id) or self.shipped.records[id]
            self._built[id] = self.type.model_validate(data)
        return self._built[id]


def _find(made: type[R], kind: OtherKind, text: str) -> R | None:
    found = _parts(kind).find(text)
    return found if isinstance(found, made) else None


def _parts(kind: OtherKind) -> _Parts:
    """Return a kind's parts; own files that changed since the last call are read again."""
    own = overlay_folder().parent / kind
    stamps = state(own)
    return _loaded(kind, hardware_db(kind), own if stamps else None, stamps)


@lru_cache(maxsize=2 * len(KINDS))
def _loaded(kind: OtherKind, shipped: Path, own: Path | None, _state: object) -> _Parts:
    return _Parts(KINDS[kind].record, _shipped(kind, shipped), compiled_folder(own, kind=kind))


@lru_cache(maxsize=2 * len(KINDS))
def _shipped(kind: OtherKind, folder: Path) -> Compiled:
    return compiled_folder(folder, resources("catalog", f"{kind}.json"), kind)
