"""What a reader returns: parts of a record as plain data, and what it could not take."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from trainwright.diagnose.budget import Budget
from trainwright.messages import Message

GIB, MIB, KIB = 1 << 30, 1 << 20, 1 << 10
IDLE_BELOW = 0.1
"""Utilisation of a sample that counts as idle, as ``GpuReadings.idle_share`` says."""
FEW_SAMPLES = 3
"""Fewer tell nothing of how a reading changes; assumed."""


@dataclass(frozen=True, slots=True)
class GpuSample:
    """One GPU at one moment, as a tool printed it; shares, bytes, watts, degrees, MHz."""

    index: int
    name: str | None = None
    utilisation: float | None = None
    memory_utilisation: float | None = None
    sm_active: float | None = None
    sm_occupancy: float | None = None
    tensor_active: float | None = None
    dram_active: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    sm_clock_mhz: float | None = None
    sm_clock_max_mhz: float | None = None
    power_limit_w: float | None = None
    power_limit_default_w: float | None = None
    performance_state: int | None = None
    memory_used_bytes: float | None = None
    memory_total_bytes: float | None = None
    link_generation: int | None = None
    link_generation_max: int | None = None
    link_width: int | None = None
    link_width_max: int | None = None
    received_bytes_s: float | None = None
    sent_bytes_s: float | None = None
    throttled: frozenset[str] | None = None


_SPREADS = (
    "utilisation", "memory_utilisation", "sm_active", "sm_occupancy", "tensor_active",
    "dram_active", "power_w", "temperature_c", "sm_clock_mhz",
)  # fmt: skip
_MEANS = ("received_bytes_s", "sent_bytes_s")
_LARGEST = ("memory_used_bytes",)


@dataclass(frozen=True, slots=True)
class Found:
    """What one file says."""

    took: tuple[Message, ...]
    """Sentences about what was read."""
    missed: tuple[Message, ...] = ()
    """Sentences about what the file does not say, or what could not be read."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Parts of a record, as its file would hold them: ``{"steps": {...}}``."""
    gpus: tuple[GpuSample, ...] = ()
    budget: Budget | None = None


def without_absent(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the facts that are there: what is None was not said."""
    return {key: value for key, value in facts.items() if value is not None}


def gpu_readings(samples: Iterable[GpuSample]) -> list[dict[str, Any]]:
    """Return the readings of each GPU over its samples, by index."""
    by_index: dict[int, list[GpuSample]] = {}
    for sample in samples:
        by_index.setdefault(sample.index, []).append(sample)
    return [_summed(by_index[index]) for index in sorted(by_index)]


def _summed(samples: list[GpuSample]) -> dict[str, Any]:
    readings: dict[str, Any] = {}
    for name in (each.name for each in fields(GpuSample)):
        values = [value for each in samples if (value := getattr(each, name)) is not None]
        if values and name not in ("index", "throttled"):
            readings[name] = _over_time(name, values)
    used = [each.utilisation for each in samples if each.utilisation is not None]
    if len(used) >= FEW_SAMPLES:
        readings["idle_share"] = sum(value < IDLE_BELOW for value in used) / len(used)
    reasons = [each.throttled for each in samples if each.throttled is not None]
    if reasons:
        seen = set().union(*reasons)
        readings["throttled"] = {
            reason: sum(reason in each for each in reasons) / len(reasons)
            for reason in sorted(seen)
        }
    return readings


def _over_time(name: str, values: list[Any]) -> Any:
    if name in _SPREADS:
        return {"mean": sum(values) / len(values), "low": min(values), "high": max(values)}
    if name in _MEANS:
        return sum(values) / len(values)
    return max(values) if name in _LARGEST else values[-1]


def sample_count(samples: Iterable[GpuSample]) -> Iterator[Message]:
    """Yield the sentence on how many GPUs were seen, and how often."""
    indices = [each.index for each in samples]
    if indices:
        times = max(indices.count(index) for index in set(indices))
        gpus = Message.of("diagnose.file.gpus", count=len(set(indices)))
        yield Message.of("diagnose.file.gpu-samples", gpus=gpus, count=times)
        if times < FEW_SAMPLES:
            yield Message.of("diagnose.file.a-glance")
