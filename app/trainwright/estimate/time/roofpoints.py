"""The operators of a step against the roofs of the GPU: what each reaches, what bounds it, and
what its class reaches by the size of a run.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from trainwright.catalog import Fact, GpuRecord
from trainwright.catalog.precision import Precision, peak_flops
from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.efficiency import Curves
from trainwright.estimate.time.kernels import NUMBER, WIDTH, Kernels
from trainwright.estimate.time.roofline import CLASSES, Rates, classify, kernel_seconds
from trainwright.explain.quantity import Kind, Quantity, Unit
from trainwright.messages import Message
from trainwright.messages.units import number
from trainwright.profile.profile import SCALE, Floats, Profile, monomials
from trainwright.workload import FullSettings

Bound = Literal["compute", "memory", "launch"]

Curve = tuple[tuple[float, float], ...]
"""(size of a run, share of the roof): FLOP of products, bytes of everything else."""

_SOURCE = "resources/calibration/steptime.json"

MOST = 150
"""Operators kept, the slowest first: the others together are next to nothing."""
_SHORT = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
_MOSTLY = 0.5
"""Share of an operator's time from which the gaps between kernels are what bounds it."""
_PRODUCTS = ("gemm", "batched-gemm", "convolution", "attention")
"""Classes whose shapes are three sides; they are drawn for equal ones."""
_SIDES = np.array(sorted({n * 2.0**power for power in range(3, 13) for n in (2, 3)}))
"""Multiples of 8: others are slower, and would make the curve jump."""
_BYTES = 10.0 ** np.arange(0, 10.5, 0.25)


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
    shape: tuple[int, ...]
    """Of products: M, N, K of a matrix product or a convolution as one; queries, keys and head
    size of attention. Empty otherwise."""
    flops: float
    bytes: float
    seconds: float
    compute: float
    """Seconds that the arithmetic alone would take, at what the class reaches for such shapes."""
    memory: float
    """Seconds that the memory traffic alone would take."""
    runs: float
    bound: Bound

    @property
    def address(self) -> str:
        """Name the operator within a report."""
        return f"{self.stage}.{self.row}"

    @property
    def short_name(self) -> str:
        """Return ``mm bf16 4096×4096×64`` of ``aten.mm.default`` on bfloat16."""
        name = self.name.removeprefix("aten.").removesuffix(".default")
        words = (name, _SHORT.get(self.dtype, self.dtype), "×".join(map(str, self.shape)))
        return " ".join(word for word in words if word)

    @property
    def intensity(self) -> float:
        """FLOP a byte; 0 of what only moves bytes."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def size(self) -> float:
        """FLOP of a run; bytes of one without products."""
        return max((self.flops or self.bytes) / self.runs, 1.0)

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
    """Seconds that a kernel takes beside its work: the gap to the next."""
    points: tuple[RoofPoint, ...]
    rest: float
    """Seconds of the operators left out."""
    taken: dict[tuple[str, str], float]
    """(stage, class) -> seconds in a step, the slowest first; all operators counted."""
    curves: dict[str, Curve]
    """By class, from the calibration."""
    source: str
    """Where the shares that classes reach are from."""
    work: float
    """Seconds that all arithmetic of a step would take at the peaks."""

    @property
    def classes(self) -> dict[str, float]:
        """Class -> seconds in a step, the slowest first."""
        sums: dict[str, float] = {}
        for (_, group), seconds in self.taken.items():
            sums[group] = sums.get(group, 0.0) + seconds
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    @property
    def seconds(self) -> float:
        """Seconds that all kernels of a step take."""
        return sum(self.taken.values())

    def share(self, point: RoofPoint) -> float:
        """Return what an operator reaches of its own roof: of the peak, or of the bandwidth."""
        peak = self.peaks.get(point.dtype)
        computed = point.rate / peak.fact.value if peak is not None else 0.0
        return max(computed, point.traffic / self.bandwidth.value)

    def at(self, address: str) -> RoofPoint | None:
        """Return the operator at an address."""
        return next((point for point in self.points if point.address == address), None)


def roofs(profile: Profile, clock: Clock, settings: FullSettings, batch: int) -> Roofs:
    """Return the operators of a step with ``batch`` samples a micro-batch."""
    table, record = classify(profile), clock.situation.gpu.record
    peaks = dict(_peaks(record, settings.precision, _product_dtypes(profile)))
    floor = clock.efficiency.kernel_gap_s.value
    shapes = _shapes(profile, batch, clock.situation.sequence)
    found: list[RoofPoint] = []
    for stage, times, counts in clock.stages(profile, settings, batch):
        whole = counts * times.seconds
        for row in whole.nonzero()[0].tolist():
            runs, dtype = float(counts[row]), table.dtypes[table.dtype[row]]
            seconds, compute, memory, flops, moved, launches = (
                runs * float(values[row])
                for values in (
                    *(times.seconds, times.compute, times.memory),
                    *(times.flops, times.bytes, times.launches),
                )
            )
            found.append(
                RoofPoint(
                    name=profile.ops.name[row],
                    row=row,
                    group=CLASSES[times.group[row]],
                    stage=stage,
                    dtype=dtype,
                    shape=tuple(shapes[row]) if flops else (),
                    flops=flops,
                    bytes=moved,
                    seconds=seconds,
                    compute=compute,
                    memory=memory,
                    runs=runs,
                    bound=_bound(
                        seconds,
                        floor * launches,
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
        taken=_taken(found),
        curves=_curves(found, peaks, clock, settings),
        source=_SOURCE,
        work=sum(one.flops / peaks[one.dtype].fact.value for one in found if one.dtype in peaks),
    )


_PLACES = {"attention": slice(2, 5), "convolution": slice(0, 3), "mm": slice(1, 4)}
"""Fragment of an operator's name -> where its shape stands in ``OpRow.dims``."""


