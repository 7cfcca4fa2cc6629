"""What a computer draws: for long, for moments, from its power supply and from the wall."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from trainwright.catalog import PsuRecord
from trainwright.catalog.part_records import Efficiency
from trainwright.explain import Kind, Quantity, Unit, total
from trainwright.machine.build import Build, BuildGpu, CircuitName
from trainwright.messages import Message

DESIGN_GUIDE = "Intel 613768, ATX 3.0 multi-rail desktop platform power supply design guide"

REST_W = 150.0
"""Of a platform without processor and cards. Source: Intel 613768, the example of table 3-2."""
BOARD_W, FAN_W, FANS = 50.0, 3.0, 4
"""Assumed: mainboard with its chipset, network and USB; one 120 mm fan; fans of a case."""
MODULE_W = {"udimm": 5.0, "cudimm": 5.0, "rdimm": 10.0}
DRIVE_W = {"nvme": 8.0, "sata": 4.0, "hdd": 8.0}
"""Assumed: at work, data sheets of 2018 to 2025; a module of memory likewise."""


class Allowed(NamedTuple):
    """How far above its rating a supply may be loaded, and for how long."""

    seconds: float
    modern: float
    """ATX 3.x supplies above 450 W with a 16-pin plug, over the rating."""
    old: float


EXCURSIONS = (
    Allowed(100e-6, 2.0, 1.5),
    Allowed(1e-3, 1.8, 1.45),
    Allowed(10e-3, 1.6, 1.35),
    Allowed(100e-3, 1.2, 1.1),
)
"""Source: Intel 613768, table 3-3 (duty cycles of 5, 8, 12.5 and 25 %)."""
MODERN_FROM_W = 450.0
OLD_SIZING = 1.25
"""By which Intel's own example sizes a supply without ATX 3: 300 + 300 + 150 W take 1,100 W."""

CARD_PEAK = 3.0
"""Over its sustained power, for 100 µs. Source: PCI Express CEM 5.0 as Intel's design guide
613768 cites it."""
USUAL_PEAK = 2.2
"""Of cards of which nobody measured it, and of those beside the largest, whose peaks seldom
coincide. Assumed, from the measured ones."""
BESIDE_PEAK = 1.5
"""Of the cards beside the one at its peak, where none is taken to be at its worst. Assumed: four
RTX 3090 at 300 W stayed on with an EVGA of 1,600 W (Puget Systems, Quad RTX 3090, 2020)."""
MEASURED_PEAK = {"rtx-a6000": 654 / 300, "quadro-rtx-4000": 2.2, "t4": 219.6 / 70}
"""Source: Lenovo ThinkSystem ST650 V2 maintenance manual, p. 69."""

COMFORTABLE, TIGHT = 0.8, 0.94
"""Of the rating, for loads that last days: the usual half to four fifths, assumed; and the load of
what Puget Systems advise against, four RTX 3090 at 300 W on 1,600 W, as it is counted here."""

EFFICIENCY: dict[Efficiency, tuple[float, float]] = {
    "bronze": (0.85, 0.88),
    "silver": (0.88, 0.90),
    "gold": (0.90, 0.92),
    "platinum": (0.92, 0.94),
    "titanium": (0.94, 0.96),
}
"""At half load, on 115 and on 230 V. Source: 80 PLUS, the certification's table."""
NO_BADGE = 0.80
"""Assumed of a supply of which nobody says it: what plain 80 PLUS wants."""


@dataclass(frozen=True, slots=True)
class Circuit:
    """A wall outlet's circuit."""

    volts: float
    amps: float

    @property
    def rated_w(self) -> float:
        """What trips its breaker sooner or later."""
        return self.volts * self.amps

    @property
    def continuous_w(self) -> float:
        """For hours: four fifths. Source: US NEC 210.20(A); assumed elsewhere."""
        return 0.8 * self.rated_w


CIRCUITS: dict[CircuitName, Circuit] = {
    "us-120v-15a": Circuit(120, 15),
    "us-120v-20a": Circuit(120, 20),
    "kr-220v-16a": Circuit(220, 16),
    "eu-230v-16a": Circuit(230, 16),
    "uk-230v-13a": Circuit(230, 13),
    "us-240v-20a": Circuit(240, 20),
    "jp-100v-15a": Circuit(100, 15),
}


class Excursion(NamedTuple):
    """A peak, and what the supply may give for as long."""

    seconds: float
    needed_w: float
    allowed_w: float | None
    """None without a supply."""


