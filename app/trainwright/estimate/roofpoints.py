"""The operators of a step against the roofs of the GPU: what each reaches, and what bounds it."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from trainwright.catalog import Fact, GpuRecord
from trainwright.catalog.precision import Precision, peak_flops
from trainwright.estimate.clock import Clock
from trainwright.estimate.roofline import CLASSES, classify
from trainwright.explain.quantity import Kind, Quantity, Unit
from trainwright.messages import Message
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings

Bound = Literal["compute", "memory", "launch"]

MOST = 150
"""Operators kept, the slowest first: the others together are next to nothing."""
_SHORT = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_AT_FLOOR = 1.02
"""Times the launch floor up to which an operator counts as bound by it."""


@dataclass(frozen=True, slots=True)
class RoofPoint:
    """All runs of one operator in one stage of a step, on one GPU."""

    name: str
    """As torch calls it: ``aten.mm``."""
    row: int
    """In the profile's table."""
    group: str
    """One of ``roofline.CLASSES``."""
    stage: str
    dtype: str
    flops: float
    bytes: float
    seconds: float
    runs: float
    bound: Bound

    @property
    def address(self) -> str:
        """Name the operator within a report."""
        return f"{self.stage}.{self.row}"

    @property
    def short_name(self) -> str:
        """Return ``mm bf16`` of ``aten.mm.default`` on bfloat16."""
        name = self.name.removeprefix("aten.").removesuffix(".default")
        return f"{name} {_SHORT.get(self.dtype, self.dtype)}"

    @property
    def intensity(self) -> float:
        """FLOP a byte; 0 of what only moves bytes."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def rate(self) -> float:
        """FLOP/s reached."""
        return self.flops / self.seconds

    @property
    def traffic(self) -> float:
        """Bytes/s reached."""
        return self.bytes / self.seconds


@dataclass(frozen=True, slots=True)
class Peak:
    """Arithmetic that the data sheet names for a dtype of operands."""

    name: str
    """bf16 | fp16 | tf32 | fp32 | int8: products in float32 may use TF32."""
    fact: Fact
    """Dense FLOP/s."""


@dataclass(frozen=True, slots=True)
class Roofs:
    """The operators of a step, slowest first, below what the data sheet allows."""

    gpu: str
    bandwidth: Fact
    """Bytes/s."""
    peaks: dict[str, Peak]
    """By dtype of operands, of the products that occur."""
    floor: float
    """Seconds that a kernel takes at least."""
    points: tuple[RoofPoint, ...]
    rest: float
    """Seconds of the operators left out."""
    classes: dict[str, float]
    """Class -> seconds in a step, the slowest first; all operators counted."""
    work: float
    """Seconds that all arithmetic of a step would take at the peaks."""

    @property
    def seconds(self) -> float:
        """Seconds that all kernels of a step take."""
        return sum(self.classes.values())

    def at(self, address: str) -> RoofPoint | None:
        """Return the operator at an address."""
        return next((point for point in self.points if point.address == address), None)


def roofs(profile: Profile, clock: Clock, settings: FullSettings, batch: int) -> Roofs:
    """Return the operators of a step with ``batch`` samples a micro-batch."""
    table, record = classify(profile), clock.situation.gpu.record
    peaks = dict(_peaks(record, settings.precision, _product_dtypes(profile)))
    floor = clock.efficiency.kernel_floor_s.value
    found: list[RoofPoint] = []
    for stage, times, counts in clock.stages(profile, settings, batch):
        seconds = counts * times.seconds
        for row in seconds.nonzero()[0].tolist():
            runs, dtype = float(counts[row]), table.dtypes[table.dtype[row]]
            flops, moved = runs * float(times.flops[row]), runs * float(times.bytes[row])
            least = floor * runs * float(times.launches[row])
            found.append(
                RoofPoint(
                    name=profile.ops.name[row],
                    row=row,
                    group=CLASSES[times.group[row]],
                    stage=stage,
                    dtype=dtype,
                    flops=flops,
                    bytes=moved,
                    seconds=float(seconds[row]),
                    runs=runs,
                    bound=_bound(
                        float(seconds[row]),
                        least,
                        flops / peaks[dtype].fact.value if dtype in peaks else 0.0,
                        moved / record.bandwidth_bytes_per_s.value,
                    ),
                )
            )
    found.sort(key=lambda point: -point.seconds)
    return Roofs(
        gpu=record.name,
        bandwidth=record.bandwidth_bytes_per_s,
        peaks=peaks,
        floor=floor,
        points=tuple(found[:MOST]),
        rest=sum(point.seconds for point in found[MOST:]),
        classes=_by_class(found),
        work=sum(one.flops / peaks[one.dtype].fact.value for one in found if one.dtype in peaks),
    )


def _bound(seconds: float, least: float, compute: float, memory: float) -> Bound:
    if seconds <= least * _AT_FLOOR:
        return "launch"
    return "compute" if compute >= memory else "memory"


def _by_class(points: Iterable[RoofPoint]) -> dict[str, float]:
    sums: dict[str, float] = {}
    for point in points:
        sums[point.group] = sums.get(point.group, 0.0) + point.seconds
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _product_dtypes(profile: Profile) -> set[str]:
    table = classify(profile)
    return {table.dtypes[number] for number in set(table.dtype[table.flops.any(axis=1)].tolist())}


_PEAKS: dict[str, tuple[Precision, str]] = {
    "bfloat16": ("bf16", "bf16"),
    "float16": ("fp16-mixed", "fp16"),
    "float32": ("fp32", "fp32"),
}


def _peaks(record: GpuRecord, precision: str, dtypes: set[str]) -> Iterable[tuple[str, Peak]]:
    for dtype in sorted(dtypes):
        asked, name = _PEAKS.get(dtype, (None, dtype))
        fact = peak_flops(record, asked) if asked else record.flops.get("int8_int32")
        tf32 = peak_flops(record, "tf32")
        if dtype == "float32" and precision in ("tf32", "bf16-mixed") and tf32 is not None:
            name, fact = "tf32", tf32
        if fact is not None and (asked or dtype == "int8"):
            yield dtype, Peak(name, fact)


def explained_class(found: Roofs, group: str) -> Quantity:
    """Return the seconds of a class, opened to its operators."""
    points = [point for point in found.points if point.group == group]
    seconds = found.classes[group]
    parts = [explained(found, point) for point in points]
    rest = seconds - sum(point.seconds for point in points)
    if rest > 1e-9 * found.seconds:
        name = Message.of("time.other-operators")
        parts.append(Quantity(name, rest, Unit.SECONDS, Kind.ESTIMATED))
    return Quantity(
        Message.of(f"time.class.{group}"),
        seconds,
        Unit.SECONDS,
        Kind.ESTIMATED,
        formula="Σ n · t",
        parts=tuple(parts),
        role=group,
    )


def explained(found: Roofs, point: RoofPoint) -> Quantity:
    """Return the seconds of an operator with the numbers that they come from."""
    runs = Quantity(Message.of("time.runs"), point.runs, Unit.COUNT, Kind.ESTIMATED)
    each = Quantity(
        Message.of("time.a-run"), point.seconds / point.runs, Unit.SECONDS, Kind.ESTIMATED
    )
    parts = [runs, each, *_arithmetic(found, point), *_traffic(found, point), _floor(found)]
    return Quantity(
        Message.of("time.operator-in", name=point.short_name, stage=Message.of(_stage(point))),
        point.seconds,
        Unit.SECONDS,
        Kind.ESTIMATED,
        formula="n · max(FLOP / (peak · e), bytes / (bandwidth · m), floor)",
        parts=tuple(parts),
        note=Message.of(f"time.bound.{point.bound}"),
        role=point.group,
    )


def _stage(point: RoofPoint) -> str:
    return f"time.stage.{point.stage}"


def _arithmetic(found: Roofs, point: RoofPoint) -> Iterable[Quantity]:
    peak = found.peaks.get(point.dtype)
    if not point.flops or peak is None:
        return
    work = _work("time.flop", point.flops / point.runs, Unit.FLOP)
    roof = Quantity(
        Message.of("time.peak", dtype=peak.name),
        peak.fact.value,
        Unit.FLOP_PER_SECOND,
        Kind.QUOTED,
        source=peak.fact.source,
    )
    yield _share(
        "time.of-peak", point.rate / peak.fact.value, "e = FLOP / (t · peak)", (work, roof)
    )


def _traffic(found: Roofs, point: RoofPoint) -> Iterable[Quantity]:
    if not point.bytes:
        return
    moved = _work("time.bytes", point.bytes / point.runs, Unit.BYTES)
    roof = Quantity(
        Message.of("time.bandwidth"),
        found.bandwidth.value,
        Unit.BYTES_PER_SECOND,
        Kind.QUOTED,
        source=found.bandwidth.source,
    )
    share = point.traffic / found.bandwidth.value
    yield _share("time.of-bandwidth", share, "m = bytes / (t · bandwidth)", (moved, roof))


def _floor(found: Roofs) -> Quantity:
    return Quantity(Message.of("time.floor"), found.floor, Unit.SECONDS, Kind.ASSUMED)


def _work(id: str, value: float, unit: Unit) -> Quantity:
    return Quantity(Message.of(id), value, unit, Kind.ESTIMATED, formula="traced")


def _share(id: str, value: float, formula: str, parts: tuple[Quantity, ...]) -> Quantity:
    return Quantity(Message.of(id), value, Unit.RATIO, Kind.ESTIMATED, formula=formula, parts=parts)
