"""What may stand around the cards: processor and board, memory, drives, cooler, case, supply.

Which parts go together is for the rules to say; here they are asked of a few parts at a time,
cheapest first, and their answers are kept. Only errors forbid.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import tee
from typing import TypeVar

from trainwright.build.offers import Market
from trainwright.build.request import Wishes
from trainwright.build.sizing import Needs
from trainwright.build.speeds import Cards, Link
from trainwright.catalog import (
    BoardRecord,
    CaseRecord,
    CoolerRecord,
    CpuRecord,
    DriveRecord,
    GpuRecord,
    MemoryRecord,
    PartKind,
    PsuRecord,
)
from trainwright.catalog.part_records import FormFactor, PartRecord
from trainwright.explain import Kind, Quantity, Unit
from trainwright.machine import (
    rules_fit,
    rules_lanes,
    rules_memory,
    rules_plugs,
    rules_processor,
    rules_storage,
)
from trainwright.machine.build import Build, BuildGpu, Check, Use
from trainwright.machine.facts import Facts
from trainwright.machine.placement import Placement, form, openings, place
from trainwright.machine.power import MODULE_W, PowerBudget
from trainwright.messages import Message

P = TypeVar("P", bound=PartRecord)
Rule = Callable[[Facts], Iterator[Check]]

_MEMORY: tuple[Rule, ...] = (
    rules_memory.kind,
    rules_memory.amount,
    rules_memory.channels,
    rules_memory.rate,
)
_SEATS: tuple[Rule, ...] = (
    *(rules_lanes.slots, rules_fit.openings, rules_fit.air),
    *(rules_storage.sockets, rules_storage.ports, rules_storage.server_drives),
)
"""Of cards and drives in their places on a board in a case."""
MOST_MODULES = 12
"""Slots of the widest boards; source: hardware_db/board."""
MOST_DRIVES = 4
"""Of one kind in a computer; assumed: as many as most boards take."""
GIB = 1 << 30
CACHE_GIB = 64.0
"""Of memory that programs and loaders take beside the page cache, at the very most; assumed."""
_FOR_SERVERS = ("u.2", "u.3", "add-in")
"""Drives that few boards have a place for."""
SIZES: tuple[FormFactor, ...] = ("mini-itx", "micro-atx", "atx", "ceb", "e-atx", "eeb", "xl-atx")
"""From small to large."""

_NO_POWER = PowerBudget((), Quantity(Message.of("build.power.sustained"), 0.0, Unit.WATTS,
                                     Kind.ASSUMED))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Frame:
    """A processor on a board."""

    cpu: CpuRecord
    board: BoardRecord
    cost: float


@dataclass(frozen=True, slots=True)
class Memory:
    """Kits of one kind."""

    kit: MemoryRecord
    count: int
    cost: float
    gib: float
    """Of all."""

    @property
    def watts(self) -> float:
        """Of all."""
        return MODULE_W[self.kit.module] * self.kit.modules * self.count


@dataclass(frozen=True, slots=True)
class Drives:
    """Drives; the data set is on the first."""

    records: tuple[DriveRecord, ...]
    cost: float


@dataclass(frozen=True, slots=True)
class Base:
    """A processor on a board with each memory that is worth it, the cheapest first."""

    frame: Frame
    memories: tuple[Memory, ...]
    cost: float
    """With the cheapest."""


@dataclass(frozen=True, slots=True)
class Site:
    """A base whose board has slots for some cards."""

    base: Base
    link: Link | None
    """Of the slowest card; None where nobody says."""


@dataclass(frozen=True, slots=True)
class Core:
    """All but the cards, cooler, case and power supply."""

    frame: Frame
    link: Link | None
    """Of the slowest card, whatever drives take."""
    memory: Memory
    drives: Drives
    cost: float


@dataclass(frozen=True, slots=True)
class Seats:
    """Places for all cards and drives, which no rule forbids."""

    link: Link | None
    """Of the slowest card; None where nobody says."""


def errs(rules: Iterable[Rule], build: Build, placement: Placement | None = None) -> bool:
    """Return whether one of the rules forbids the parts, lanes and power left aside."""
    return any(check.verdict == "error" for check in _said(rules, build, placement))


def _said(
    rules: Iterable[Rule], build: Build, placement: Placement | None = None
) -> Iterator[Check]:
    facts = Facts(build, Use(), placement or Placement(), _NO_POWER)
    for rule in rules:
        yield from rule(facts)


class Around:
    """The market seen from the cards; answers are kept."""

    def __init__(self, market: Market, wishes: Wishes) -> None:
        self.wishes = wishes
        self._market = market
        self._cost: dict[tuple[PartKind, str], float] = {}
        self._legal: dict[tuple[object, ...], bool] = {}
        self._links: dict[tuple[object, ...], Link | None] = {}
        self._seats: dict[tuple[object, ...], Seats | None] = {}
        self._memory: dict[tuple[object, ...], tuple[Memory, ...]] = {}
        self._coolers: dict[str, list[CoolerRecord]] = {}
        self.psus: list[PsuRecord] = self._sorted("psu", PsuRecord)
        self.cases: list[CaseRecord] = [
            case for case in self._sorted("case", CaseRecord) if self._small_enough(case)
        ]
        self.coolers: list[CoolerRecord] = self._sorted("cooler", CoolerRecord)
        self.kits = self._sorted("memory", MemoryRecord)
        self._drives = self._sorted("storage", DriveRecord)
        self._bases: dict[tuple[object, ...], list[Base]] = {}
        self._sites: dict[tuple[object, ...], Iterator[Site]] = {}
        self._all_memory: dict[str, list[Memory]] = {}
        self._fast: dict[tuple[object, ...], list[Drives]] = {}
        self.frames = self._frames()

    def cost(self, kind: PartKind, record: PartRecord) -> float:
        """Return what one piece of a part on these shelves costs."""
        return self._cost[kind, record.id]

    def _sorted(self, kind: PartKind, made: type[P]) -> list[P]:
        """Return a kind's parts, cheapest first: those with a price, where any has one."""
        offers = [offer for offer in self._market.offers(kind) if isinstance(offer.record, made)]
        priced = [offer for offer in offers if offer.cost(1) is not None]
        found: list[tuple[float, P]] = []
        for offer in priced or offers:
            cost = offer.cost(1) or 0.0
            self._cost[kind, offer.record.id] = cost
            found.append((cost, offer.record))  # type: ignore[arg-type]
        # Of equally cheap ones that of which most is known comes first: it can be checked.
        found.sort(key=lambda one: (one[0], _unsaid(one[1]), one[1].id))
        return [record for _, record in found]

    def several(self, kind: PartKind, record: PartRecord, count: int) -> float:
        """Return what several pieces cost; those that are there already cost nothing."""
        return self._market.offer(kind, record).cost(count) or 0.0

    # Processor and board

    def _frames(self) -> list[Frame]:
        by_socket: dict[str, list[CpuRecord]] = {}
        for cpu in self._sorted("cpu", CpuRecord):
            by_socket.setdefault(cpu.socket or "", []).append(cpu)
        found = [
            Frame(cpu, board, self.cost("cpu", cpu) + self.cost("board", board))
            for board in self._sorted("board", BoardRecord)
            if self._wanted(board)
            for cpu in by_socket.get(board.socket, ())
        ]
        return sorted(found, key=lambda one: (one.cost, one.board.id, one.cpu.id))

    def _wanted(self, board: BoardRecord) -> bool:
        form = self.wishes.form
        return form is None or SIZES.index(board.form_factor) <= SIZES.index(form)

    def _small_enough(self, case: CaseRecord) -> bool:
        """Return whether the case is for boards of the wished size, and not for larger ones."""
        form = self.wishes.form
        if form is None or case.boards is None:
            return True
        return max(SIZES.index(one) for one in case.boards) <= SIZES.index(form)

    def works(self, frame: Frame) -> bool:
        """Return whether the processor works on the board."""
        key = (frame.cpu.id, frame.board.id)
        if key not in self._legal:
            build = Build(cpu=frame.cpu, board=frame.board)
            self._legal[key] = not errs(rules_processor.RULES, build)
        return self._legal[key]

    def sites(self, needed: Needs, cards: Cards) -> Iterator[Site]:
        """Yield bases whose boards have slots for the cards, cheapest first.

        Of a board whose slots are not all known, only a single card is taken to find one.
        """
        key = (needed.cores, needed.memory_gib, cards.count, *_link_asked(cards.record))
        kept = self._sites.get(key) or self._with_slots(needed, cards)
        self._sites[key], found = tee(kept)  # a board is looked at once, and only if anyone asks
        return found

    def _with_slots(self, needed: Needs, cards: Cards) -> Iterator[Site]:
        for base in self.bases(needed):
            board = base.frame.board
            if self._offers(board, cards.count):
                link = self.link(base.frame, cards)
                if link is not None or not board.lanes_complete:
                    yield Site(base, link)

    def _offers(self, board: BoardRecord, count: int) -> bool:
        if not board.lanes_complete:
            return count == 1
        return sum(slot.length == "x16" for slot in board.slots) >= count

    def link(self, frame: Frame, cards: Cards) -> Link | None:
        """Return what the slowest of the cards gets on the board; None where nobody says."""
        cpu, record = frame.cpu, cards.record
        key = (
            *(frame.board.id, cpu.pcie_generation, cpu.slot_lanes, cards.count),
            *_link_asked(record),
        )
        if key not in self._links:
            build = Build(gpus=(BuildGpu(record, cards.count),), cpu=cpu, board=frame.board)
            self._links[key] = link_of(build)
        return self._links[key]

    def bases(self, needed: Needs) -> list[Base]:
        """Return processors on boards with the memory that they need, cheapest first."""
        key = (needed.cores, needed.memory_gib)
        if key not in self._bases:
            found = [
                Base(frame, memories, frame.cost + memories[0].cost)
                for frame in self.frames
                if frame.cpu.cores >= needed.cores
                and self.works(frame)
                and (memories := self.memory(frame, needed.memory_gib))
            ]
            self._bases[key] = sorted(found, key=lambda base: base.cost)
        return self._bases[key]

    # Memory and drives

    def memory(self, frame: Frame, gib: float) -> tuple[Memory, ...]:
        """Return memory of at least so many GiB, cheapest first, each larger than the one before.

        All channels are filled, at full rate, where anything on sale does so.
        """
        cpu, board = frame.cpu, frame.board
        key = (
            *(cpu.socket, cpu.memory_types, cpu.memory_modules, cpu.memory_channels),
            *(cpu.memory_max_gib, board.memory_type, board.memory_modules),
            *(board.memory_slots, board.memory_max_gib, gib),
        )
        if key not in self._memory:
            found = tuple(self._fitting(frame, gib, flawed=False))
            self._memory[key] = found or tuple(self._fitting(frame, gib, flawed=True))
        return self._memory[key]

    def _fitting(self, frame: Frame, gib: float, *, flawed: bool) -> Iterator[Memory]:
        """Yield each that no cheaper one equals in size and watts."""
        board, kept = frame.board, list[Memory]()
        for memory in self._sets(board.memory_type):
            modules = memory.kit.modules * memory.count
            if memory.gib < gib or modules > board.memory_slots:
                continue
            if any(one.gib >= memory.gib and one.watts <= memory.watts for one in kept):
                continue
            if not flawed and modules % (frame.cpu.memory_channels or 1):
                continue
            if board.memory_modules is not None and not _mounts(board, memory.kit):
                continue
            build = Build(cpu=frame.cpu, board=board, memory=((memory.kit, memory.count),))
            said = {check.verdict for check in _said(_MEMORY, build)}
            if "error" not in said and (flawed or "warning" not in said):
                kept.append(memory)
                yield memory

    def _sets(self, type: str) -> list[Memory]:
        """Return all numbers of all kits of a type, cheapest first."""
        if type not in self._all_memory:
            found = [
                Memory(kit, count, self.several("memory", kit, count), kit.gib * count)
                for kit in self.kits
                if kit.type == type
                for count in range(1, MOST_MODULES // kit.modules + 1)
            ]
            found.sort(key=lambda one: (one.cost, -one.gib, one.kit.id, one.count))
            self._all_memory[type] = found
        return self._all_memory[type]

    def drives(self, needed: Needs) -> list[Drives]:
        """Return drives that hold and bear what the workload asks, cheapest first.

        A hard disk serves only where no solid-state drives are large enough, beside one of them
        for the system.
        """
        key = (needed.drive_gb, needed.endurance_tb)
        if key not in self._fast:
            self._fast[key] = _faster(self._holding(needed))
        return self._fast[key]

    def _holding(self, needed: Needs) -> list[Drives]:
        found = list(self._enough(needed, 1, solid=True))
        if not found:
            found = list(self._enough(needed, MOST_DRIVES, solid=True))
        found = [one for one in found if not self._stalls(one)] or found
        if not found:
            system = Needs(0, 0, min(needed.drive_gb, 500.0), 0, 0, None)
            beside = min(
                self._enough(system, 1, solid=True), key=lambda one: one.cost, default=None
            )
            if beside is not None:
                found = [
                    Drives((*disks.records, *beside.records), disks.cost + beside.cost)
                    for disks in self._enough(needed, MOST_DRIVES, solid=False)
                ]
        return sorted(found, key=lambda one: (one.cost, [drive.id for drive in one.records]))

    def _enough(self, needed: Needs, most: int, *, solid: bool) -> Iterator[Drives]:
        for drive in self._drives:
            if (drive.interface == "hdd") == solid or drive.capacity_gb is None:
                continue
            if drive.form in _FOR_SERVERS and not self._market.offer("storage", drive).owned:
                continue
            for count in range(1, most + 1):
                large = drive.capacity_gb * count >= needed.drive_gb
                lasts = (drive.endurance_tb or needed.endurance_tb) * count >= needed.endurance_tb
                if large and lasts:
                    cost = self.several("storage", drive, count)
                    yield Drives((drive,) * count, cost)
                    break

    def _stalls(self, drives: Drives) -> bool:
        """Return whether rules expect the drive to be slow once its cache is full."""
        said = _said((rules_storage.endurance,), Build(drives=drives.records[:1]))
        return any(check.verdict == "warning" for check in said)

    # Cooler and case

    def coolers_of(self, frame: Frame) -> list[CoolerRecord]:
        """Return what cools the processor, cheapest first: enough, where anything on sale is."""
        key = f"{frame.cpu.id} {frame.board.socket}"
        if key not in self._coolers:
            plain: list[CoolerRecord] = []
            flawed: list[CoolerRecord] = []
            for cooler in self.coolers:
                build = Build(cpu=frame.cpu, board=frame.board, cooler=cooler)
                said = {check.verdict for check in _said((rules_fit.cooler,), build)}
                if "error" not in said:
                    (flawed if "warning" in said else plain).append(cooler)
            self._coolers[key] = plain or flawed
        return self._coolers[key]

    def supplies(self, psu: PsuRecord | None, cards: Cards) -> bool:
        """Return whether the supply has the plugs; of None, whether any could feed the cards."""
        card = cards.record
        plugs = None if card.plugs is None else tuple(sorted(card.plugs.items()))
        watts = card.tdp_w.value if card.tdp_w is not None else None
        key = (psu.id if psu else "", cards.count, card.form, plugs, watts)
        if key not in self._legal:
            build = Build(gpus=(BuildGpu(cards.record, cards.count),), psu=psu)
            self._legal[key] = not errs((rules_plugs.plugs, rules_plugs.plug_load), build)
        return self._legal[key]

    def houses(self, case: CaseRecord, frame: Frame, cards: Cards) -> bool:
        """Return whether the case takes board and cards."""
        key = (case.id, frame.board.form_factor, cards.record.id)
        if key not in self._legal:
            build = Build(gpus=(BuildGpu(cards.record),), board=frame.board, case=case)
            self._legal[key] = not errs((rules_fit.length, rules_fit.form), build)
        return self._legal[key]

    def seated(
        self, case: CaseRecord, frame: Frame, cards: Cards, drives: tuple[DriveRecord, ...] = ()
    ) -> Seats | None:
        """Return where cards and drives go in the case; None where a rule forbids it.

        Where drives are in the way of the cards, those have the first choice: what is forbidden
        without drives is so with any.
        """
        cpu, board = frame.cpu, frame.board
        key = (
            *(board.id, cpu.pcie_generation, cpu.slot_lanes, case.slots, case.bays_35),
            *(cards.count, _asked(cards.record), tuple(map(_plugged, drives))),
        )
        if key not in self._seats:
            gpus = (BuildGpu(cards.record, cards.count),)
            build = Build(gpus=gpus, cpu=cpu, board=board, case=case, drives=drives)
            placement = place(build)
            forbidden = errs(_SEATS, build, placement)
            self._seats[key] = None if forbidden else Seats(_link(placement))
        return self._seats[key]

    def encased(self, frame: Frame, cards: Cards) -> bool:
        """Return whether any case takes the cards on the board."""
        key = (frame.board.id, frame.cpu.id, cards.record.id, cards.count)
        if key not in self._legal:
            self._legal[key] = any(
                self.houses(case, frame, cards) and self.seated(case, frame, cards) is not None
                for case in self.cases
            )
        return self._legal[key]

    def holds(self, case: CaseRecord, part: PsuRecord | CoolerRecord) -> bool:
        """Return whether the case takes a power supply or a cooler."""
        key = (case.id, part.id)
        if key not in self._legal:
            if isinstance(part, CoolerRecord):
                self._legal[key] = not errs((rules_fit.cooler,), Build(case=case, cooler=part))
            else:
                self._legal[key] = not errs((rules_fit.form,), Build(case=case, psu=part))
        return self._legal[key]


def link_of(build: Build) -> Link | None:
    """Return what the slowest card's slot gives it; None where nobody says, or one has none."""
    return _link(place(build))


def _link(placement: Placement) -> Link | None:
    slowest = placement.slowest
    if slowest is None or slowest.generation is None or not slowest.lanes:
        return None
    return Link(slowest.generation, slowest.lanes)


def _link_asked(record: GpuRecord) -> tuple[object, ...]:
    """Return what of a card decides which link it gets."""
    return record.pcie_generation, record.pcie_lanes, openings(record)


def _asked(record: GpuRecord) -> tuple[object, ...]:
    """Return what of a card decides where it may sit."""
    return (*_link_asked(record), record.form, record.cooling)


def _plugged(drive: DriveRecord) -> tuple[object, ...]:
    """Return what of a drive decides where it may sit."""
    return (
        *(form(drive), drive.interface, drive.pcie_generation, drive.pcie_lanes),
        drive.length_mm,
    )


def lighter(memories: Iterable[Memory]) -> Iterator[Memory]:
    """Yield the first memory, and each that draws less than all before it."""
    least = math.inf
    for memory in memories:
        if memory.watts < least:
            least = memory.watts
            yield memory


def mounted_apart(sorted_by_cost: Iterable[Drives]) -> Iterator[Drives]:
    """Yield the cheapest drives of each way to be mounted, which is all that other parts see."""
    seen: set[object] = set()
    for drives in sorted_by_cost:
        ways = tuple(map(_plugged, drives.records))
        if ways not in seen:
            seen.add(ways)
            yield drives


def _faster(sorted_by_cost: list[Drives]) -> list[Drives]:
    """Return the drives without those that are dearer and no faster than one of their form."""
    kept: list[Drives] = []
    for one in sorted_by_cost:
        first = one.records[0]
        if not any(_as_fast(other.records[0], first) for other in kept):
            kept.append(one)
    return kept


def _as_fast(one: DriveRecord, other: DriveRecord) -> bool:
    """Return whether a drive reads no slower than another that is mounted alike."""
    alike = (one.interface, one.form, one.length_mm) == (
        other.interface, other.form, other.length_mm,
    )  # fmt: skip
    generations = (one.pcie_generation or 0) >= (other.pcie_generation or 0)
    requests = (one.random_read_kiops or 0.0) >= (other.random_read_kiops or 0.0)
    return alike and generations and requests and one.read_mb_s >= other.read_mb_s


def _mounts(board: BoardRecord, kit: MemoryRecord) -> bool:
    """Return whether the board has slots for such modules, as rule M1 says more fully."""
    kinds = board.memory_modules or ()
    return kit.module in kinds or (kit.module == "cudimm" and "udimm" in kinds)


def _unsaid(record: PartRecord) -> int:
    """Return how many fields nobody filled."""
    return sum(value is None for _, value in record)
