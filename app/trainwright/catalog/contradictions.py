"""What cannot be true of a processor, a board, a drive or another part beside GPUs."""

import re
from collections.abc import Iterator

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
from trainwright.catalog.platforms import against_platform
from trainwright.catalog.plausible import outside
from trainwright.catalog.problems import contradicted
from trainwright.messages import Message

LANE_MB_S = {1: 250, 2: 500, 3: 985, 4: 1969, 5: 3938, 6: 7563}
"""MB/s of a PCI Express lane (base specifications)."""
SATA_MB_S = 600
"""6 Gbit/s with 8b/10b coding."""
RATES: dict[str, tuple[int, int]] = {"ddr4": (1600, 5400), "ddr5": (3600, 10_000)}
"""MT/s from JEDEC's slowest to the fastest overclocked kits; assumed."""
PLUG_16_W = 450
"""Least that a supply with several 16-pin plugs has for each; assumed: 1000 W with two is sold."""
WRITES: tuple[float, float] = (20, 100_000)
"""Times that a warranty lets a drive be filled; assumed, from 100 (QLC) to 18,000 (Optane)."""
RADIATORS_MM = {92, 120, 140, 180, 240, 280, 360, 420, 480, 560}
"""Sizes that radiators have: one to four fans of 120 or 140 mm, and two odd ones."""
HEIGHTS_MM: tuple[float, float] = (20, 70)
"""Of a memory module up to the tallest fins; assumed. JEDEC's are 31.25."""
SMALLEST_GB = 32
"""Of a drive that anybody would list; assumed. What is smaller was meant in TB."""
SMALLEST_TOTAL_GIB = 16
"""Of what a board or a processor since DDR4 takes; assumed. What is smaller was meant in TB."""


def contradictions(part: PartRecord) -> Iterator[Message]:
    """Yield what contradicts itself in a part, or what its platform does not allow."""
    yield from against_platform(part)
    yield from outside(part)
    match part:
        case DriveRecord():
            yield from _drive(part)
        case PsuRecord():
            yield from _psu(part)
        case MemoryRecord():
            yield from _memory(part)
        case CaseRecord():
            yield from _case(part)
        case CoolerRecord():
            yield from _cooler(part)
        case CpuRecord():
            yield from _cpu(part)
        case BoardRecord():
            yield from _board(part)


def _drive(drive: DriveRecord) -> Iterator[Message]:
    generation, lanes = drive.pcie_generation, drive.pcie_lanes or 4
    if drive.interface != "nvme" and generation is not None:
        yield _told(drive, "pcie_generation", generation, "catalog.but-sata")
    if drive.interface == "hdd" and drive.form == "m.2":
        yield _told(drive, "form", drive.form, "catalog.but-disk")
    limit = SATA_MB_S if drive.interface != "nvme" else LANE_MB_S.get(generation or 0, 0) * lanes
    for key, rate in (("read_mb_s", drive.read_mb_s), ("write_mb_s", drive.write_mb_s)):
        if limit and rate and rate > limit:
            yield _told(drive, key, rate, "catalog.but-link", limit=limit)
    after, cached = drive.written_after_cache_mb_s, drive.write_mb_s
    if after and cached and after > cached:
        yield _told(drive, "written_after_cache_mb_s", after, "catalog.but-cache", limit=cached)
    yield from _capacity(drive)


def _capacity(drive: DriveRecord) -> Iterator[Message]:
    """Yield where gigabytes and terabytes were mixed."""
    capacity = drive.capacity_gb
    if capacity is None:
        return
    if capacity < SMALLEST_GB:
        yield _told(drive, "capacity_gb", capacity, "catalog.but-terabytes")
        return
    named = re.search(r"(?<!\d)(\d{1,9}(?:\.\d{1,9})?) ?(TB|GB)\b", drive.name)
    if named:
        stated = float(named[1]) * (1000 if named[2] == "TB" else 1)
        if not 0.93 * stated < capacity < 1.07 * stated:  # 1024 GB are sold as 1 TB, 960 as well
            yield _told(drive, "capacity_gb", capacity, "catalog.but-named", name=drive.name)
    if drive.endurance_tb:
        times = drive.endurance_tb * 1000 / capacity
        if not WRITES[0] <= times <= WRITES[1]:
            values = {"times": times}
            yield _told(drive, "endurance_tb", drive.endurance_tb, "catalog.but-filled", **values)


def _psu(psu: PsuRecord) -> Iterator[Message]:
    plugs = psu.connectors
    count = plugs.pcie_16 or 0
    if count > 1 and count * PLUG_16_W > psu.watts:
        values = {"watts": psu.watts, "each": psu.watts / count}
        yield _told(psu, "connectors.pcie_16", count, "catalog.but-watts", **values)
    if plugs.pcie_16_w and plugs.pcie_16_w > 600:
        yield _told(psu, "connectors.pcie_16_w", plugs.pcie_16_w, "catalog.but-600")
    if plugs.pcie_16_plug and not count:
        yield _told(psu, "connectors.pcie_16_plug", plugs.pcie_16_plug, "catalog.but-no-plug")
    if plugs.pcie_16_plug == "12v-2x6" and psu.atx_version == "2.x":
        yield _told(psu, "connectors.pcie_16_plug", "12v-2x6", "catalog.but-atx-2")
    named = re.search(r"\b(\d{3,4}) ?W\b", psu.name)
    if named and float(named[1]) != psu.watts:
        yield _told(psu, "watts", psu.watts, "catalog.but-named", name=psu.name)


