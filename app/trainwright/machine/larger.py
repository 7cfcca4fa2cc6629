"""Computers with more memory, for a plan that exceeds one whose memory cannot be extended."""

from collections.abc import Iterator

from trainwright.catalog import GpuRecord
from trainwright.catalog.query import list_gpus
from trainwright.machine.build import System
from trainwright.machine.capacity import GIB, capacity, held
from trainwright.machine.machine import Machine
from trainwright.machine.possible import is_built_in, is_module
from trainwright.machine.shared import installed, shared, sizes
from trainwright.messages import Message

RAISED = 0.85
"""Share of the memory that a GPU may take once its owner has raised the driver's limit. Assumed:
owners give it 112 of 128 GiB on a Mac (github.com/antirez/ds4/pull/893), and 100 to 120 of 125 GiB
on Strix Halo (github.com/superm1/amd-debug-tools, docs/amd-ttm.md)."""


def larger(machine: Machine, need: float) -> Message | None:
    """Return where ``need`` bytes would fit that a program takes; None for a card in a slot.

    First this computer with another limit, then the same computer as it is sold with more memory,
    then the newest GPU with the least memory that is enough: of the same maker and for a desk
    where there is one.
    """
    own, system = machine.gpu.record, machine.system
    if not is_built_in(own):
        return None
    limit = _limit(own, system)
    if limit and need <= RAISED * (machine.memory_bytes or 0):
        return Message.of(f"machine.larger.{limit}", gpu=own.name, need=need)
    for gib, room in _rooms(own, system):
        if room >= need:
            return Message.of("machine.larger.memory", gpu=own.name, gib=gib)
    most = sizes(own)[-1]
    if limit and need <= RAISED * most:
        values = {"gpu": own.name, "gib": most / GIB, "need": need}
        return Message.of(f"machine.larger.most-{limit}", **values)
    return _other(own, system, need)


def _limit(record: GpuRecord, system: System) -> str:
    """Return whose limit an owner can raise; empty where there is none."""
    if record.vendor == "Apple":
        return "wired-limit"
    return "ttm-limit" if record.vendor == "AMD" and system == "linux" else ""


def _other(own: GpuRecord, system: System, need: float) -> Message:
    enough = [
        (one, gib)
        for one in list_gpus(sort="launch")
        for gib, room in _rooms(one, system)
        if room >= need and not is_module(one)
    ]
    if not enough:
        return Message.of("machine.larger.none", gpu=own.name)
    other, gib = min(enough, key=lambda found: (*_distance(own, found[0]), found[1]))
    return Message.of("machine.larger.other", gpu=own.name, id=other.id, gib=gib)


def _rooms(record: GpuRecord, system: System) -> Iterator[tuple[float, float]]:
    """Yield the memory sizes in GiB that a GPU is sold with, and the bytes that a program gets."""
    if not record.unified_memory:
        room = capacity(record, system).value - held(record, system, None).value
        yield record.memory_bytes.value / GIB, room
        return
    for size in sizes(record):
        offer, taken = shared(record, system, installed(record, size), None)
        yield size / GIB, offer.value - taken.value


def _distance(own: GpuRecord, other: GpuRecord) -> tuple[bool, bool]:
    """Return how far another GPU is from what the person chose: its maker, then its place."""
    return other.vendor != own.vendor, other.segment == "datacenter"
