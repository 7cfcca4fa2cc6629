"""What a socket and a chipset allow: a processor or a board cannot have more.

The most that any of a platform's processors and boards have, by the makers' platform overviews.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from trainwright.catalog.part_records import M2, BoardRecord, CpuRecord, PartRecord, Slot
from trainwright.catalog.problems import contradicted
from trainwright.messages import Message


@dataclass(frozen=True, slots=True)
class Socket:
    """What fits into a socket, and around it."""

    memory: tuple[str, ...]
    channels: int
    modules: int
    """Slots for memory of one processor."""
    gib: float
    """Of memory, with the largest modules that a maker of boards names."""
    lanes: int
    """PCI Express lanes for slots and drives, the chipset's link not counted."""
    generation: int


SOCKETS = {
    "AM4": Socket(("ddr4",), 2, 4, 128, 20, 4),
    "AM5": Socket(("ddr5",), 2, 4, 256, 24, 5),
    "TR4": Socket(("ddr4",), 4, 8, 256, 60, 3),
    "sTRX4": Socket(("ddr4",), 4, 8, 256, 56, 4),
    "sWRX8": Socket(("ddr4",), 8, 16, 2048, 128, 4),
    "sTR5": Socket(("ddr5",), 8, 16, 2048, 128, 5),
    "SP3": Socket(("ddr4",), 8, 16, 4096, 128, 4),
    "SP5": Socket(("ddr5",), 12, 24, 9216, 128, 5),
    "SP6": Socket(("ddr5",), 6, 12, 3072, 96, 5),
    "LGA1151": Socket(("ddr4",), 2, 4, 128, 16, 3),
    "LGA1200": Socket(("ddr4",), 2, 4, 128, 20, 4),
    "LGA1700": Socket(("ddr4", "ddr5"), 2, 4, 256, 20, 5),
    "LGA1851": Socket(("ddr5",), 2, 4, 256, 24, 5),
    "LGA2066": Socket(("ddr4",), 4, 8, 256, 48, 3),
    "LGA3647": Socket(("ddr4",), 6, 12, 1536, 48, 3),
    "LGA4189": Socket(("ddr4",), 8, 16, 6144, 64, 4),
    "LGA4677": Socket(("ddr5",), 8, 16, 4096, 112, 5),
    "LGA4710": Socket(("ddr5",), 8, 16, 4096, 136, 5),
    "LGA7529": Socket(("ddr5",), 12, 12, 3072, 96, 5),
}
"""Source: AMD's and Intel's platform overviews and processor data sheets. A socket that is not
listed is not checked."""


@dataclass(frozen=True, slots=True)
class Chipset:
    """What hangs on a chipset."""

    socket: str
    sata: int
    """Ports of its own, those of the processor among them."""
    uplink: tuple[int, int]
    """Generation and lanes to the processor."""


CHIPSETS = {
    **dict.fromkeys(("A320", "A520"), Chipset("AM4", 6, (3, 4))),
    **dict.fromkeys(("B350", "B450", "X370", "X470"), Chipset("AM4", 8, (3, 4))),
    "B550": Chipset("AM4", 6, (3, 4)),
    "X570": Chipset("AM4", 12, (4, 4)),
    **dict.fromkeys(("A620", "B650", "B650E", "B840", "B850", "X870"), Chipset("AM5", 4, (4, 4))),
    **dict.fromkeys(("X670", "X670E", "X870E"), Chipset("AM5", 8, (4, 4))),
    **dict.fromkeys(("B360", "B365", "H370", "Q370"), Chipset("LGA1151", 6, (3, 4))),
    **dict.fromkeys(("Z370", "Z390"), Chipset("LGA1151", 6, (3, 4))),
    "H310": Chipset("LGA1151", 4, (2, 4)),
    **dict.fromkeys(("B460", "H470", "Q470", "Z490", "B560"), Chipset("LGA1200", 6, (3, 4))),
    **dict.fromkeys(("H410", "H510"), Chipset("LGA1200", 4, (3, 4))),
    **dict.fromkeys(("H570", "Z590"), Chipset("LGA1200", 6, (3, 8))),
    **dict.fromkeys(("H610", "B660", "B760"), Chipset("LGA1700", 4, (4, 4))),
    **dict.fromkeys(("H670", "H770", "Z690", "Z790", "W680"), Chipset("LGA1700", 8, (4, 8))),
    **dict.fromkeys(("H810", "B860"), Chipset("LGA1851", 4, (4, 4))),
    **dict.fromkeys(("Z890", "W880"), Chipset("LGA1851", 8, (4, 8))),
    "X399": Chipset("TR4", 12, (3, 4)),
    "TRX40": Chipset("sTRX4", 12, (4, 8)),
    "WRX80": Chipset("sWRX8", 12, (4, 8)),
    "TRX50": Chipset("sTR5", 8, (4, 4)),
    "WRX90": Chipset("sTR5", 8, (4, 4)),
    "W790": Chipset("LGA4677", 8, (4, 8)),
}
"""Source: AMD, chipset pages; Intel, ARK. A chipset that is not listed is not checked."""
MORE_SATA = 2
"""Ports that a maker adds with a controller of its own, such as the ASM1061: on the MSI MAG B650
TOMAHAWK WIFI, six in all. Assumed the most for boards of desktop processors."""
LENGTHS = {"x1": 1, "x4": 4, "x8": 8, "x16": 16}


