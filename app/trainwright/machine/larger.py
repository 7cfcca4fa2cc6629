"""Computers with more memory, for a plan that exceeds one whose memory cannot be extended."""

from collections.abc import Iterator

from trainwright.catalog import GpuRecord
from trainwright.catalog.query import list_gpus
from trainwright.machine.build import System
from trainwright.machine.capacity import GIB, capacity, held
from trainwright.machine.machine import Gpu
from trainwright.machine.shared import installed, shared, sizes
from trainwright.messages import Message


def larger(gpu: Gpu, system: System, need: float) -> Message | None:
    """Return where ``need`` bytes would fit that a program takes; None for a card in a slot.

    First the same computer as it is sold with more memory, then the newest GPU with the least
    memory that is enough: of the same maker and for a desk where there is one.
    """
    own = gpu.record
    if not own.unified_memory and own.segment != "laptop":
        return None
    for gib, room in _rooms(own, system):
        if room >= need:
            return Message.of("machine.larger.memory", gpu=own.name, gib=gib)
    enough = [
        (one, gib)
        for one in list_gpus(sort="launch")
        for gib, room in _rooms(one, system)
        if room >= need
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