@dataclass(frozen=True, slots=True)
class PowerBudget:
    """What a build draws, and what its supply and its outlet make of it."""

    parts: tuple[Quantity, ...]
    """Watts of each part, largest first."""
    sustained: Quantity
    """Watts of direct current for long."""
    missing: tuple[str, ...] = ()
    """Fields without which the sum is too small."""
    rating_w: float | None = None
    excursions: tuple[Excursion, ...] = ()
    """With cards at the most that the standard lets them take; the first is the peak."""
    usual: tuple[Excursion, ...] = ()
    """The same with cards at what was measured of such cards."""
    least_psu_w: float = 0.0
    """Rating below which the peak or the load does not fit; a multiple of 50."""
    recommended_psu_w: float = 0.0
    """Rating with a fifth to spare; a multiple of 50."""
    wall_w: float | None = None
    """From the outlet; None without a supply."""
    efficiency: float | None = None

    @property
    def load(self) -> float | None:
        """Sustained watts over the supply's rating."""
        return self.sustained.value / self.rating_w if self.rating_w else None

    @property
    def peak_w(self) -> float:
        """For 100 µs."""
        return self.excursions[0].needed_w if self.excursions else self.sustained.value


@dataclass(frozen=True, slots=True)
class Draw:
    """What a build draws, whatever supplies it."""

    parts: tuple[Quantity, ...]
    """Watts of each part, largest first."""
    sustained: Quantity
    peak_w: float
    """For 100 µs, with cards at the most that the standard lets them take."""
    usual_w: float
    """The same with cards at what was measured of such cards."""
    advised_w: float
    """The supply's rating that the maker of a single card asks for; 0 where nobody says."""
    missing: tuple[str, ...]


def draw(build: Build) -> Draw:
    """Return what the build draws; parts that nobody chose count as a platform's usual ones."""
    parts = sorted(_draws(build), key=lambda part: -part.value)
    sustained = total(Message.of("build.power.sustained"), parts, role="sustained")
    beside = sustained.value - sum(_gpu_watts(build))
    return Draw(
        parts=tuple(parts),
        sustained=sustained,
        peak_w=beside + sum(_peaks(build, CARD_PEAK, USUAL_PEAK)),
        usual_w=beside + sum(_peaks(build, USUAL_PEAK, BESIDE_PEAK)),
        advised_w=_makers_advice(build),
        missing=tuple(_missing(build)),
    )


def power(build: Build) -> PowerBudget:
    """Return what the build draws and what its supply and outlet make of it."""
    return supplied(draw(build), build.psu, build.circuit)


def supplied(drawn: Draw, psu: PsuRecord | None, circuit: CircuitName | None) -> PowerBudget:
    """Return what a supply behind an outlet makes of what is drawn."""
    sustained, peak = drawn.sustained.value, drawn.peak_w
    factor = EXCURSIONS[0].modern if psu is None or modern(psu) else OLD_SIZING
    efficiency = efficiency_of(psu, circuit) if psu else None
    return PowerBudget(
        parts=drawn.parts,
        sustained=drawn.sustained,
        missing=drawn.missing,
        rating_w=psu.watts if psu else None,
        excursions=tuple(_excursions(sustained, peak, psu)),
        usual=tuple(_excursions(sustained, drawn.usual_w, psu)),
        least_psu_w=_up(max(sustained, peak / factor)),
        recommended_psu_w=_up(max(sustained / COMFORTABLE, peak / factor, drawn.advised_w)),
        wall_w=sustained / efficiency if efficiency else None,
        efficiency=efficiency,
    )


def _makers_advice(build: Build) -> float:
    """Return the rating that the maker of a single card asks for; 0 where nobody says."""
    fact = build.gpus[0].record.recommended_psu_w if build.gpu_count == 1 else None
    return fact.value if fact is not None else 0.0


def modern(psu: PsuRecord) -> bool:
    """Return whether ATX 3's larger excursions hold: above 450 W and with a 16-pin plug.

    A supply of which nobody says the version has them only if nothing speaks against it: it has
    not, here, for what is not promised cannot be built on.
    """
    return psu.atx_version in ("3.0", "3.1") and psu.watts > MODERN_FROM_W


def efficiency_of(psu: PsuRecord, circuit: CircuitName | None = None) -> float:
    """Return the direct current over what the outlet gives; 115 V where no circuit is named."""
    if psu.efficiency is None:
        return NO_BADGE
    low, high = EFFICIENCY[psu.efficiency]
    return high if circuit is not None and CIRCUITS[circuit].volts > 200 else low


