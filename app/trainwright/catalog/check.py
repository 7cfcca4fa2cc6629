"""Is the catalog in order: how sure its values are, what is broken, what cannot be true."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import get_args

from trainwright.catalog.cells import Part, counted
from trainwright.catalog.contradictions import contradictions
from trainwright.catalog.load import Catalog, catalog
from trainwright.catalog.part_kinds import KINDS, PartKind
from trainwright.catalog.parts import list_parts, part_problems
from trainwright.catalog.records import Confidence, Fact, FlopKey, GpuRecord
from trainwright.messages import Message

TOLERANCE = 0.05
"""Largest relative difference between a stated figure and what follows from others; data
sheets round, and rate tensor peaks at another clock now and then. Assumed."""
CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)
_PER_CORE_AND_CLOCK = (2, 4)
"""FP32 operations of one shader core in one clock: an FMA is 2; CDNA packs two, and RDNA 3 and
4 issue two at once."""


@dataclass(frozen=True, slots=True)
class KindCheck:
    """How many parts of a kind there are, and how sure their values."""

    records: int
    by_confidence: dict[Confidence, int]

    @property
    def values(self) -> int:
        """Values with a source."""
        return sum(self.by_confidence.values())


@dataclass(frozen=True, slots=True)
class CatalogCheck:
    """What ``trainwright catalog check`` tells."""

    by_kind: dict[PartKind, KindCheck]
    problems: tuple[Message, ...]
    """Broken files, repeated ids and aliases."""
    implausible: tuple[Message, ...]
    """Values that contradict each other."""

    @property
    def ok(self) -> bool:
        """Whether nothing is broken and nothing contradicts itself."""
        return not self.problems and not self.implausible

    @property
    def records(self) -> int:
        """Parts of all kinds."""
        return sum(kind.records for kind in self.by_kind.values())

    @property
    def values(self) -> int:
        """Values of all kinds that have a source."""
        return sum(kind.values for kind in self.by_kind.values())

    @property
    def by_confidence(self) -> dict[Confidence, int]:
        """Values of all kinds by confidence."""
        kinds = self.by_kind.values()
        return {name: sum(kind.by_confidence[name] for kind in kinds) for name in CONFIDENCES}

    @property
    def low(self) -> int:
        """Values known only from recall or one scraped database."""
        return self.by_confidence["low"]

    @property
    def messages(self) -> tuple[Message, ...]:
        """The whole report, a sentence each."""
        values = {"records": self.records, "values": self.values} | self.by_confidence
        return (
            Message.of("catalog.check-values", **values),
            *self.problems,
            *self.implausible,
            Message.of("catalog.check-ok" if self.ok else "catalog.check-not-ok"),
        )


def check(known: Catalog | None = None) -> CatalogCheck:
    """Return the state of the catalog, the person's own records included."""
    known = known or catalog()
    gpus = [known.record(id) for id in known.ids]
    others = {kind: list_parts(kind) for kind in KINDS}
    told = (one for parts in others.values() for part in parts for one in contradictions(part))
    by_kind: dict[PartKind, KindCheck] = {"gpu": _counted(gpus)}
    for kind, parts in others.items():
        by_kind[kind] = _counted(parts)
    return CatalogCheck(
        by_kind=by_kind,
        problems=(*known.problems, *(one for kind in KINDS for one in part_problems(kind))),
        implausible=(*(one for gpu in gpus for one in implausible(gpu)), *told),
    )


def _counted(parts: Sequence[Part]) -> KindCheck:
    confidence = Counter(each for part in parts for each in counted(part))
    return KindCheck(len(parts), {name: confidence[name] for name in CONFIDENCES})


def facts(record: GpuRecord) -> Iterator[tuple[str, Fact]]:
    """Yield every fact of a record with its key; FLOP/s as ``flops.fp16_fp32``."""
    for key, value in record:
        if isinstance(value, Fact):
            yield key, value
    for name, fact in record.flops.items():
        yield f"flops.{name}", fact


def implausible(record: GpuRecord) -> Iterator[Message]:
    """Yield what contradicts itself in a record."""
    yield from _bandwidth(record)
    yield from _fp32(record)
    yield from _tensor_ratios(record)
    yield from _driver_total(record)
    yield from _capacities(record)
    yield from _cores(record)
    yield from _board_power(record)


