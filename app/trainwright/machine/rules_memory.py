"""M: memory modules, board and processor, and how much a machine with such GPUs wants."""

from collections.abc import Iterator
from typing import Any

from trainwright.catalog import BoardRecord, CpuRecord, MemoryRecord
from trainwright.machine.build import Check, Verdict
from trainwright.machine.facts import Facts
from trainwright.machine.finding import found, unknown
from trainwright.messages import Message

GIB = 1 << 30
OFFLOADED = 2.0
"""Of the GPUs' memory together, where state waits in the system's. Assumed: vendors' advice."""
SYSTEM_GIB = 8
"""That the system, the training program and its loader take beside; assumed."""
DETTMERS = "Tim Dettmers, A Full Hardware Guide to Deep Learning: as much as the largest GPU has"

TWO_A_CHANNEL = ("AM5", "LGA1700", "LGA1851")
"""Sockets whose memory runs much slower with two modules a channel."""
AM5_FULL_MTS = 3600
"""Of four modules. Source: AMD, product pages of Ryzen 7000 and 9000: 4x1R and 4x2R."""


def kind(facts: Facts) -> Iterator[Check]:
    """M1: type and kind of module fit board and processor, and are not mixed."""
    build = facts.build
    kits = [kit for kit, _ in build.memory]
    if not kits:
        return
    if len({(kit.type, kit.module == "rdimm") for kit in kits}) > 1:
        remedy = Message.of("build.m1.remedy-mix")
        names = [kit.name for kit in kits]
        yield found("M1", "error", "build.m1.mixed", source=JEDEC, remedy=remedy, memory=names)
        return
    for part in (build.board, build.cpu):
        if part is not None:
            yield _kind(kits[0], part)


JEDEC = "JEDEC: registered and unbuffered modules have different sockets or signals"


def _kind(kit: MemoryRecord, part: BoardRecord | CpuRecord) -> Check:
    is_board = isinstance(part, BoardRecord)
    types = (part.memory_type,) if isinstance(part, BoardRecord) else part.memory_types
    prefix = "board" if is_board else "cpu"
    missing = [
        f"{prefix}.{field}"
        for field, value in (("memory_types", types), ("memory_modules", part.memory_modules))
        if value is None
    ]
    values: dict[str, Any] = {
        "memory": kit.name,
        "part": part.name,
        "has": f"{kit.type.upper()} {kit.module.upper()}",
    }
    if types is not None and kit.type not in types:
        takes = [type.upper() for type in types]
        return _wrong(part, takes, values)
    if missing:
        return unknown("M1", part.name, *missing)
    modules = part.memory_modules or ()
    if kit.module in modules or (kit.module == "cudimm" and "udimm" in modules):
        source = part.provenance("memory_modules").source
        return found("M1", "ok", "build.m1.ok", source=source, **values)
    return _wrong(part, [module.upper() for module in modules], values)


def _wrong(part: BoardRecord | CpuRecord, takes: list[str], values: dict[str, Any]) -> Check:
    remedy = Message.of("build.m1.remedy", takes=takes)
    source = part.provenance("memory_modules").source
    return found(
        "M1", "error", "build.m1.error", source=source, remedy=remedy, takes=takes, **values
    )


def amount(facts: Facts) -> Iterator[Check]:
    """M2: not more modules than slots, nor more memory than board and processor take."""
    build = facts.build
    if not build.memory:
        return
    board, cpu = build.board, build.cpu
    values: dict[str, Any] = {"modules": build.modules, "gib": build.memory_gib}
    if board is not None and build.modules > board.memory_slots:
        remedy = Message.of("build.m2.remedy-slots", slots=board.memory_slots)
        source = board.provenance("memory_slots").source
        values |= {"board": board.name, "slots": board.memory_slots}
        yield found("M2", "error", "build.m2.slots", source=source, remedy=remedy, **values)
    parts = [part for part in (board, cpu) if part is not None]
    for part in parts:
        prefix = "board" if isinstance(part, BoardRecord) else "cpu"
        if part.memory_max_gib is None:
            yield unknown("M2", part.name, f"{prefix}.memory_max_gib")
            continue
        most = part.memory_max_gib
        fits = build.memory_gib <= most
        yield found(
            "M2",
            "ok" if fits else "error",
            "build.m2.ok" if fits else "build.m2.error",
            source=part.provenance("memory_max_gib").source,
            remedy=None if fits else Message.of("build.m2.remedy", most=most),
            part=part.name,
            most=most,
            **values,
        )


