"""Which slot each card gets and which socket each drive, with how many lanes, and what that costs.

The seating itself is ``wiring``'s; here parts become what it asks about, and its answer sentences.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil

from trainwright.catalog import BoardRecord, CpuRecord, DriveRecord, GpuRecord
from trainwright.catalog.part_records import LaneSource
from trainwright.machine.build import Build
from trainwright.machine.wiring import (
    EDGE,
    CardNeed,
    DriveNeed,
    Lanes,
    Seating,
    Wiring,
    seated,
    wiring,
)
from trainwright.messages import Message

CARD_GENERATION = 4
"""Of a card of which nobody says it; assumed: of the cards sold from 2020 to 2024."""


MOST = 24
"""Cards, and drives, that are seated at all; assumed: no board has as many places."""


@dataclass(frozen=True, slots=True)
class PlacedGpu:
    """A card and the slot that it gets."""

    record: GpuRecord
    slot: str | None
    """None: there is none for it, or the board's slots are not known."""
    position: int | None = None
    """Of its slot, among the case's openings."""
    openings: int | None = None
    """That it covers; None where nobody says."""
    generation: int | None = None
    lanes: int | None = None
    """None where the board's record does not say."""
    source: LaneSource | None = None
    gb_s: float | None = None
    """Each way, the chipset's link respected."""
    because: tuple[Message, ...] = ()
    """Why it has less than it could take."""


@dataclass(frozen=True, slots=True)
class PlacedDrive:
    """A drive and where it is plugged in."""

    record: DriveRecord
    socket: str | None
    """Of the board; ``sata``; None: no place is left, or none is known."""
    generation: int | None = None
    lanes: int | None = None
    source: LaneSource | None = None
    gb_s: float | None = None
    because: tuple[Message, ...] = ()


@dataclass(frozen=True, slots=True)
class Placement:
    """Where everything goes."""

    gpus: tuple[PlacedGpu, ...] = ()
    drives: tuple[PlacedDrive, ...] = ()
    lost: tuple[Message, ...] = ()
    """What else of the board no longer works."""
    complete: bool = False
    """Whether all that decides is known: False without a board."""
    sata_left: int | None = None
    """Ports, after what M.2 sockets take and before any drive."""
    uplink_gb_s: float | None = None

    @property
    def slowest(self) -> PlacedGpu | None:
        """The card with the least bandwidth; None where any is not known."""
        if not self.gpus or any(gpu.gb_s is None for gpu in self.gpus):
            return None
        return min(self.gpus, key=lambda gpu: gpu.gb_s or 0.0)


def place(build: Build) -> Placement:
    """Return the best seating of the build's cards and drives on its board."""
    board = build.board
    if board is None:
        return Placement(
            gpus=tuple(PlacedGpu(card, None, openings=openings(card)) for card in build.cards),
            drives=tuple(PlacedDrive(drive, None) for drive in build.drives),
        )
    wired = _wiring(build, board)
    cards = build.cards
    m2 = [drive for drive in build.drives if form(drive) == "m.2"]
    found = _seated(wired, build, m2)
    sockets = _Sockets(board, m2, found)
    sata = _sata_left(board, found)
    return Placement(
        gpus=tuple(
            _placed_gpu(board, wired, card, id, link, found, build.cpu)
            for card, id, link in zip(cards, found.cards, found.card_lanes, strict=True)
        ),
        drives=tuple(_placed_drive(drive, sockets, board) for drive in build.drives),
        lost=tuple(_lost(found)),
        complete=board.lanes_complete,
        sata_left=sata,
        uplink_gb_s=wired.uplink_gb_s,
    )


def narrowest(build: Build) -> Lanes | None:
    """Return what the card with the least bandwidth gets; None where any is not known."""
    if build.board is None or not build.gpus:
        return None
    m2 = [drive for drive in build.drives if form(drive) == "m.2"]
    links = _seated(_wiring(build, build.board), build, m2).card_lanes
    known = [link for link in links if link is not None and link.lanes is not None]
    return min(known, key=lambda link: link.gb_s) if len(known) == len(links) else None


def _seated(wired: Wiring, build: Build, m2: list[DriveRecord]) -> Seating:
    """Return the seating of the first cards and drives; for the others there is no place."""
    cards = build.cards
    needs = tuple(_card(card, riser=build.risers) for card in cards[:MOST])
    found = seated(wired, needs, tuple(map(_drive, m2[:MOST])))
    if len(cards) <= MOST and len(m2) <= MOST:
        return found
    no_card, no_drive = (None,) * len(cards[MOST:]), (None,) * len(m2[MOST:])
    return replace(
        found,
        cards=found.cards + no_card,
        card_lanes=found.card_lanes + no_card,
        drives=found.drives + no_drive,
        drive_lanes=found.drive_lanes + no_drive,
    )


def _wiring(build: Build, board: BoardRecord) -> Wiring:
    cpu = build.cpu
    return wiring(
        board,
        cpu_generation=cpu.pcie_generation if cpu else None,
        cpu_lanes=cpu.slot_lanes if cpu else None,
        openings=build.case.slots if build.case and not build.risers else None,
        cabled=any(form(drive) in ("u.2", "u.3") for drive in build.drives),
        bridge=build.bridge_slots,
    )


def _card(record: GpuRecord, *, riser: bool) -> CardNeed:
    """Return what a card asks of the board; on a riser cable it covers no slot but its own."""
    covered = 1 if riser else openings(record)
    return CardNeed(record.pcie_generation or CARD_GENERATION, record.pcie_lanes or EDGE, covered)


def openings(record: GpuRecord) -> int | None:
    """Return the openings of a case that the card covers."""
    width = slot_width(record)
    return ceil(width) if width is not None else None


