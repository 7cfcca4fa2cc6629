"""What may stand around the cards: processor and board, memory, drives, cooler, case, supply.

Which parts go together is for the rules to say; here they are asked of a few parts at a time,
cheapest first, and their answers are kept. Only errors forbid.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import tee
from typing import NamedTuple

from trainwright.build.offers import Market
from trainwright.build.request import Wishes
from trainwright.build.ruling import Rule, errs, forbidden, said
from trainwright.build.shelves import Shelves
from trainwright.build.sizing import Needs
from trainwright.build.speeds import Cards, Link
from trainwright.build.stores import Drives, Memory, Stores, takes
from trainwright.catalog import (
    BoardRecord,
    CaseRecord,
    CoolerRecord,
    CpuRecord,
    GpuRecord,
    PsuRecord,
)
from trainwright.catalog.part_records import FormFactor
from trainwright.machine import (
    rules_fit,
    rules_lanes,
    rules_links,
    rules_memory,
    rules_plugs,
    rules_processor,
    rules_storage,
)
from trainwright.machine.build import Build, BuildGpu, Use
from trainwright.machine.placement import PlacedGpu, Placement, form, narrowest, openings, place
from trainwright.machine.wiring import Lanes

_SEATS: tuple[Rule, ...] = (
    *(rules_lanes.slots, rules_lanes.mainstream, rules_fit.openings, rules_fit.air),
    *(rules_storage.sockets, rules_storage.losses, rules_storage.uplink),
    *(rules_storage.ports, rules_storage.server_drives),
)
"""Of cards and drives in their places on a board in a case."""
_CORE: tuple[Rule, ...] = (
    *(*rules_processor.RULES, *rules_lanes.RULES, *rules_memory.RULES),
    *(*rules_storage.RULES, *rules_links.RULES),
)
"""That ask nothing of cooler and power supply. A case only takes places away, so that what they
forbid without one is forbidden in any."""
SIZES: tuple[FormFactor, ...] = ("mini-itx", "micro-atx", "atx", "ceb", "e-atx", "eeb", "xl-atx")
"""From small to large."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A processor on a board."""

    cpu: CpuRecord
    board: BoardRecord
    cost: float
    wired: tuple[object, ...]
    """What of both decides which lanes cards and drives get."""
    takes: tuple[object, ...]
    """What of both decides which memory goes with them."""


class Base(NamedTuple):
    """A processor on a board with each memory that is worth it, the cheapest first."""

    frame: Frame
    memories: tuple[Memory, ...]
    cost: float
    """With the cheapest."""


Pace = tuple[Link | None, str]
"""What decides how fast a site can be at best: its link and its processor's id."""


class Site(NamedTuple):
    """A base whose board has slots for some cards."""

    base: Base
    pace: Pace

    @property
    def link(self) -> Link | None:
        """Of the slowest card; None where nobody says."""
        return self.pace[0]


@dataclass(frozen=True, slots=True)
class Sites:
    """Everything that some cards may stand on, cheapest first."""

    sorted: tuple[Site, ...]
    costs: tuple[float, ...]
    first: dict[Pace, Site]
    """The cheapest of each pace."""


class Core(NamedTuple):
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


@dataclass(frozen=True, slots=True)
class Housing:
    """A case that takes all that is to go into it."""

    case: CaseRecord
    cost: float
    link: Link | None
    """Of the slowest card in it; None where nobody says."""