def channels(facts: Facts) -> Iterator[Check]:
    """M3: all channels have as many equal modules."""
    build = facts.build
    if not build.memory or build.cpu is None:
        return
    number = build.cpu.memory_channels
    if number is None:
        yield unknown("M3", build.cpu.name, "cpu.memory_channels")
        return
    if build.board is not None:
        number = min(number, build.board.memory_slots)
    equal = len({(kit.module_gib, kit.mts) for kit, _ in build.memory}) == 1
    source = build.cpu.provenance("memory_channels").source
    values: dict[str, Any] = {"modules": build.modules, "channels": number}
    values["cpu"] = build.cpu.name
    if build.modules % number:
        remedy = Message.of("build.m3.remedy", channels=number)
        yield found("M3", "warning", "build.m3.warning", source=source, remedy=remedy, **values)
    elif not equal:
        yield found("M3", "warning", "build.m3.unequal", source=source, **values)
    else:
        yield found("M3", "ok", "build.m3.ok", source=source, **values)


def rate(facts: Facts) -> Iterator[Check]:
    """M4: two modules a channel are slower, and kits above the official rate are overclocked."""
    build = facts.build
    cpu = build.cpu
    if not build.memory or cpu is None or cpu.socket is None:
        return
    kit = build.memory[0][0]
    values: dict[str, Any] = {"cpu": cpu.name, "mts": kit.mts, "modules": build.modules}
    if cpu.memory_channels == 2 and build.modules > 2 and cpu.socket in TWO_A_CHANNEL:
        remedy = Message.of("build.m4.remedy")
        if cpu.socket == "AM5":
            source = "AMD, product pages of Ryzen 7000 and 9000: 4 modules, DDR5-3600"
            values["official"] = AM5_FULL_MTS
            yield found("M4", "warning", "build.m4.am5", source=source, remedy=remedy, **values)
        else:
            source = "Intel, data sheets of Core 12th to 14th and Ultra 200S: 2 modules a channel"
            yield found("M4", "warning", "build.m4.two", source=source, remedy=remedy, **values)
        return
    official = cpu.memory_mts.get(kit.type)
    if official is None:
        yield unknown("M4", cpu.name, "cpu.memory_mts")
        return
    above = kit.mts > official
    source = cpu.provenance("memory_mts").source
    id = "build.m4.above" if above else "build.m4.ok"
    yield found("M4", "note" if above else "ok", id, source=source, official=official, **values)


def beside_gpus(facts: Facts) -> Iterator[Check]:
    """M5: enough memory beside that of the GPUs."""
    build = facts.build
    if not build.memory_gib or not build.gpus:
        return
    sizes = [card.memory_bytes.value / GIB for card in build.cards if not card.unified_memory]
    if not sizes:
        return
    largest, together, has = max(sizes), sum(sizes), build.memory_gib
    need = OFFLOADED * together if facts.use.offloads else largest
    values: dict[str, Any] = {"gib": has, "largest": largest, "together": together, "need": need}
    remedy = Message.of("build.m5.remedy", need=need)
    more = Message.of("build.m5.remedy", need=largest + SYSTEM_GIB)
    if has < need:
        id = "build.m5.offload" if facts.use.offloads else "build.m5.warning"
        yield found("M5", "warning", id, source=DETTMERS, remedy=remedy, **values)
    elif has < largest + SYSTEM_GIB:
        yield found("M5", "warning", "build.m5.bare", source=DETTMERS, remedy=more, **values)
    elif has < together:
        yield found("M5", "note", "build.m5.note", source=DETTMERS, **values)
    else:
        yield found("M5", "ok", "build.m5.ok", source=DETTMERS, **values)


def ecc(facts: Facts) -> Iterator[Check]:
    """M6: whether the memory's ECC works."""
    build = facts.build
    cpu, board = build.cpu, build.board
    if not build.memory or cpu is None:
        return
    kit = build.memory[0][0]
    if kit.ecc is None and kit.module != "rdimm":
        yield unknown("M6", kit.name, "memory.ecc")
        return
    if not kit.ecc and kit.module != "rdimm":
        return
    if cpu.ecc is None:
        yield unknown("M6", cpu.name, "cpu.ecc")
        return
    if cpu.ecc in ("chipset", "board") and board is None:
        return
    if cpu.ecc in ("chipset", "board") and board is not None and board.ecc is None:
        yield unknown("M6", board.name, "board.ecc")
        return
    works = cpu.ecc in ("required", "yes") or bool(
        cpu.ecc != "no" and board is not None and board.ecc
    )
    verdict: Verdict = "ok" if works else "note"
    yield found(
        "M6",
        verdict,
        f"build.m6.{verdict}",
        source=cpu.provenance("ecc").source,
        remedy=None if works else Message.of("build.m6.remedy"),
        memory=kit.name,
        cpu=cpu.name,
        board=board.name if board else "",
    )


RULES = (kind, amount, channels, rate, beside_gpus, ecc)