def slot_width(record: GpuRecord) -> float | None:
    """Return the slots that the maker's own card takes; where it sells none, the thinnest one."""
    fact = record.slot_width or record.thinnest_slots
    return fact.value if fact is not None else None


def form(drive: DriveRecord) -> str:
    """Return how a drive is mounted; where nobody says, how most of its interface are."""
    if drive.form is not None:
        return drive.form
    return {"nvme": "m.2", "sata": "2.5", "hdd": "3.5"}[drive.interface]


def _drive(drive: DriveRecord) -> DriveNeed:
    return DriveNeed(
        sata=drive.interface == "sata",
        generation=drive.pcie_generation or CARD_GENERATION,
        lanes=drive.pcie_lanes or 4,
        length_mm=drive.length_mm or 80,
    )


def _placed_gpu(
    board: BoardRecord,
    wired: Wiring,
    card: GpuRecord,
    id: str | None,
    link: Lanes | None,
    found: Seating,
    cpu: CpuRecord | None,
) -> PlacedGpu:
    if id is None or link is None:
        return PlacedGpu(card, None, openings=openings(card))
    slot = next(slot for slot in board.slots if slot.id == id)
    return PlacedGpu(
        record=card,
        slot=id,
        position=slot.position,
        openings=openings(card),
        generation=link.generation,
        lanes=link.lanes,
        source=slot.source,
        gb_s=link.gb_s if link.lanes is not None else None,
        because=tuple(_why(wired, card, id, link, found, cpu)) if link.lanes is not None else (),
    )


def _why(
    wired: Wiring,
    card: GpuRecord,
    id: str,
    link: Lanes,
    found: Seating,
    cpu: CpuRecord | None,
) -> Iterator[Message]:
    """Yield why a card in this slot has less than it could take."""
    slot = next(slot for slot in wired.slots if slot.id == id)
    need = _card(card, riser=False)
    lanes, mode = link.lanes or 0, dict(found.mode)
    if lanes < need.lanes:
        taken = [one.when for one in found.active if one.then == id and one.lanes <= lanes]
        others = [other for other in mode if other != id and mode[other] and other in found.cards]
        if taken:
            yield Message.of("build.loss.m2", slot=id, lanes=lanes, socket=taken[0])
        elif (mode.get(id) or 0) == lanes and others:
            yield Message.of("build.loss.shared", slot=id, lanes=lanes, others=others)
        elif (mode.get(id) or slot.lanes) == lanes:
            yield Message.of("build.loss.wired", slot=id, lanes=lanes)
        else:
            name = cpu.name if cpu else ""
            yield Message.of("build.loss.processor", slot=id, lanes=lanes, cpu=name)
    if link.generation is not None and link.generation < need.generation:
        own = slot.generation or link.generation
        if link.generation < own and cpu is not None:
            yield Message.of(
                "build.loss.cpu-generation", slot=id, generation=link.generation, cpu=cpu.name
            )
        else:
            yield Message.of("build.loss.generation", slot=id, generation=link.generation)
    if slot.source == "chipset":
        yield Message.of("build.loss.chipset", slot=id)


class _Sockets:
    """The M.2 drives' sockets, handed out in the order of the drives."""

    def __init__(self, board: BoardRecord, drives: list[DriveRecord], found: Seating) -> None:
        self._left = list(zip(drives, found.drives, found.drive_lanes, strict=True))
        self._found = found
        self._board = board

    def of(self, drive: DriveRecord) -> PlacedDrive:
        index = next(i for i, (known, _, _) in enumerate(self._left) if known is drive)
        _, id, link = self._left.pop(index)
        if id is None or link is None:
            return PlacedDrive(drive, None)
        known = link.lanes is not None
        placed = PlacedDrive(drive, id, link.generation, link.lanes, link.source)
        if not known:
            return placed
        return replace(placed, gb_s=link.gb_s, because=tuple(self._why(drive, id, link)))

    def _why(self, drive: DriveRecord, id: str, link: Lanes) -> Iterator[Message]:
        need = _drive(drive)
        lanes = link.lanes or 0
        if lanes < need.lanes:
            taken = [one.when for one in self._found.active if one.then == id]
            if taken:
                yield Message.of("build.loss.m2", slot=id, lanes=lanes, socket=taken[0])
            else:
                yield Message.of("build.loss.wired", slot=id, lanes=lanes)
        if link.generation is not None and link.generation < need.generation:
            yield Message.of("build.loss.generation", slot=id, generation=link.generation)


def _placed_drive(drive: DriveRecord, sockets: _Sockets, board: BoardRecord) -> PlacedDrive:
    match form(drive):
        case "m.2":
            return sockets.of(drive)
        case "2.5" | "3.5":
            return PlacedDrive(drive, "sata" if board.sata_ports else None)
        case _:
            return PlacedDrive(drive, None)


def _sata_left(board: BoardRecord, found: Seating) -> int | None:
    if board.sata_ports is None:
        return None
    off = sum(_ports(one.then) for one in found.active if not one.lanes)
    return max(0, board.sata_ports - off)


def _ports(then: str) -> int:
    """Return how many SATA ports ``sata:2`` means."""
    name, _, number = then.partition(":")
    return int(number or 1) if name == "sata" else 0


def _lost(found: Seating) -> Iterator[Message]:
    """Yield what is switched off or narrowed where nothing of the build sits."""
    populated = {id for id in (*found.cards, *found.drives) if id is not None}
    for one in found.active:
        if one.then in populated:
            continue
        if ports := _ports(one.then):
            yield Message.of("build.lost.sata", count=ports, when=one.when)
        elif one.lanes:
            yield Message.of("build.lost.lanes", then=one.then, lanes=one.lanes, when=one.when)
        else:
            yield Message.of("build.lost.off", then=one.then, when=one.when)
