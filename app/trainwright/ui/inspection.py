"""The plan's machine seen as a whole: its parts, what they cost, and whether they go together."""

from collections.abc import Iterator
from dataclasses import dataclass

from trainwright.catalog.names import part_key
from trainwright.catalog.part_kinds import PartKind
from trainwright.machine.build import Build, Check, Use, Way
from trainwright.machine.checks import checks
from trainwright.machine.choice import MachineChoice
from trainwright.machine.parts import build_of, unknown_parts, with_part
from trainwright.machine.placement import Placement, place
from trainwright.machine.power import PowerBudget, power
from trainwright.plan.schema import Plan
from trainwright.prices import Currency, Item, PriceBook, Total, Wish, item_of, price_book, total
from trainwright.ui.columns import Record

STATES = {"error": "no", "warning": "tight", "unknown": "na", "note": "fits", "ok": "fits"}
"""The state that a verdict is drawn as."""
GRAVE = ("error", "warning", "unknown")
"""Verdicts that mark a part, gravest first."""


@dataclass(frozen=True, slots=True)
class PartRow:
    """One part of the machine; without a record nothing is chosen, or the catalog lacks it."""

    kind: PartKind
    id: str
    record: Record | None
    count: int
    watts: float | None
    item: Item | None
    owned: bool
    state: str
    """Of the gravest check that speaks of it; empty where none does."""


@dataclass(frozen=True, slots=True)
class Inspection:
    """Everything that the screen shows."""

    choice: MachineChoice
    build: Build
    use: Use
    rows: tuple[PartRow, ...]
    placement: Placement
    power: PowerBudget
    checks: tuple[Check, ...]
    total: Total
    currency: Currency
    unknown: tuple[str, ...]
    """Names in the plan that the catalog does not have."""

    @property
    def verdict(self) -> str:
        """The gravest verdict of all."""
        found = {check.verdict for check in self.checks}
        return next((grave for grave in GRAVE if grave in found), "ok")

    def count(self, verdict: str) -> int:
        """Return how many checks have a verdict."""
        return sum(check.verdict == verdict for check in self.checks)


def inspect(plan: Plan, currency: Currency, book: PriceBook | None = None) -> Inspection:
    """Return what there is to say of the plan's machine."""
    choice = plan.machine
    build, use = build_of(choice), use_of(plan)
    found = checks(build, use)
    drawn = power(build)
    book = book or price_book()
    ledger = _Ledger(choice, found, _watts(build, drawn), book, currency)
    rows = tuple(_rows(ledger, build))
    items = [row.item for row in rows if row.item is not None and not row.owned]
    return Inspection(
        choice=choice,
        build=build,
        use=use,
        rows=rows,
        placement=place(build),
        power=drawn,
        checks=found,
        total=total(items, currency),
        currency=currency,
        unknown=unknown_parts(choice),
    )


def use_of(plan: Plan) -> Use:
    """Return what the plan's machine is for, as far as its rules ask."""
    number = plan.machine.gpu_count
    way: Way = "single"
    if plan.workload.task == "infer":
        way = "inference"
    elif number > 1 and plan.settings.strategy != "single":
        way = "data-parallel"
    return Use(way=way, system=plan.machine.system)


def errors_with(inspection: Inspection, kind: PartKind, id: str, *, instead: str = "") -> int:
    """Return how many errors more the machine would have with a part of the catalog."""
    changed = build_of(with_part(inspection.choice, kind, id, instead=instead))
    after = sum(check.verdict == "error" for check in checks(changed, inspection.use))
    return max(0, after - inspection.count("error"))


@dataclass(frozen=True, slots=True)
class _Ledger:
    """What a row is made from."""

    choice: MachineChoice
    checks: tuple[Check, ...]
    watts: dict[str, float]
    """By the role in the power budget."""
    book: PriceBook
    currency: Currency

    def row(self, kind: PartKind, id: str, record: Record | None, count: int = 1) -> PartRow:
        item = item_of(Wish(record, count), self.book, self.currency) if record else None
        return PartRow(
            kind=kind,
            id=id,
            record=record,
            count=count,
            watts=self._watts(kind, record),
            item=item,
            owned=bool(id) and id in self.choice.owned,
            state=_state(record, self.checks),
        )

    def _watts(self, kind: PartKind, record: Record | None) -> float | None:
        if kind == "gpu" and record is not None:
            return self.watts.get(record.name)
        return self.watts.get("drives" if kind == "storage" else kind) if record else None


def _rows(ledger: _Ledger, build: Build) -> Iterator[PartRow]:
    choice = ledger.choice
    for gpu in build.gpus:
        named = next((one.id for one in choice.gpus if _same(one.id, gpu.record)), gpu.record.id)
        yield ledger.row("gpu", named, gpu.record, gpu.count)
    yield ledger.row("cpu", choice.cpu or "", build.cpu)
    yield ledger.row("board", choice.board or "", build.board)
    for kit in choice.memory:
        record = next((one for one, _ in build.memory if _same(kit.id, one)), None)
        yield ledger.row("memory", kit.id, record, kit.count)
    if not choice.memory:
        yield ledger.row("memory", "", None)
    counts: dict[str, int] = {}
    for drive in choice.drives:
        counts[drive.id] = counts.get(drive.id, 0) + 1
    for id, count in counts.items():
        found = next((one for one in build.drives if _same(id, one)), None)
        yield ledger.row("storage", id, found, count)
    if not counts:
        yield ledger.row("storage", "", None)
    yield ledger.row("psu", choice.psu or "", build.psu)
    yield ledger.row("case", choice.case or "", build.case)
    yield ledger.row("cooler", choice.cooler or "", build.cooler)


def _watts(build: Build, drawn: PowerBudget) -> dict[str, float]:
    """Return what is drawn by role; of graphics cards by name, as several kinds may be there."""
    by_role = {part.role: part.value for part in drawn.parts}
    cards = {gpu.record.name: by_role[f"gpu{number}"] for number, gpu in enumerate(build.gpus)
             if gpu.watts is not None}  # fmt: skip
    return by_role | cards


def _same(text: str, record: Record) -> bool:
    """Whether a plan's name means this record."""
    return part_key(text) in (part_key(name) for name in (record.id, record.name, *record.aliases))


def _state(record: Record | None, found: tuple[Check, ...]) -> str:
    if record is None:
        return ""
    spoken = {check.verdict for check in found if _speaks_of(check, record.name)}
    return next((STATES[grave] for grave in GRAVE if grave in spoken), "fits")


def _speaks_of(check: Check, name: str) -> bool:
    return any(
        value == name or (isinstance(value, list | tuple) and name in value)
        for value in check.values.values()
    )


def records_of(choice: MachineChoice) -> tuple[tuple[Record, int], ...]:
    """Return the machine's parts of the catalog, with how many of each."""
    build = build_of(choice)
    single: tuple[Record | None, ...] = (
        build.cpu, build.board, build.psu, build.case, build.cooler,
    )  # fmt: skip
    drives = {drive.id: drive for drive in build.drives}
    return (
        *((gpu.record, gpu.count) for gpu in build.gpus),
        *((record, 1) for record in single if record is not None),
        *build.memory,
        *((drive, build.drives.count(drive)) for drive in drives.values()),
    )
