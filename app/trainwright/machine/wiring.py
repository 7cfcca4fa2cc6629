"""Which card and which drive go where on a board: the best seating, found exactly.

A board is a graph of conflicts: slots share lanes in the ways that ``slot_modes`` lists, and what
is populated takes lanes from elsewhere. All seatings are tried; sockets that differ in nothing
count as one, and so do cards that do. Answers are kept by what decides them.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product

from trainwright.catalog import BoardRecord
from trainwright.catalog.part_records import M2, Conflict, LaneSource, Slot

GB_S_PER_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.56}
"""Each way: the rates of PCI Express 1.0 to 6.0 (2.5 to 64 GT/s) less 8b/10b, 128b/130b and FLIT
encoding. Source: PCI-SIG's FAQ and base specifications."""

EDGE = 16
"""Lanes of a graphics card's edge connector, also where fewer are wired."""
DRIVE_LANES = 4
"""Of an M.2 or U.2 drive. Source: PCI Express M.2 specification, socket 3 with key M."""


@dataclass(frozen=True, slots=True)
class Wiring:
    """What of a board and its processor decides who gets which lanes; hashable."""

    slots: tuple[Slot, ...]
    modes: tuple[tuple[tuple[str, int], ...], ...]
    m2: tuple[M2, ...]
    conflicts: tuple[Conflict, ...]
    uplink_gb_s: float | None
    cpu_generation: int | None
    cpu_lanes: int | None
    """That the slots for cards share; None where nobody says."""
    openings: int | None
    """Of the case: a card may not hang out below; None: no case."""
    cabled: bool = False
    """Whether drives hang on the board's SlimSAS connectors."""
    bridge: int | None = None
    """Distance of the two cards that an NVLink bridge joins, in slots."""


@dataclass(frozen=True, slots=True)
class CardNeed:
    """What a card asks of a slot."""

    generation: int
    lanes: int
    openings: int | None
    """That it covers, counted from its slot's; None where nobody says."""
    edge: int = EDGE


@dataclass(frozen=True, slots=True)
class DriveNeed:
    """What an M.2 drive asks of a socket."""

    sata: bool
    generation: int
    lanes: int
    length_mm: int


@dataclass(frozen=True, slots=True)
class Lanes:
    """What a card or a drive got."""

    generation: int | None
    lanes: int | None
    """None where the board's record does not say."""
    source: LaneSource | None
    gb_s: float
    """Each way, the chipset's link respected; 0 where nothing is known."""


@dataclass(frozen=True, slots=True)
class Seating:
    """Who sits where: ids by card and by drive, None where no place was left."""

    cards: tuple[str | None, ...]
    drives: tuple[str | None, ...]
    card_lanes: tuple[Lanes | None, ...]
    drive_lanes: tuple[Lanes | None, ...]
    mode: tuple[tuple[str, int], ...]
    """Lanes of the slots that share them, as they were split."""
    active: tuple[Conflict, ...]
    """Conflicts that what is populated brings about."""


def wiring(
    board: BoardRecord,
    *,
    cpu_generation: int | None = None,
    cpu_lanes: int | None = None,
    openings: int | None = None,
    cabled: bool = False,
    bridge: int | None = None,
) -> Wiring:
    """Return what of the board decides who gets which lanes."""
    uplink = board.uplink
    return Wiring(
        slots=board.slots,
        modes=tuple(tuple(mode.items()) for mode in board.slot_modes),
        m2=board.m2 or (),
        conflicts=board.conflicts,
        uplink_gb_s=gb_s(uplink.generation, uplink.lanes) if uplink else None,
        cpu_generation=cpu_generation,
        cpu_lanes=cpu_lanes,
        openings=openings,
        cabled=cabled,
        bridge=bridge,
    )


def gb_s(generation: int, lanes: int) -> float:
    """Return what so many lanes carry each way."""
    return GB_S_PER_LANE[min(max(generation, 1), 6)] * lanes


@lru_cache(maxsize=8192)
def seated(board: Wiring, cards: tuple[CardNeed, ...], drives: tuple[DriveNeed, ...]) -> Seating:
    """Return the best seating.

    Best: everything has a place; then an NVLink bridge fits; then the card with the least
    bandwidth has the most, for all wait for it; then cards are on the processor rather than the
    chipset; then all cards together have the most; then the drives; then little is switched off;
    then the cards have air between them.
    """
    for cards_out in range(len(cards) + 1):
        seats = list(_into_slots(board, cards, cards_out))
        for drives_out in range(len(drives) + 1):
            sockets = list(_into_sockets(board, drives, drives_out)) if seats else []
            judged = [
                one
                for where, into in product(seats, sockets)
                if (one := _judged(board, cards, drives, where, into)) is not None
            ]
            if judged:
                return max(judged, key=lambda one: one[0])[1]
    raise AssertionError("with everything left out, nothing is in the way")