def against_platform(part: PartRecord) -> Iterator[Message]:
    """Yield what the platform of a processor or a board does not allow."""
    if isinstance(part, CpuRecord) and part.socket in SOCKETS:
        yield from _processor(part, SOCKETS[part.socket])
    if isinstance(part, BoardRecord):
        if part.socket in SOCKETS:
            yield from _around_socket(part, SOCKETS[part.socket])
        if part.chipset in CHIPSETS:
            yield from _behind_chipset(part, part.chipset, CHIPSETS[part.chipset])
        for slot in part.slots:
            if slot.lanes and slot.lanes > LENGTHS[slot.length]:
                because = Message.of("catalog.but-connector", slot=slot.id, length=slot.length)
                yield contradicted(part, "slots.lanes", slot.lanes, because)


def _processor(cpu: CpuRecord, socket: Socket) -> Iterator[Message]:
    yield from _most(cpu, cpu.socket or "", {
        "slot_lanes": (cpu.slot_lanes, socket.lanes),
        "lanes_usable": (cpu.lanes_usable, socket.lanes),
        "pcie_generation": (cpu.pcie_generation, socket.generation),
        "memory_channels": (cpu.memory_channels, socket.channels),
        "memory_max_gib": (cpu.memory_max_gib, socket.gib),
    })  # fmt: skip
    for kind in cpu.memory_types or ():
        if kind not in socket.memory:
            because = Message.of("catalog.but-memory", socket=cpu.socket, types=socket.memory)
            yield contradicted(cpu, "memory_types", kind, because)
    for name in cpu.chipsets or ():
        if name in CHIPSETS and CHIPSETS[name].socket != cpu.socket:
            because = Message.of("catalog.but-chipset", chipset=name, socket=CHIPSETS[name].socket)
            yield contradicted(cpu, "socket", cpu.socket, because)


def _around_socket(board: BoardRecord, socket: Socket) -> Iterator[Message]:
    sums = [
        sum(lanes for id, lanes in mode.items() if _from_processor(board, id))
        for mode in board.slot_modes
    ]
    places: tuple[Slot | M2, ...] = (*board.slots, *(board.m2 or ()))
    generations = [place.generation or 0 for place in places if place.source == "cpu"]
    yield from _most(board, board.socket, {
        "memory_slots": (board.memory_slots, socket.modules),
        "memory_max_gib": (board.memory_max_gib, _most_gib(board, socket)),
        "slot_modes": (max(sums, default=0), socket.lanes),
        "slots.generation": (max(generations, default=0), socket.generation),
    })  # fmt: skip
    if board.memory_type not in socket.memory:
        because = Message.of("catalog.but-memory", socket=board.socket, types=socket.memory)
        yield contradicted(board, "memory_type", board.memory_type, because)


def _most_gib(board: BoardRecord, socket: Socket) -> float:
    """Return the memory that a board may take; of desktop ones with few slots it is less."""
    share = board.memory_slots / socket.modules if socket.channels == 2 else 1.0
    return socket.gib * min(share, 1.0)


def _from_processor(board: BoardRecord, id: str) -> bool:
    return any(slot.id == id and slot.source == "cpu" for slot in board.slots)


def _behind_chipset(board: BoardRecord, name: str, chipset: Chipset) -> Iterator[Message]:
    if board.socket != chipset.socket:
        because = Message.of("catalog.but-chipset", chipset=name, socket=chipset.socket)
        yield contradicted(board, "socket", board.socket, because)
        return
    most: dict[str, tuple[float | None, float]] = {
        "sata_ports": (board.sata_ports, chipset.sata + MORE_SATA)
    }
    if board.uplink:
        generation, lanes = chipset.uplink
        most["uplink.generation"] = board.uplink.generation, generation
        most["uplink.lanes"] = board.uplink.lanes, lanes
    yield from _most(board, name, most)


def _most(
    part: PartRecord, platform: str, values: dict[str, tuple[float | None, float]]
) -> Iterator[Message]:
    for key, (stated, limit) in values.items():
        if stated is not None and stated > limit:
            because = Message.of("catalog.but-platform", platform=platform, limit=limit)
            yield contradicted(part, key, stated, because)