def _shapes(profile: Profile, batch: int, sequence: int) -> list[list[int]]:
    """Return the shapes of products; empty lists elsewhere."""
    sizes = np.rint(profile.ops.dims @ monomials(batch, sequence) / SCALE).astype(np.int64)
    places = [
        next((place for part, place in _PLACES.items() if part in name), slice(0))
        for name in profile.ops.name
    ]
    return [row[place].tolist() for row, place in zip(sizes, places, strict=True)]


def _bound(seconds: float, least: float, compute: float, memory: float) -> Bound:
    """Return the roof above an operator: ``compute`` and ``memory`` are seconds at the roofs."""
    if least >= _MOSTLY * seconds:
        return "launch"
    return "compute" if compute >= memory else "memory"


def _taken(points: Iterable[RoofPoint]) -> dict[tuple[str, str], float]:
    sums: dict[tuple[str, str], float] = {}
    for point in points:
        where = point.stage, point.group
        sums[where] = sums.get(where, 0.0) + point.seconds
    return dict(sorted(sums.items(), key=lambda item: -item[1]))


def _curves(
    found: list[RoofPoint], peaks: dict[str, Peak], clock: Clock, settings: FullSettings
) -> dict[str, Curve]:
    """Return the curve of each class, in the dtype that it computes in most."""
    record, rates = clock.situation.gpu.record, clock.rates(settings.precision)
    shapes = clock.efficiency.curves(
        channels_last=settings.channels_last, framework=settings.framework
    )
    dtypes = {point.group: point.dtype for point in reversed(found)}
    return {
        group: curve(
            *(group, dtype, peaks[dtype].fact.value if dtype in peaks else None),
            *(record, rates, shapes),
        )
        for group, dtype in dtypes.items()
    }


def _product_dtypes(profile: Profile) -> set[str]:
    table = classify(profile)
    return {table.dtypes[number] for number in set(table.dtype[table.flops.any(axis=1)].tolist())}


_PEAKS: dict[str, tuple[Precision, str]] = {
    "bfloat16": ("bf16", "bf16"),
    "float16": ("fp16-mixed", "fp16"),
    "float32": ("fp32", "fp32"),
}


def _peaks(record: GpuRecord, precision: str, dtypes: set[str]) -> Iterator[tuple[str, Peak]]:
    for dtype in sorted(dtypes):
        asked, name = _PEAKS.get(dtype, (None, dtype))
        fact = peak_flops(record, asked) if asked else record.flops.get("int8_int32")
        tf32 = peak_flops(record, "tf32")
        if dtype == "float32" and precision in ("tf32", "bf16-mixed") and tf32 is not None:
            name, fact = "tf32", tf32
        if fact is not None and (asked or dtype == "int8"):
            yield dtype, Peak(name, fact)


def explained_stage(found: Roofs, stage: str) -> tuple[Quantity, ...]:
    """Return the classes of a stage, each opened to its operators; empty without operators."""
    return tuple(
        explained_class(found, group, stage) for where, group in found.taken if where == stage
    )


def explained_class(found: Roofs, group: str, stage: str | None = None) -> Quantity:
    """Return the seconds of a class, in one stage or in all, opened to its operators."""
    seconds = found.classes[group] if stage is None else found.taken[stage, group]
    points = [
        point for point in found.points if point.group == group and stage in (None, point.stage)
    ]
    parts = [explained(found, point, stage) for point in points]
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


