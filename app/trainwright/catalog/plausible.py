"""Sizes, times and rates that parts beside GPUs have: what lies outside was a slip of the pen.

Ranges are those of what is sold, with room; they are assumed where no source stands beside them.
"""

from collections.abc import Iterator, Mapping

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
from trainwright.catalog.problems import contradicted
from trainwright.messages import Message

RANGES: Mapping[type[PartRecord], Mapping[str, tuple[float, float]]] = {
    CpuRecord: {
        "boost_ghz": (1.5, 6.5), "base_ghz": (0.8, 5.0), "cores": (2, 288), "tdp_w": (6, 600),
        "max_power_w": (10, 1000),
    },
    MemoryRecord: {"cas": (9, 60), "volts": (1.05, 1.65), "modules": (1, 8)},
    DriveRecord: {
        "read_mb_s": (50, 16_000), "write_mb_s": (50, 16_000), "capacity_gb": (1, 250_000),
    },
    PsuRecord: {"watts": (150, 3500), "length_mm": (80, 300)},
    CaseRecord: {
        "width_mm": (100, 700), "height_mm": (40, 900), "depth_mm": (150, 1100),
        "psu_length_mm": (80, 600), "cooler_height_mm": (25, 260), "gpu_length_mm": (100, 700),
        "slots": (1, 12),
    },
    CoolerRecord: {"height_mm": (15, 185), "rated_w": (30, 1000), "noise_db": (5, 75)},
}  # fmt: skip
"""Lowest and highest of each field."""
MODULE_GIB = {4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512}
"""Sizes of memory modules; source: JEDEC's densities of 4 to 64 Gbit."""
LATENCY_NS = (7.5, 25.0)
"""From command to data, cas / (mts / 2)."""
M2_MM = {30, 42, 60, 80, 110}
"""Source: PCI-SIG, M.2 specification."""
SINCE = {
    "AM4": 2016, "AM5": 2022, "LGA1151": 2015, "LGA1200": 2020, "LGA1700": 2021, "LGA1851": 2024,
    "sTRX4": 2019, "sWRX8": 2020, "sTR5": 2023, "SP3": 2017, "SP5": 2022, "LGA4677": 2023,
    "LGA3647": 2017, "LGA4189": 2020, "LGA4710": 2024, "LGA7529": 2024,
}  # fmt: skip
"""First year of a socket; source: AMD's and Intel's product pages."""
OPENINGS = {"mini-itx": 1, "micro-atx": 4, "atx": 7, "ceb": 7, "e-atx": 8, "eeb": 7, "xl-atx": 9}
"""Slots for cards that fit on a board; source: the ATX and SSI specifications, and what makers of
larger boards put on them."""


def outside(part: PartRecord) -> Iterator[Message]:
    """Yield what no such part has."""
    for key, (low, high) in RANGES.get(type(part), {}).items():
        stated = getattr(part, key)
        if stated is not None and not low <= stated <= high:
            yield contradicted(
                part, key, stated, Message.of("catalog.but-range", low=low, high=high)
            )
    match part:
        case CpuRecord():
            yield from _cpu(part)
        case MemoryRecord():
            yield from _memory(part)
        case DriveRecord():
            yield from _drive(part)
        case PsuRecord():
            yield from _psu(part)
        case CaseRecord():
            yield from _case(part)
        case BoardRecord():
            yield from _board(part)
    socket, year = getattr(part, "socket", None), (part.launch or "")[:4]
    if socket in SINCE and year and int(year) < SINCE[socket]:
        because = Message.of("catalog.but-since", socket=socket, year=str(SINCE[socket]))
        yield contradicted(part, "launch", part.launch, because)


def _cpu(cpu: CpuRecord) -> Iterator[Message]:
    yield from _most(cpu, "threads", cpu.threads, "cores", 2 * cpu.cores)
    yield from _most(cpu, "efficient_cores", cpu.efficient_cores, "cores", cpu.cores)
    yield from _most(cpu, "slot_lanes", cpu.slot_lanes, "lanes_usable", cpu.lanes_usable)