def _memory(kit: MemoryRecord) -> Iterator[Message]:
    low, high = RATES[kit.type]
    if not low <= kit.mts <= high:
        yield _told(kit, "mts", kit.mts, "catalog.but-rates", type=kit.type, low=low, high=high)
    if kit.module == "cudimm" and kit.type == "ddr4":
        yield _told(kit, "module", kit.module, "catalog.but-cudimm")
    if kit.module == "rdimm" and kit.ecc is False:
        yield _told(kit, "ecc", "false", "catalog.but-registered")
    if kit.module != "rdimm" and re.search(r"\b(RDIMM|Registered)\b", kit.name, re.IGNORECASE):
        yield _told(kit, "module", kit.module, "catalog.but-named", name=kit.name)
    named = re.search(r"\((\d{1,9}) ?x ?(\d{1,9}) ?GB\)", kit.name)
    if named and (int(named[1]), float(named[2])) != (kit.modules, kit.module_gib):
        yield _told(kit, "modules", kit.modules, "catalog.but-named", name=kit.name)
    if kit.height_mm and not HEIGHTS_MM[0] <= kit.height_mm <= HEIGHTS_MM[1]:
        values = {"low": HEIGHTS_MM[0], "high": HEIGHTS_MM[1]}
        yield _told(kit, "height_mm", kit.height_mm, "catalog.but-height", **values)


def _case(case: CaseRecord) -> Iterator[Message]:
    longest = max((each for each in (case.depth_mm, case.height_mm) if each), default=None)
    if case.gpu_length_mm and longest and case.gpu_length_mm > longest:
        yield _told(case, "gpu_length_mm", case.gpu_length_mm, "catalog.but-case", limit=longest)
    cooler, width = case.cooler_height_mm, case.width_mm if case.kind != "rack" else case.height_mm
    if cooler and width and cooler >= width:
        yield _told(case, "cooler_height_mm", cooler, "catalog.but-case", limit=width)
    widest = {"atx": 7, "e-atx": 7, "eeb": 7, "ceb": 7, "xl-atx": 8}
    for board in case.boards or ():
        if case.slots and case.slots < widest.get(board, 0):
            yield _told(case, "slots", case.slots, "catalog.but-slots", form=board)
            break


def _cooler(cooler: CoolerRecord) -> Iterator[Message]:
    if cooler.type == "air" and cooler.radiator_mm:
        yield _told(cooler, "radiator_mm", cooler.radiator_mm, "catalog.but-air")
    if cooler.type == "liquid" and cooler.radiator_mm not in {None, *RADIATORS_MM}:
        values = {"sizes": sorted(RADIATORS_MM)}
        yield _told(cooler, "radiator_mm", cooler.radiator_mm, "catalog.but-radiator", **values)


def _cpu(cpu: CpuRecord) -> Iterator[Message]:
    if cpu.threads < cpu.cores:
        yield _told(
            cpu, "threads", cpu.threads, "catalog.but-least", other="cores", limit=cpu.cores
        )
    if cpu.base_ghz and cpu.boost_ghz < cpu.base_ghz:
        values = {"other": "base_ghz", "limit": cpu.base_ghz}
        yield _told(cpu, "boost_ghz", cpu.boost_ghz, "catalog.but-least", **values)
    if cpu.tdp_w and cpu.max_power_w and cpu.max_power_w < cpu.tdp_w:
        values = {"other": "tdp_w", "limit": cpu.tdp_w}
        yield _told(cpu, "max_power_w", cpu.max_power_w, "catalog.but-least", **values)
    if cpu.memory_max_gib and cpu.memory_max_gib < SMALLEST_TOTAL_GIB:
        yield _told(cpu, "memory_max_gib", cpu.memory_max_gib, "catalog.but-terabytes")


def _board(board: BoardRecord) -> Iterator[Message]:
    if board.memory_max_gib and board.memory_max_gib < SMALLEST_TOTAL_GIB:
        yield _told(board, "memory_max_gib", board.memory_max_gib, "catalog.but-terabytes")
    slots = {slot.id for slot in board.slots}
    known = slots | {socket.id for socket in board.m2 or ()} | {"usb4", "slimsas"}
    for mode in board.slot_modes:
        for id in sorted(set(mode) - slots):
            yield _told(board, "slot_modes", id, "catalog.but-no-slot")
    for conflict in board.conflicts:
        for key, id in (("when", conflict.when), ("then", conflict.then)):
            if id not in known and not id.startswith("sata"):
                yield _told(board, f"conflicts.{key}", id, "catalog.but-no-slot")


def _told(part: PartRecord, key: str, stated: object, id: str, **values: object) -> Message:
    return contradicted(part, key, stated, Message.of(id, **values))