def explained(found: Roofs, point: RoofPoint, stage: str | None = None) -> Quantity:
    """Return the seconds of an operator with the numbers that they come from.

    Its name tells the stage, unless that is ``stage``, which the reader knows.
    """
    name = Message.of("time.operator-in", name=point.short_name, stage=Message.of(_stage(point)))
    if point.stage == stage:
        name = Message.of("time.operator-alone", name=point.short_name)
    once = _seconds(
        "time.a-run",
        point.seconds / point.runs,
        "(arithmetic^p + traffic^p)^(1/p) + gap",
        (*_arithmetic(found, point), *_traffic(found, point), _floor(found)),
    )
    return Quantity(
        name,
        point.seconds,
        Unit.SECONDS,
        Kind.ESTIMATED,
        formula=f"{number(round(point.runs))} · t",
        parts=(once, _traced("time.runs", point.runs, Unit.COUNT)),
        note=Message.of(f"time.bound.{point.bound}"),
        role=point.group,
    )


def _stage(point: RoofPoint) -> str:
    return f"time.stage.{point.stage}"


def _arithmetic(found: Roofs, point: RoofPoint) -> Iterator[Quantity]:
    peak = found.peaks.get(point.dtype)
    if not point.flops or not point.compute or peak is None:
        return
    reached = point.flops / point.compute / peak.fact.value
    parts = (
        _traced("time.flop", point.flops / point.runs, Unit.FLOP),
        _quoted(Message.of("time.peak", dtype=peak.name), peak.fact, Unit.FLOP_PER_SECOND),
        _share("time.of-peak", reached, found.source),
    )
    yield _seconds("time.arithmetic", point.compute / point.runs, "FLOP / (peak · e)", parts)


def _traffic(found: Roofs, point: RoofPoint) -> Iterator[Quantity]:
    if not point.bytes or not point.memory:
        return
    parts = (
        _traced("time.bytes", point.bytes / point.runs, Unit.BYTES),
        _quoted(Message.of("time.bandwidth"), found.bandwidth, Unit.BYTES_PER_SECOND),
        _share(
            "time.of-bandwidth", point.bytes / point.memory / found.bandwidth.value, found.source
        ),
    )
    yield _seconds("time.traffic", point.memory / point.runs, "bytes / (bandwidth · m)", parts)


def _floor(found: Roofs) -> Quantity:
    name = Message.of("time.floor")
    return Quantity(name, found.floor, Unit.SECONDS, Kind.ASSUMED, source=found.source)


def _seconds(id: str, value: float, formula: str, parts: tuple[Quantity, ...]) -> Quantity:
    return Quantity(Message.of(id), value, Unit.SECONDS, Kind.ESTIMATED, formula, parts)


def _traced(id: str, value: float, unit: Unit) -> Quantity:
    return Quantity(Message.of(id), value, unit, Kind.ESTIMATED, formula="traced")


def _quoted(name: Message, fact: Fact, unit: Unit) -> Quantity:
    return Quantity(name, fact.value, unit, Kind.QUOTED, source=fact.source)


def _share(id: str, value: float, source: str) -> Quantity:
    return Quantity(Message.of(id), value, Unit.RATIO, Kind.ESTIMATED, source=source)


def curve(
    group: str, dtype: str, peak: float | None, record: GpuRecord, rates: Rates, curves: Curves
) -> Curve:
    """Return what runs of a class reach of the data sheet's ``peak`` or bandwidth.

    Empty of classes whose time does not follow from one size: grouped and depthwise
    convolutions, batch normalisation.
    """
    products = group in _PRODUCTS
    if group not in NUMBER or (products and peak is None):
        return ()
    if not products and any(part in group for part in ("convolution", "gemm", "batch-norm")):
        return ()
    found = _cubes(group, dtype) if products else _moves(group)
    seconds = kernel_seconds(found, np.ones(len(found.row)), rates, curves, (dtype,)).seconds
    reached = found.bytes / seconds / record.bandwidth_bytes_per_s.value
    if peak is not None:
        reached = np.maximum(reached, found.flops / seconds / peak)
    sizes = found.flops if products else found.bytes
    return tuple(zip(sizes.tolist(), reached.tolist(), strict=True))


def _cubes(group: str, dtype: str) -> Kernels:
    """Return products of three equal sides."""
    each = WIDTH.get(dtype, 4) * _SIDES**2
    shape = np.stack([_SIDES, _SIDES, _SIDES])
    activations = each * 2 if group != "attention" else each * 0
    return _kernels(group, 2 * _SIDES**3, 3 * each, shape, activations)


def _moves(group: str) -> Kernels:
    """Return kernels that only move bytes."""
    none = np.zeros(len(_BYTES))
    return _kernels(group, none, _BYTES, np.stack([none, none, none]), none)


def _kernels(
    group: str, flops: Floats, moved: Floats, shape: Floats, activations: Floats
) -> Kernels:
    rows = np.arange(len(flops))
    numbers = np.full(len(rows), NUMBER[group], dtype=np.uint8)
    zeros = np.zeros(len(rows), dtype=np.uint8)
    return Kernels(rows, numbers, zeros, flops, moved, shape, activations)
