"""Published ladders: one model on one GPU with settings changed, and what the product says."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import packed
from optables import ROWS

from trainwright.catalog import catalog
from trainwright.estimate.time.clock import Clock
from trainwright.estimate.time.operator_clock import Situation
from trainwright.estimate.time.steptime import estimate_time
from trainwright.explain import Kind, Quantity, Unit
from trainwright.machine import capacity
from trainwright.machine.machine import Gpu
from trainwright.messages import Message
from trainwright.profile import codec, shipped
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings, Workload

SAME = 0.03
"""Two settings whose measured rates differ by less are in either order."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One setting of a ladder with its measured rate."""

    ladder: str
    source: str
    model: str
    """preset:NAME, or the name of a profile in the archive with what builds it: timm:NAME."""
    gpu: str
    precision: str
    layout: str
    batch: int
    sequence: int
    accumulation: int
    checkpointing: str
    compiled: bool
    optimizer: str
    rate: float
    unit: str
    note: str
    cause: str
    """Why the order of the ladder may be predicted wrongly: what the product does not know."""


@cache
def ladders() -> dict[str, tuple[Rung, ...]]:
    """Return the rungs of every ladder, in the order of the file."""
    found: dict[str, tuple[Rung, ...]] = {}
    for rung in _rungs():
        found[rung.ladder] = (*found.get(rung.ladder, ()), rung)
    return found


def _rungs() -> Iterator[Rung]:
    with (ROWS / "ladders.csv").open(encoding="utf-8", newline="") as file:
        for fields in csv.DictReader(file):
            numbers = {key: int(fields.pop(key)) for key in ("batch", "sequence", "accumulation")}
            compiled, rate = fields.pop("compiled") == "y", float(fields.pop("rate"))
            yield Rung(**fields, **numbers, compiled=compiled, rate=rate)  # type: ignore[arg-type]


@cache
def predicted(rung: Rung) -> float:
    """Return the samples a second that the product estimates on one GPU."""
    settings = FullSettings(
        precision=rung.precision,
        quantization="none",
        kv_cache="bf16",
        micro_batch=rung.batch,
        accumulation=rung.accumulation,
        checkpointing=rung.checkpointing,
        optimizer=rung.optimizer,
        attention="sdpa",
        compile=rung.compiled,
        channels_last=rung.layout == "nhwc",
        allocator="native",
        strategy="single",
        learning_rate=None,
        warmup=None,
        num_workers=2,
        prefetch_factor=2,
        pin_memory=True,
        persistent_workers=True,
    )
    workload = Workload(task="full", effective_batch=rung.batch * rung.accumulation)
    clock = Clock(Situation(_gpu(rung.gpu), 1, workload, rung.sequence))
    estimate = estimate_time(profile_of(rung), clock, settings, rung.batch)
    return float(estimate.samples_per_second.value)


def profile_of(rung: Rung) -> Profile:
    """Return the profile of a rung's model in its precision."""
    kind, _, name = rung.model.rpartition(":")
    if kind != "preset":
        return _packed(packed_name(rung.model))
    precision = {"tf32": "fp32"}.get(rung.precision, rung.precision)
    kernel = "efficient" if precision == "fp32" else "flash"
    profile = shipped.profile(name, f"full-{precision}-{kernel}")
    assert profile is not None
    return profile


def packed_name(model: str) -> str:
    """Return the archive's name of a model that does not ship: ``scripts/trace_ladders.py``."""
    return f"ladders/{model.rpartition(':')[2]}"


@cache
def _packed(name: str) -> Profile:
    return codec.decode(packed.read(name), name)


def _gpu(slug: str) -> Gpu:
    record = catalog().record(slug)
    nothing = Quantity(Message.of("machine.held"), 0, Unit.BYTES, Kind.ASSUMED)
    return Gpu(record, 1, capacity.capacity(record, "linux"), nothing)


def pairs(rungs: tuple[Rung, ...]) -> list[tuple[Rung, Rung]]:
    """Return the pairs (slower, faster) whose measured rates are apart."""
    ordered = [sorted(pair, key=_samples) for pair in combinations(rungs, 2)]
    return [(low, high) for low, high in ordered if _samples(high) > (1 + SAME) * _samples(low)]


def wrong(rungs: tuple[Rung, ...]) -> list[tuple[Rung, Rung]]:
    """Return the pairs whose predicted order is not the measured one."""
    return [(low, high) for low, high in pairs(rungs) if predicted(low) >= predicted(high)]


def _samples(rung: Rung) -> float:
    """Return the measured rate; a ladder has one unit, and steps do not change their size."""
    return rung.rate