def _bandwidth(record: GpuRecord) -> Iterator[Message]:
    """Bandwidth is bus width x data rate."""
    bus, rate = record.memory_bus_bits, record.memory_bits_per_s
    if bus and rate:
        follows = bus.value * rate.value / 8
        if _differs(record.bandwidth_bytes_per_s.value, follows):
            yield _contradiction(
                record, "bandwidth_gb_s", record.bandwidth_bytes_per_s.value / 1e9, follows / 1e9
            )


def _fp32(record: GpuRecord) -> Iterator[Message]:
    """FP32 is shader cores x operations a clock x boost clock."""
    stated, cores, boost = record.flops.get("fp32"), record.cores, record.boost_hz
    if stated and cores and boost:
        candidates = [cores.value * boost.value * each for each in _PER_CORE_AND_CLOCK]
        nearest = min(candidates, key=lambda value: abs(value - stated.value))
        if _differs(stated.value, nearest):
            yield _contradiction(record, "tflops.fp32", stated.value / 1e12, nearest / 1e12)


_ALLOWED_RATIOS: dict[tuple[FlopKey, FlopKey], tuple[float, ...]] = {
    ("bf16_fp32", "fp16_fp32"): (1, 0.5),
    ("fp16_fp16", "fp16_fp32"): (1, 2),
    ("fp8_fp16", "fp8_fp32"): (1, 2),
    ("fp8_fp32", "bf16_fp32"): (2,),
    ("tf32_fp32", "bf16_fp32"): (0.5,),
    ("fp32_matrix", "fp32"): (2,),
}
"""Between dense figures of one chip, by vendors' data sheets: a sparse figure among them stands
out as a factor of two. The first Instincts run bf16 at half of fp16."""


def _tensor_ratios(record: GpuRecord) -> Iterator[Message]:
    for (key, base), ratios in _ALLOWED_RATIOS.items():
        if key in record.flops and base in record.flops:
            stated, other = record.flops[key].value, record.flops[base].value
            nearest = min((other * ratio for ratio in ratios), key=lambda v: abs(v - stated))
            if _differs(stated, nearest):
                yield _contradiction(record, f"tflops.{key}", stated / 1e12, nearest / 1e12)


def _driver_total(record: GpuRecord) -> Iterator[Message]:
    """A driver reports at most the nominal memory, and keeps little of it back."""
    total, nominal = record.nvml_total_bytes, record.memory_bytes
    if total and not 0.9 <= total.value / nominal.value <= 1.005:
        yield _contradiction(record, "nvml_total_mib", total.value / 2**20, nominal.value / 2**20)


def _capacities(record: GpuRecord) -> Iterator[Message]:
    """CUDA offers less than the nominal memory, and little less."""
    nominal = record.memory_bytes.value
    for reading in record.capacities:
        if not 0.9 <= reading.bytes / nominal <= 1:
            yield _contradiction(record, "capacities", reading.bytes / 2**20, nominal / 2**20)


CORES_A_UNIT = (16, 32, 64, 128)
"""Shader cores of an SM, a compute unit, an Xe core; Apple's have 128. By the makers' papers."""


def _cores(record: GpuRecord) -> Iterator[Message]:
    """Shader cores are units x the cores of one."""
    units, cores = record.sm_count, record.cores
    if units and cores:
        nearest = min((units.value * n for n in CORES_A_UNIT), key=lambda v: abs(v - cores.value))
        if _differs(cores.value, nearest):
            yield _contradiction(record, "cores", cores.value, nearest)


SLOT_W, PLUG_W = 75.0, {
    "pcie_6": 75.0, "pcie_8": 150.0, "pcie_12": 375.0, "pcie_16": 600.0, "eps_8": 336.0,
}  # fmt: skip
"""PCI Express CEM 5.0; 12 pins: 9 A a pair of pins; EPS12V: 7 A a pin, four pairs."""


def _board_power(record: GpuRecord) -> Iterator[Message]:
    """A card draws at most what its slot and its plugs give."""
    if record.plugs is None or record.tdp_w is None or record.form not in (None, "card"):
        return
    given = SLOT_W + sum(PLUG_W[plug] * count for plug, count in record.plugs.items())
    if record.tdp_w.value > given * (1 + TOLERANCE):
        yield _contradiction(record, "tdp_w", record.tdp_w.value, given)


def _differs(stated: float, follows: float) -> bool:
    return abs(stated - follows) > TOLERANCE * follows


def _contradiction(record: GpuRecord, key: str, stated: float, follows: float) -> Message:
    return Message.of("catalog.implausible", gpu=record.id, key=key, stated=stated, follows=follows)
