"""Machines that nobody can have, and what can be had in their place."""

from collections.abc import Iterator

from trainwright.catalog import CpuRecord, GpuRecord
from trainwright.catalog.query import list_gpus
from trainwright.machine.capacity import GIB
from trainwright.machine.choice import MachineChoice
from trainwright.machine.shared import sizes, sold
from trainwright.messages import Message, UserError

PARTS = ("board", "case", "psu", "cooler")
"""Keys of parts that one buys for a computer with slots."""
SERVER_SOCKETS = frozenset(("SP3", "SP5", "SP6", "LGA3647", "LGA4189", "LGA4677", "LGA4710"))
"""Of processors that server boards for modules have. LGA4677 is Xeon W's, too."""
MOST = {"v100": 16, "a100": 16, "gh200": 2, "gb200": 4, "gb300": 4, "mi300a": 4}
"""Modules in one computer by the first word of the id: DGX-2, Google's a2-megagpu-16g, GH200 NVL2,
a compute tray of NVL72, and four sockets of MI300A."""
MOST_CARDS = 16
"""Of cards in one computer: Google's a2-megagpu-16g and expansion chassis have 16."""
MOST_MODULES = 8
"""Of all others: HGX, and AMD's and OCP's boards for eight OAM modules."""
LEAST_SEEN = 0.9
"""Of the smallest memory, the least that a system sees of it; firmware keeps up to 5 %."""


def check_possible(
    choice: MachineChoice, records: tuple[GpuRecord, ...], processor: CpuRecord | None
) -> None:
    """Refuse a machine that cannot exist; ``records`` are its GPUs in the plan's order.

    Raises:
        UserError: names the key, why there is no such machine, and what there is.
    """
    for problem in _problems(choice, records, processor):
        raise UserError(problem)


def _problems(
    choice: MachineChoice, records: tuple[GpuRecord, ...], processor: CpuRecord | None
) -> Iterator[Message]:
    for number, (chosen, record) in enumerate(zip(choice.gpus, records, strict=True)):
        key = f"machine.gpus[{number}]"
        others = [other for place, other in enumerate(records) if place != number]
        around = [f"machine.{part}" for part in foreign_parts(choice, record, processor)]
        if is_module(record):
            yield from _module(key, record, chosen.count, others, around)
        elif is_built_in(record):
            yield from _built_in(key, record, chosen.count, others, around)
        else:
            yield from _too_many(key, record, chosen.count)
        if record.unified_memory:
            yield from _memory(record, choice.memory_gib)


def is_module(record: GpuRecord) -> bool:
    """Return whether a GPU sits on a server's board of its own: SXM, OAM and superchips."""
    return record.form == "module" and not record.unified_memory


def is_built_in(record: GpuRecord) -> bool:
    """Return whether a GPU is a part of its computer, which has one of it."""
    return record.unified_memory or record.segment == "laptop"


def most_of(record: GpuRecord) -> int:
    """Return how many of a GPU one computer holds at most; 16 of cards."""
    if is_built_in(record):
        return 1
    family = record.id.partition("-")[0]
    return MOST.get(family, MOST_MODULES) if is_module(record) else MOST_CARDS


def foreign_parts(
    choice: MachineChoice, record: GpuRecord, processor: CpuRecord | None
) -> tuple[str, ...]:
    """Return the keys of a plan's parts that stand for another computer than the GPU's."""
    if not (is_module(record) or is_built_in(record)):
        return ()
    parts = tuple(part for part in PARTS if getattr(choice, part))
    socket = processor.socket if processor is not None else None
    fits = socket is None or (is_module(record) and socket in SERVER_SOCKETS)
    return parts if fits else (*parts, "cpu")


def _module(
    key: str, record: GpuRecord, count: int, others: list[GpuRecord], around: list[str]
) -> Iterator[Message]:
    """Yield why a server's board cannot hold these modules."""
    yield from _too_many(key, record, count)
    for other in others:
        if other.form == "module":
            yield _no("two-modules", key=f"{key}.id", gpu=record.name, other=other.name)
    if around:
        card = nearest_card(record)
        yield _no("module", key=f"{key}.id", gpu=record.name, card=card.id, parts=around)


def _too_many(key: str, record: GpuRecord, count: int) -> Iterator[Message]:
    """Yield that so many are several computers."""
    most = most_of(record)
    if count > most:
        nodes = -(-count // most)
        values = {"count": count, "most": most, "nodes": nodes, "each": -(-count // nodes)}
        yield _no("modules", key=f"{key}.count", gpu=record.name, **values)


def _built_in(
    key: str, record: GpuRecord, count: int, others: list[GpuRecord], around: list[str]
) -> Iterator[Message]:
    """Yield why a GPU that is part of its computer cannot be there twice, or in another."""
    kind = _kind(record)
    if count > 1:
        values = {"gpu": record.name, "count": count, "card": nearest_card(record).id}
        yield _no(f"several-{kind}", key=f"{key}.count", **values, **_most_memory(record))
    lonely = kind in ("apple", "gb10")
    for other in others:
        if lonely or other.form != "card":
            yield _no("together", key=f"{key}.id", gpu=record.name, other=other.name)
    if around:
        card = nearest_card(record)
        yield _no("built-in", key=f"{key}.id", gpu=record.name, card=card.id, parts=around)


def _kind(record: GpuRecord) -> str:
    """Return which of the computers it is a part of: each has its own way to more."""
    if record.segment == "laptop":
        return "laptop"
    if record.vendor == "Apple":
        return "apple"
    if record.id.startswith("gb10"):
        return "gb10"
    return "board" if record.form == "module" else "chip"


def _most_memory(record: GpuRecord) -> dict[str, object]:
    """Return the vendor's computer with the most shared memory: what one buys instead of two."""
    if not record.unified_memory:
        return {}
    alike = [one for one in list_gpus(vendor=record.vendor) if one.unified_memory]
    largest = max(alike, key=lambda one: (one.memory_bytes.value, one.launch or ""))
    return {"largest": largest.id, "gib": largest.memory_bytes.value / GIB}


def _memory(record: GpuRecord, stated_gib: float | None) -> Iterator[Message]:
    """Yield why no such computer has that much memory; macOS shows the very size that was sold."""
    if stated_gib is None:
        return
    stated, known = stated_gib * GIB, sizes(record)
    inside = LEAST_SEEN * known[0] <= stated <= known[-1]
    if not inside or (record.vendor == "Apple" and record.memory_sizes and stated not in known):
        values = {"gpu": record.name, "stated": stated_gib, "sizes": sold(record)}
        yield _no("memory", key="machine.memory_gib", **values)


def nearest_card(record: GpuRecord) -> GpuRecord:
    """Return the card for a slot that is most like a module or a laptop's GPU.

    Of the same maker and, where there is one, of the same architecture, with no less memory and
    nearest in it.
    """
    wanted = "consumer" if record.segment == "laptop" else record.segment
    return min(
        (one for one in list_gpus(vendor=record.vendor) if one.form == "card"),
        default=list_gpus(segment="workstation")[0],
        key=lambda one: (
            one.segment != wanted,
            one.architecture != record.architecture,
            one.memory_bytes.value < record.memory_bytes.value,
            abs(one.memory_bytes.value - record.memory_bytes.value),
            one.id,
        ),
    )


def _no(id: str, /, **values: object) -> Message:
    return Message.of(f"machine.impossible.{id}", **values)