class Around:
    """The market seen from the cards; answers are kept."""

    def __init__(self, market: Market, wishes: Wishes, *, sound: bool = False) -> None:
        """Take what no rule forbids; of ``sound`` parts every rule can be checked."""
        self.wishes = wishes
        self.sound = sound
        self.shelves = Shelves(market)
        self.stores = Stores(self.shelves)
        self._legal: dict[tuple[object, ...], bool] = {}
        self._links: dict[tuple[object, ...], dict[tuple[object, ...], Link | None]] = {}
        self._seats: dict[tuple[object, ...], Seats | None] = {}
        self._houses: dict[tuple[str, str], list[CaseRecord]] = {}
        self._asked: dict[str, tuple[object, ...]] = {}
        self._housing: dict[tuple[object, ...], Iterator[Housing]] = {}
        self._coolers: dict[str, list[CoolerRecord]] = {}
        self.psus: list[PsuRecord] = self.shelves.sorted("psu", PsuRecord)
        self.cases: list[CaseRecord] = [
            case for case in self.shelves.sorted("case", CaseRecord) if self._small_enough(case)
        ]
        self.coolers: list[CoolerRecord] = self.shelves.sorted("cooler", CoolerRecord)
        self._bases: dict[tuple[object, ...], list[Base]] = {}
        self._sites: dict[tuple[object, ...], Sites] = {}
        self.frames = self._frames()

    # Processor and board

    def _frames(self) -> list[Frame]:
        """Return processors on boards that they work on, cheapest first."""
        by_socket: dict[str, list[CpuRecord]] = {}
        for cpu in self.shelves.sorted("cpu", CpuRecord):
            by_socket.setdefault(cpu.socket or "", []).append(cpu)
        found = [
            Frame(
                cpu,
                board,
                self.shelves.cost("cpu", cpu) + self.shelves.cost("board", board),
                (board.id, cpu.pcie_generation, cpu.slot_lanes),
                takes(cpu, board),
            )
            for board in self.shelves.sorted("board", BoardRecord)
            if self._wanted(board)
            for cpu in by_socket.get(board.socket, ())
            if not self._errs(rules_processor.RULES, Build(cpu=cpu, board=board))
        ]
        return sorted(
            found, key=lambda one: (one.cost, _flashed_first(one), one.board.id, one.cpu.id)
        )

    def _errs(
        self, rules: tuple[Rule, ...], build: Build, placement: Placement | None = None
    ) -> bool:
        return errs(rules, build, placement, sound=self.sound)

    def _wanted(self, board: BoardRecord) -> bool:
        if self.sound and not board.lanes_complete:
            return False
        form = self.wishes.form
        return form is None or SIZES.index(board.form_factor) <= SIZES.index(form)

    def _small_enough(self, case: CaseRecord) -> bool:
        """Return whether the case is for boards of the wished size, and not for larger ones."""
        form = self.wishes.form
        if form is None or case.boards is None:
            return True
        return max(SIZES.index(one) for one in case.boards) <= SIZES.index(form)

    def sites(self, needed: Needs, cards: Cards) -> Sites:
        """Return bases whose boards have slots for the cards.

        Of a board whose slots are not all known, only a single card is taken to find one.
        """
        asked = (cards.count, *_link_asked(cards.record))
        key = (*self._holding(needed), *asked)
        if key not in self._sites:
            links = self._links.setdefault(asked, {})
            found = tuple(self._with_slots(self.bases(needed), cards, links))
            costs = tuple(site.base.cost for site in found)
            first = {site.pace: site for site in reversed(found)}
            self._sites[key] = Sites(found, costs, first)
        return self._sites[key]

    def _with_slots(
        self, bases: list[Base], cards: Cards, links: dict[tuple[object, ...], Link | None]
    ) -> Iterator[Site]:
        for base in bases:
            frame = base.frame
            if frame.wired not in links:
                links[frame.wired] = self._link(frame, cards)
            link = links[frame.wired]
            if link is not None or (cards.count == 1 and not frame.board.lanes_complete):
                yield Site(base, (link, frame.cpu.id))

    def _link(self, frame: Frame, cards: Cards) -> Link | None:
        """Return what the slowest of the cards gets on the board; None where nobody says."""
        board = frame.board
        if board.lanes_complete:
            offered = sum(slot.length == "x16" for slot in board.slots) >= cards.count
        else:
            offered = cards.count == 1
        return link_of(Build(gpus=cards.gpus, cpu=frame.cpu, board=board)) if offered else None

    def bases(self, needed: Needs) -> list[Base]:
        """Return processors on boards with the memory that they need, cheapest first."""
        key = self._holding(needed)
        if key not in self._bases:
            self._bases[key] = sorted(self._with_memory(*key), key=lambda base: base.cost)
        return self._bases[key]

    def _with_memory(
        self, cores: int, gib: float, generation: int, at_rate: bool
    ) -> Iterator[Base]:
        known: dict[tuple[object, ...], tuple[Memory, ...]] = {}
        for frame in self.frames:
            if frame.cpu.cores < cores or (frame.cpu.pcie_generation or 0) < generation:
                continue
            small = frame.board.form_factor == "mini-itx" and self.wishes.form is None
            if at_rate and small:  # money that is left goes into a board with room for more
                continue
            memories = known.get(frame.takes)
            if memories is None:
                memories = self.stores.memory(frame.cpu, frame.board, gib, at_rate=at_rate)
                known[frame.takes] = memories
            if memories:
                yield Base(frame, memories, frame.cost + memories[0].cost)

    def _holding(self, needed: Needs) -> tuple[int, float, int, bool]:
        """Return what is asked of processor and memory: as much as sets on sale can hold."""
        size = self.stores.size(needed.memory_gib)
        return needed.cores, size, needed.generation, needed.at_rate

    def stands(self, build: Build, use: Use) -> bool:
        """Return whether a case, a cooler and a power supply are all that parts may lack."""
        return not forbidden(said(_CORE, build, place(build), use), sound=self.sound)

    # Cooler and case

    def coolers_of(self, frame: Frame) -> list[CoolerRecord]:
        """Return what cools the processor, cheapest first: enough, where anything on sale is."""
        key = f"{frame.cpu.id} {frame.board.socket}"
        if key not in self._coolers:
            plain: list[CoolerRecord] = []
            flawed: list[CoolerRecord] = []
            for cooler in self.coolers:
                build = Build(cpu=frame.cpu, board=frame.board, cooler=cooler)
                checks = list(said((rules_fit.cooler,), build))
                verdicts = {each.verdict for each in checks}
                if not forbidden(checks, sound=self.sound):
                    (flawed if "warning" in verdicts else plain).append(cooler)
            self._coolers[key] = plain or flawed
        return self._coolers[key]

    def supplies(self, psu: PsuRecord | None, cards: Cards) -> bool:
        """Return whether the supply has the plugs; of None, whether any could feed the cards."""
        card = cards.record
        plugs = None if card.plugs is None else tuple(sorted(card.plugs.items()))
        key = (psu.id if psu else "", cards.count, card.form, plugs, cards.gpus[0].watts)
        if key not in self._legal:
            build = Build(gpus=cards.gpus, psu=psu)
            self._legal[key] = not self._errs((rules_plugs.plugs, rules_plugs.plug_load), build)
        return self._legal[key]

    def houses(self, case: CaseRecord, frame: Frame, cards: Cards) -> bool:
        """Return whether the case takes board and cards."""
        return self._takes_board(case, frame.board) and self._takes_cards(case, cards.record)

    def _takes_board(self, case: CaseRecord, board: BoardRecord) -> bool:
        key = ("board", case.id, board.form_factor)
        if key not in self._legal:
            self._legal[key] = not self._errs((rules_fit.form,), Build(board=board, case=case))
        return self._legal[key]

    def _takes_cards(self, case: CaseRecord, record: GpuRecord) -> bool:
        key = ("card", case.id, record.id)
        if key not in self._legal:
            build = Build(gpus=(BuildGpu(record),), case=case)
            self._legal[key] = not self._errs((rules_fit.length,), build)
        return self._legal[key]

    def _roomy(self, frame: Frame, cards: Cards) -> list[CaseRecord]:
        """Return the cases that take board and cards, cheapest first."""
        key = (frame.board.form_factor, cards.record.id)
        if key not in self._houses:
            self._houses[key] = [case for case in self.cases if self.houses(case, frame, cards)]
        return self._houses[key]

    def seated(
        self, case: CaseRecord, frame: Frame, cards: Cards, drives: Drives | None = None
    ) -> Seats | None:
        """Return where cards and drives go in the case; None where a rule forbids it.

        Where drives are in the way of the cards, those have the first choice: what is forbidden
        without drives is so with any.
        """
        records, ways = (drives.records, drives.ways) if drives is not None else ((), ())
        bays = case.bays_35 if any(form(drive) == "3.5" for drive in records) else None
        key = (frame.wired, case.slots, bays, cards.count, self._asks(cards.record), ways)
        if key not in self._seats:
            build = Build(
                gpus=cards.gpus, cpu=frame.cpu, board=frame.board, case=case, drives=records
            )
            placement = place(build)
            barred = self._errs(_SEATS, build, placement)
            self._seats[key] = None if barred else Seats(slowest_link(placement))
        return self._seats[key]

    def encased(self, frame: Frame, cards: Cards) -> bool:
        """Return whether any case takes the cards on the board."""
        key = (frame.wired, cards.key)
        if key not in self._legal:
            # Without drives, cases of as many openings differ in nothing.
            unlike = {case.slots: case for case in self._roomy(frame, cards)}
            self._legal[key] = any(
                self.seated(case, frame, cards) is not None for case in unlike.values()
            )
        return self._legal[key]

    def housing(self, frame: Frame, cards: Cards, drives: Drives) -> Iterator[Housing]:
        """Yield the cases that take cards and drives on the board, cheapest first."""
        key = (frame.wired, frame.board.form_factor, *cards.key, drives.ways)
        kept = self._housing.get(key) or self._housed(frame, cards, drives)
        self._housing[key], found = tee(kept)  # a case is looked at once, and only if anyone asks
        return found

    def _housed(self, frame: Frame, cards: Cards, drives: Drives) -> Iterator[Housing]:
        for case in self._roomy(frame, cards):
            seats = self.seated(case, frame, cards, drives)
            if seats is not None:
                yield Housing(case, self.shelves.cost("case", case), seats.link)

    def _asks(self, record: GpuRecord) -> tuple[object, ...]:
        """Return what of a card decides where it may sit."""
        if record.id not in self._asked:
            self._asked[record.id] = (*_link_asked(record), record.form, record.cooling)
        return self._asked[record.id]

    def holds(self, case: CaseRecord, part: PsuRecord | CoolerRecord) -> bool:
        """Return whether the case takes a power supply or a cooler."""
        key = (case.id, part.id)
        if key not in self._legal:
            if isinstance(part, CoolerRecord):
                self._legal[key] = not self._errs(
                    (rules_fit.cooler,), Build(case=case, cooler=part)
                )
            else:
                self._legal[key] = not self._errs((rules_fit.form,), Build(case=case, psu=part))
        return self._legal[key]


def _flashed_first(frame: Frame) -> bool:
    """Return whether the board may need new firmware by means of another processor."""
    checks = said((rules_processor.firmware,), Build(cpu=frame.cpu, board=frame.board))
    return any(check.verdict == "warning" for check in checks)


def link_of(build: Build) -> Link | None:
    """Return what the slowest card's slot gives it; None where nobody says, or one has none."""
    return _link(narrowest(build))


def slowest_link(placement: Placement) -> Link | None:
    """Return what the slowest card has where it was placed; None where nobody says."""
    return _link(placement.slowest)


def _link(slowest: Lanes | PlacedGpu | None) -> Link | None:
    if slowest is None or slowest.generation is None or not slowest.lanes:
        return None
    return Link(slowest.generation, slowest.lanes)


def _link_asked(record: GpuRecord) -> tuple[object, ...]:
    """Return what of a card decides which link it gets."""
    return record.pcie_generation, record.pcie_lanes, openings(record)