def _into_slots(
    board: Wiring, cards: tuple[CardNeed, ...], out: int
) -> Iterator[tuple[int | None, ...]]:
    """Yield the ways to put all cards but ``out`` into slots, by index; None: left out."""

    def on(taken: tuple[int | None, ...], left: int) -> Iterator[tuple[int | None, ...]]:
        number = len(taken)
        if number == len(cards):
            yield taken
            return
        card = cards[number]
        same = number > 0 and cards[number - 1] == card
        before = taken[-1] if same else -1  # cards alike stand in the order of the slots
        if before is not None:
            for index in range(before + 1, len(board.slots)):
                if index not in taken and _fits(board, cards, taken, index, card):
                    yield from on((*taken, index), left)
        if left:
            yield from on((*taken, None), left - 1)

    return (where for where in on((), out) if where.count(None) == out)


def _fits(
    board: Wiring,
    cards: tuple[CardNeed, ...],
    taken: tuple[int | None, ...],
    index: int,
    card: CardNeed,
) -> bool:
    slot = board.slots[index]
    if int(slot.length[1:]) < card.edge:
        return False
    if slot.position is None or card.openings is None:
        return True
    end = slot.position + card.openings - 1
    if board.openings is not None and end > board.openings:
        return False
    for other, there in zip(cards, taken, strict=False):
        start = None if there is None else board.slots[there].position
        if start is None or other.openings is None:
            continue
        if start <= end and slot.position <= start + other.openings - 1:
            return False
    return True


def _into_sockets(
    board: Wiring, drives: tuple[DriveNeed, ...], out: int
) -> Iterator[tuple[int | None, ...]]:
    """Yield the ways to put all M.2 drives but ``out`` into sockets, by index.

    Of sockets that differ in nothing, only the first free one is tried.
    """
    kinds = _kinds(board)

    def on(taken: tuple[int | None, ...], left: int) -> Iterator[tuple[int | None, ...]]:
        number = len(taken)
        if number == len(drives):
            yield taken
            return
        drive, tried = drives[number], set()
        same = number > 0 and drives[number - 1] == drive
        before = taken[-1] if same else -1
        if before is not None:
            for index in range(before + 1, len(board.m2)):
                if index in taken or kinds[index] in tried or not _takes(board.m2[index], drive):
                    continue
                tried.add(kinds[index])
                yield from on((*taken, index), left)
        if left:
            yield from on((*taken, None), left - 1)

    return (into for into in on((), out) if into.count(None) == out)


def _kinds(board: Wiring) -> list[object]:
    """Return a key for each socket, the same of those that differ in nothing but the name."""
    involved = {name for conflict in board.conflicts for name in (conflict.when, conflict.then)}
    return [
        socket.id
        if socket.id in involved
        else (socket.source, socket.generation, socket.lanes, socket.lengths_mm, socket.sata)
        for socket in board.m2
    ]


def _takes(socket: M2, drive: DriveNeed) -> bool:
    if drive.sata and not socket.sata:
        return False
    return drive.length_mm in socket.lengths_mm or drive.length_mm < max(socket.lengths_mm)


def _judged(
    board: Wiring,
    cards: tuple[CardNeed, ...],
    drives: tuple[DriveNeed, ...],
    where: tuple[int | None, ...],
    sockets: tuple[int | None, ...],
) -> tuple[tuple[float, ...], Seating] | None:
    """Return a score, the larger the better, and the seating; None: something in it is off."""
    slots = [None if index is None else board.slots[index] for index in where]
    m2 = [None if index is None else board.m2[index] for index in sockets]
    populated = {place.id for place in (*slots, *m2) if place is not None}
    if board.cabled:
        populated.add("slimsas")
    active = tuple(one for one in board.conflicts if one.when in populated)
    left: dict[str, int] = {}
    for one in active:
        left[one.then] = min(one.lanes, left.get(one.then, one.lanes))
    if any(left.get(id) == 0 for id in populated):
        return None
    used = {slot.id for slot in slots if slot is not None}
    modes = _split(board, used, left)
    if modes is None:
        return None
    card_lanes = _within_processor(
        board,
        slots,
        tuple(
            None if slot is None else _card_link(board, slot, card, modes, left)
            for slot, card in zip(slots, cards, strict=True)
        ),
    )
    drive_lanes = tuple(
        None if socket is None else _drive_link(board, socket, drive, left)
        for socket, drive in zip(m2, drives, strict=True)
    )
    seating = Seating(
        cards=tuple(slot.id if slot else None for slot in slots),
        drives=tuple(socket.id if socket else None for socket in m2),
        card_lanes=card_lanes,
        drive_lanes=drive_lanes,
        mode=tuple(sorted(modes.items())),
        active=active,
    )
    rates = [one.gb_s for one in card_lanes if one is not None]
    score = (
        float(_bridged(board, slots)),
        min(rates, default=0.0),
        float(sum(slot is not None and slot.source == "cpu" for slot in slots)),
        sum(rates),
        sum(one.gb_s for one in drive_lanes if one is not None),
        -float(sum(one.then not in populated for one in active)),
        _air(slots, cards),
        -float(sum(index for index in (*where, *sockets) if index is not None)),
    )
    return score, seating