def peak_factor(id: str, most: float = CARD_PEAK) -> float:
    """Return how far a card goes above its sustained power for 100 µs: measured, or ``most``."""
    return MEASURED_PEAK.get(id, most)


def _draws(build: Build) -> Iterator[Quantity]:
    for number, gpu in enumerate(build.gpus):
        yield _gpu_draw(gpu, number)
    if build.cpu is not None:
        yield _cpu_draw(build)
    yield from _rest(build)


def _gpu_draw(gpu: BuildGpu, number: int) -> Quantity:
    if gpu.power_limit_w is not None:
        kind, source = Kind.YOURS, ""
    else:
        fact = gpu.record.tdp_w
        kind, source = Kind.QUOTED, fact.source if fact else ""
    return Quantity(
        Message.of("build.power.gpu", gpu=gpu.record.name, count=gpu.count),
        (gpu.watts or 0.0) * gpu.count,
        Unit.WATTS,
        kind,
        source=source,
        role=f"gpu{number}",
    )


def _cpu_draw(build: Build) -> Quantity:
    cpu = build.cpu
    assert cpu is not None
    field = "max_power_w" if cpu.max_power_w is not None else "tdp_w"
    watts = cpu.max_power_w or cpu.tdp_w or 0.0
    name = Message.of("build.power.cpu", cpu=cpu.name)
    source = cpu.provenance(field).source
    return Quantity(name, watts, Unit.WATTS, Kind.QUOTED, source=source, role="cpu")


def _rest(build: Build) -> Iterator[Quantity]:
    """Yield board, memory, drives and fans; as a lump while the build has no memory yet."""
    if not build.memory or build.board is None:
        yield _assumed("build.power.rest", REST_W, DESIGN_GUIDE + ", table 3-2", "rest")
        return
    memory = sum(MODULE_W[kit.module] * kit.modules * count for kit, count in build.memory)
    drives = sum(DRIVE_W[drive.interface] for drive in build.drives)
    yield _assumed("build.power.board", BOARD_W, "assumed", "board")
    yield _assumed("build.power.memory", memory, "assumed: 5 W a UDIMM, 10 W an RDIMM", "memory")
    if drives:
        yield _assumed("build.power.drives", drives, "assumed: 4 to 8 W a drive", "drives")
    yield _assumed("build.power.fans", FANS * FAN_W, "assumed: 4 fans of 3 W", "fans")


def _assumed(id: str, watts: float, source: str, role: str) -> Quantity:
    return Quantity(Message.of(id), watts, Unit.WATTS, Kind.ASSUMED, source=source, role=role)


def _missing(build: Build) -> Iterator[str]:
    if any(gpu.watts is None for gpu in build.gpus):
        yield "gpu.tdp_w"
    if build.cpu is not None and build.cpu.max_power_w is None:
        yield "cpu.max_power_w"


def _gpu_watts(build: Build) -> list[float]:
    return [gpu.watts or 0.0 for gpu in build.gpus for _ in range(gpu.count)]


def _peaks(build: Build, most: float, beside: float) -> list[float]:
    """Return what each card takes for 100 µs: the largest its most, the others at most ``beside``.

    Peaks of 100 µs seldom coincide.
    """
    cards = [
        (gpu.watts or 0.0, peak_factor(gpu.record.id, most))
        for gpu in build.gpus
        for _ in range(gpu.count)
    ]
    cards.sort(key=lambda card: -card[0] * card[1])
    return [
        watts * (factor if not number else min(factor, beside))
        for number, (watts, factor) in enumerate(cards)
    ]


def _excursions(sustained: float, peak: float, psu: PsuRecord | None) -> Iterator[Excursion]:
    """Yield what is drawn for each of the table's times.

    Nobody states cards' peaks beyond 100 µs: what the table allows supplies shrinks with the
    time, and so, assumed, does what cards take above the sustained power.
    """
    for allowed in EXCURSIONS:
        share = (allowed.modern - 1) / (EXCURSIONS[0].modern - 1)
        needed = sustained + (peak - sustained) * share
        if psu is None:
            yield Excursion(allowed.seconds, needed, None)
        else:
            factor = allowed.modern if modern(psu) else allowed.old
            yield Excursion(allowed.seconds, needed, factor * psu.watts)


def _up(watts: float) -> float:
    """Return the next multiple of 50 W: supplies are sold so."""
    return 50.0 * ceil(round(watts, 6) / 50)
