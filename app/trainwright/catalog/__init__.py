"""Hardware records: loading, look-up by what people type, and checks."""

from trainwright.catalog.load import catalog, overlay_folder
from trainwright.catalog.part_kinds import PartKind
from trainwright.catalog.part_records import (
    BoardRecord,
    CaseRecord,
    CoolerRecord,
    CpuRecord,
    DriveRecord,
    MemoryRecord,
    PartRecord,
    Provenance,
    PsuRecord,
)
from trainwright.catalog.parts import (
    find_board,
    find_case,
    find_cooler,
    find_cpu,
    find_drive,
    find_memory,
    find_part,
    find_psu,
    list_parts,
)
from trainwright.catalog.precision import Precision, peak_flops, supports
from trainwright.catalog.query import Match, find_gpu, list_gpus
from trainwright.catalog.records import Capacity, Confidence, Fact, FlopKey, GpuRecord

__all__ = [
    "BoardRecord",
    "Capacity",
    "CaseRecord",
    "Confidence",
    "CoolerRecord",
    "CpuRecord",
    "DriveRecord",
    "Fact",
    "FlopKey",
    "GpuRecord",
    "Match",
    "MemoryRecord",
    "PartKind",
    "PartRecord",
    "Precision",
    "Provenance",
    "PsuRecord",
    "catalog",
    "find_board",
    "find_case",
    "find_cooler",
    "find_cpu",
    "find_drive",
    "find_gpu",
    "find_memory",
    "find_part",
    "find_psu",
    "list_gpus",
    "list_parts",
    "overlay_folder",
    "peak_flops",
    "supports",
]