def _split(board: Wiring, used: set[str], left: Mapping[str, int]) -> dict[str, int] | None:
    """Return the lanes of the slots that share them; None where no mode serves all that are used.

    Modes that name the same slots are ways to split the same lanes; modes of other slots are
    split apart from them.
    """
    chosen: dict[str, int] = {}
    for group in _groups(board.modes):
        best = None
        for mode in group:
            got = [min(mode.get(id, 0), left.get(id, EDGE)) for id in used & group[0].keys()]
            if all(got):
                worth = (min(got, default=0), sum(got), max(mode.values(), default=0))
                if best is None or worth > best[0]:
                    best = worth, mode
        if best is None:
            return None
        chosen |= best[1]
    return chosen


@lru_cache(maxsize=512)
def _groups(
    modes: tuple[tuple[tuple[str, int], ...], ...],
) -> tuple[tuple[dict[str, int], ...], ...]:
    groups: list[tuple[set[str], list[dict[str, int]]]] = []
    for mode in map(dict, modes):
        for names, group in groups:
            if names & mode.keys():
                names |= mode.keys()
                group.append(mode)
                break
        else:
            groups.append((set(mode), [mode]))
    return tuple(
        tuple({name: mode.get(name, 0) for name in sorted(names)} for mode in group)
        for names, group in groups
    )


def _card_link(
    board: Wiring, slot: Slot, card: CardNeed, modes: Mapping[str, int], left: Mapping[str, int]
) -> Lanes:
    wired = modes.get(slot.id, slot.lanes)
    generation = _generation(board, slot, card.generation)
    if wired is None or generation is None:
        return Lanes(generation, None, slot.source, 0.0)
    lanes = min(wired, card.lanes, left.get(slot.id, EDGE))
    return Lanes(generation, lanes, slot.source, _rate(board, slot, generation, lanes))


def _drive_link(board: Wiring, socket: M2, drive: DriveNeed, left: Mapping[str, int]) -> Lanes:
    if drive.sata:
        return Lanes(None, None, socket.source, 0.0)
    generation = _generation(board, socket, drive.generation)
    if socket.lanes is None or generation is None:
        return Lanes(generation, None, socket.source, 0.0)
    lanes = min(socket.lanes, drive.lanes, left.get(socket.id, DRIVE_LANES))
    return Lanes(generation, lanes, socket.source, _rate(board, socket, generation, lanes))


def _generation(board: Wiring, place: Slot | M2, asked: int) -> int | None:
    if place.generation is None:
        return None
    generation = min(place.generation, asked)
    if place.source == "cpu" and isinstance(place, Slot) and board.cpu_generation is not None:
        return min(generation, board.cpu_generation)
    return generation


def _rate(board: Wiring, place: Slot | M2, generation: int, lanes: int) -> float:
    rate = gb_s(generation, lanes)
    if place.source == "chipset" and board.uplink_gb_s is not None:
        return min(rate, board.uplink_gb_s)
    return rate


def _within_processor(
    board: Wiring, slots: list[Slot | None], links: tuple[Lanes | None, ...]
) -> tuple[Lanes | None, ...]:
    """Return the links with the widest halved until the processor has lanes for all.

    Slots of an older generation than the processor's hang on lanes of their own: those of
    Threadripper 7000 are 48 of PCIe 5.0 and 32 of 4.0.
    """
    if board.cpu_lanes is None:
        return links
    newest = board.cpu_generation or 0
    widths = [
        one.lanes
        if one and one.lanes and slot and slot.source == "cpu" and (slot.generation or 0) >= newest
        else 0
        for slot, one in zip(slots, links, strict=True)
    ]
    while sum(widths) > board.cpu_lanes and max(widths) > 1:
        widest = len(widths) - 1 - widths[::-1].index(max(widths))
        widths[widest] //= 2
    return tuple(
        one
        if one is None or not width or width == one.lanes or one.generation is None
        else Lanes(one.generation, width, one.source, gb_s(one.generation, width))
        for one, width in zip(links, widths, strict=True)
    )


def _bridged(board: Wiring, slots: list[Slot | None]) -> bool:
    places = {slot.position for slot in slots if slot is not None and slot.position is not None}
    return board.bridge is not None and any(place + board.bridge in places for place in places)


def _air(slots: list[Slot | None], cards: tuple[CardNeed, ...]) -> float:
    """Return the fewest free openings below a card that has another below it, at most 3."""
    spans = sorted(
        (slot.position, slot.position + card.openings)
        for slot, card in zip(slots, cards, strict=True)
        if slot is not None and slot.position is not None and card.openings is not None
    )
    gaps = [after[0] - before[1] for before, after in pairwise(spans)]
    return float(min(gaps, default=3))