def _memory(kit: MemoryRecord) -> Iterator[Message]:
    if kit.module_gib not in MODULE_GIB:
        because = Message.of("catalog.but-sizes", sizes=sorted(MODULE_GIB))
        yield contradicted(kit, "module_gib", kit.module_gib, because)
    latency = 2000 * kit.cas / kit.mts if kit.cas else None
    if latency is not None and not LATENCY_NS[0] <= latency <= LATENCY_NS[1]:
        low, high = (round(each * kit.mts / 2000) for each in LATENCY_NS)
        yield contradicted(kit, "cas", kit.cas, Message.of("catalog.but-range", low=low, high=high))


def _drive(drive: DriveRecord) -> Iterator[Message]:
    if drive.form == "m.2" and drive.length_mm not in {None, *M2_MM}:
        because = Message.of("catalog.but-sizes", sizes=sorted(M2_MM))
        yield contradicted(drive, "length_mm", drive.length_mm, because)
    if drive.interface == "hdd" and drive.nand is not None:
        yield contradicted(drive, "nand", drive.nand, Message.of("catalog.but-disk"))
    for key, kiops, rate in (
        ("random_read_kiops", drive.random_read_kiops, drive.read_mb_s),
        ("random_write_kiops", drive.random_write_kiops, drive.write_mb_s),
    ):
        if kiops and rate and kiops * 4.096 > 1.2 * rate:
            yield contradicted(
                drive, key, kiops, Message.of("catalog.but-kiops", limit=rate / 4.096)
            )


def _psu(psu: PsuRecord) -> Iterator[Message]:
    eights = psu.connectors.pcie_8
    if eights and eights * 150 > 2 * psu.watts:
        because = Message.of("catalog.but-watts", watts=psu.watts, each=psu.watts / eights)
        yield contradicted(psu, "connectors.pcie_8", eights, because)


def _case(case: CaseRecord) -> Iterator[Message]:
    sides = [each for each in (case.depth_mm, case.height_mm, case.width_mm) if each]
    longest = max(sides, default=None)
    yield from _most(case, "psu_length_mm", case.psu_length_mm, "depth_mm", longest)
    largest = max(case.radiators_mm or (), default=None)
    yield from _most(case, "radiators_mm", largest, "depth_mm", longest)


def _board(board: BoardRecord) -> Iterator[Message]:
    positions = [slot.position for slot in board.slots if slot.position is not None]
    if len(set(positions)) < len(positions):
        yield contradicted(board, "slots.position", max(positions), Message.of("catalog.but-twice"))
    ids = [slot.id for slot in board.slots] + [socket.id for socket in board.m2 or ()]
    for id in sorted({id for id in ids if ids.count(id) > 1}):
        yield contradicted(board, "slots.id", id, Message.of("catalog.but-twice"))
    most = OPENINGS[board.form_factor]
    over = max((len(board.slots), *positions), default=0)
    if over > most:
        because = Message.of("catalog.but-openings", form=board.form_factor, limit=most)
        yield contradicted(board, "slots", over, because)
    for socket in board.m2 or ():
        if socket.lanes is not None and socket.lanes > 4:
            yield contradicted(board, "m2.lanes", socket.lanes, Message.of("catalog.but-m2"))
        if not set(socket.lengths_mm) <= M2_MM:
            because = Message.of("catalog.but-sizes", sizes=sorted(M2_MM))
            yield contradicted(board, "m2.lengths_mm", max(socket.lengths_mm), because)


def _most(
    part: PartRecord, key: str, stated: float | None, other: str, limit: float | None
) -> Iterator[Message]:
    if stated is not None and limit is not None and stated > limit:
        yield contradicted(
            part, key, stated, Message.of("catalog.but-most", other=other, limit=limit)
        )
