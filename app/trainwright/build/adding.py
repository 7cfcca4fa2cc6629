"""Named parts added to a computer: another card, memory or drive, or one in place of another."""

from collections.abc import Iterable
from dataclasses import replace

from trainwright.build.changes import Kind
from trainwright.build.request import Owned
from trainwright.catalog import (
    BoardRecord,
    CpuRecord,
    DriveRecord,
    GpuRecord,
    MemoryRecord,
    PartRecord,
    find_part,
)
from trainwright.machine.build import Build, BuildGpu
from trainwright.messages import UserError


def with_parts(now: Build, parts: Iterable[Owned]) -> tuple[Build, tuple[Kind, ...]]:
    """Return the computer with the parts, and what kinds of change they are.

    Cards of another kind, a processor and a board take the place of what is there.

    Raises:
        UserError: a part makes nothing faster by itself, or it is not known what it joins.
    """
    build, kinds = now, []
    for part in parts:
        kind, build = _added(build, find_part(part.kind, part.id), part.count)
        kinds.append(kind)
    return build, tuple(dict.fromkeys(kinds))


def _added(build: Build, record: PartRecord | GpuRecord, count: int) -> tuple[Kind, Build]:
    match record:
        case GpuRecord():
            return _with_cards(build, record, count)
        case CpuRecord():
            return "cpu", replace(build, cpu=record)
        case BoardRecord():
            return "platform", replace(build, board=record)
        case MemoryRecord():
            return "memory", _with_memory(build, record, count)
        case DriveRecord():
            return "drive", replace(build, drives=(*[record] * count, *build.drives))
    raise UserError.of("planner.add-nothing", part=record.name)


def _with_cards(build: Build, record: GpuRecord, count: int) -> tuple[Kind, Build]:
    own = build.gpus[0]
    if own.record.id == record.id:
        return "more-gpus", replace(build, gpus=(replace(own, count=own.count + count),))
    return "gpu", replace(build, gpus=(BuildGpu(record, count),))


def _with_memory(build: Build, record: MemoryRecord, count: int) -> Build:
    if not build.memory:
        raise UserError.of("planner.add-memory", part=record.name)
    kits = {kit.id: (kit, number) for kit, number in build.memory}
    _, there = kits.get(record.id, (record, 0))
    kits[record.id] = record, there + count
    return replace(build, memory=tuple(kits.values()))
