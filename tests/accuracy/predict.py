"""What Trainwright says to each row: the figure that the row's metric asks for, and its p95."""

from dataclasses import dataclass
from functools import cache

import packed
from rows import Row, profile_name, rows

from trainwright.catalog import catalog
from trainwright.estimate.memory.device_memory import Asked, MemoryEstimate, estimate_memory
from trainwright.explain import Kind, Quantity, Unit
from trainwright.machine import capacity
from trainwright.machine.machine import Gpu
from trainwright.messages import Message
from trainwright.profile import codec
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings


@dataclass(frozen=True, slots=True)
class Prediction:
    """One row and its answer, in bytes."""

    row: Row
    predicted: float
    p95: float
    fits: bool
    """By the p95, as the app decides."""
    profile: Profile
    estimate: MemoryEstimate

    @property
    def error(self) -> float:
        """Relative to the measurement."""
        return self.predicted / self.row.measured_bytes - 1

    @property
    def ratio(self) -> float:
        """Of the p95 to the measurement."""
        return self.p95 / self.row.measured_bytes


@cache
def predictions() -> tuple[Prediction, ...]:
    """Return the answer to every row whose profile is there."""
    return tuple(predict(row) for row in rows() if packed.has(profile_name(row)))


@cache
def profile_of(row: Row) -> Profile:
    """Return the profile of the row's structure."""
    return codec.decode(packed.read(profile_name(row)), row.id)


def predict(row: Row) -> Prediction:
    """Return the answer to one row."""
    profile = profile_of(row)
    estimate = estimate_memory(
        Asked(
            profile,
            gpu_of(row),
            settings_of(row),
            batch=row.batch,
            sequence=row.length,
            new_tokens=row.generates if row.infers else None,
            gpu_count=row.replicas,
        )
    )
    predicted, p95 = (value + (row.beside_mib << 20) for value in _asked(row, estimate))
    over = estimate.device_used_p95.value > estimate.device_total.value
    fits = not (estimate.out_of_memory or over)
    return Prediction(row, predicted, p95, fits, profile, estimate)


def _asked(row: Row, estimate: MemoryEstimate) -> tuple[float, float]:
    """Return the figure of the row's metric, and its p95."""
    if row.metric == "allocated":
        predicted, p95 = _with_p95(estimate.allocated_peak)
        # Until transformers 4.36 a cache was a tuple, remade in each step: the last one's keys
        # and values lived until the step was over.
        again = sum(t.value for t in estimate.terms if t.role == "kv_cache")
        twice = float(again) if "tuple cache" in row.versions else 0.0
        return predicted + twice, p95 + twice
    if row.metric == "reserved":
        return _with_p95(estimate.reserved_peak)
    if row.context_mib:  # Measured, as the app measures it on the computer that it runs on.
        predicted, p95 = _with_p95(estimate.reserved_peak)
        return predicted + (row.context_mib << 20), p95 + (row.context_mib << 20)
    return float(estimate.device_used.value), float(estimate.device_used_p95.value)


def _with_p95(quantity: Quantity) -> tuple[float, float]:
    assert quantity.interval is not None
    return float(quantity.value), float(quantity.interval.high)


def gpu_of(row: Row) -> Gpu:
    """Return the row's GPU with no other program on it.

    Where the question is whether it fits, the driver's own share is taken off as the app does;
    it is not part of what nvidia-smi counts as used.
    """
    record = catalog().record(row.gpu)
    nothing = Quantity(Message.of("machine.held"), 0, Unit.BYTES, Kind.ASSUMED)
    held = nothing if row.measured else capacity.held(record, "linux", 0)
    return Gpu(record, 1, capacity.capacity(record, "linux"), held)


def settings_of(row: Row) -> FullSettings:
    """Return the row's settings; those that memory does not depend on have their defaults."""
    return FullSettings(
        precision=row.precision,  # type: ignore[arg-type]
        quantization="none",
        kv_cache="bf16",
        micro_batch=row.batch,
        accumulation=row.accumulation,
        checkpointing=row.checkpointing,
        optimizer=row.optimizer.removesuffix("-foreach") or "adamw",  # type: ignore[arg-type]
        attention=row.attention,  # type: ignore[arg-type]
        compile=False,
        channels_last=False,
        allocator="native",
        strategy="ddp" if row.replicas > 1 else "single",
        learning_rate=None,
        warmup=None,
        num_workers=2,
        prefetch_factor=2,
        pin_memory=True,
        persistent_workers=True,
    )
