"""The kinds of parts: where each is kept, and what a record of it is."""

from dataclasses import dataclass
from typing import Literal

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
from trainwright.messages import Message

OtherKind = Literal["cpu", "board", "memory", "storage", "psu", "case", "cooler"]
"""Beside GPUs, whose files have a form of their own."""
PartKind = Literal["gpu", OtherKind]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of part beside GPUs."""

    folder: OtherKind
    """Below ``hardware_db/`` and below a person's own folder."""
    key: str
    """Of the list of records in a file."""
    record: type[PartRecord]


NAMES: dict[PartKind, Message] = {
    "gpu": Message.of("catalog.kind-gpu"),
    "cpu": Message.of("catalog.kind-cpu"),
    "board": Message.of("catalog.kind-board"),
    "memory": Message.of("catalog.kind-memory"),
    "storage": Message.of("catalog.kind-storage"),
    "psu": Message.of("catalog.kind-psu"),
    "case": Message.of("catalog.kind-case"),
    "cooler": Message.of("catalog.kind-cooler"),
}
"""What one of a kind is called."""
KINDS: dict[OtherKind, Kind] = {
    kind.folder: kind
    for kind in (
        Kind("cpu", "cpus", CpuRecord),
        Kind("board", "boards", BoardRecord),
        Kind("memory", "memory", MemoryRecord),
        Kind("storage", "drives", DriveRecord),
        Kind("psu", "psus", PsuRecord),
        Kind("case", "cases", CaseRecord),
        Kind("cooler", "coolers", CoolerRecord),
    )
}
