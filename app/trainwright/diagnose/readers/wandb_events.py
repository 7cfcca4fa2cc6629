"""System metrics of Weights & Biases: lines of JSON with the names of its documentation.

``wandb-events.jsonl`` of a run folder, and what ``run.history(stream="events")`` returns.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from trainwright.diagnose.readers.found import Found, GpuSample, sample_count
from trainwright.messages import Message, UserError

_GPU = re.compile(r"^(?:system[./])?gpu\.(\d{1,2})\.(\w{1,40})$")
_FIELDS = {
    "gpu": ("utilisation", 0.01), "memory": ("memory_utilisation", 0.01),
    "memoryAllocatedBytes": ("memory_used_bytes", 1.0), "temp": ("temperature_c", 1.0),
    "powerWatts": ("power_w", 1.0), "enforcedPowerLimitWatts": ("power_limit_w", 1.0),
    "smClock": ("sm_clock_mhz", 1.0),
}  # fmt: skip
"""W&B's names -> a sample's field, and the factor to its unit."""
_SHARES = ("utilisation", "memory_utilisation")
_MARK = re.compile(r"\"(?:system[./])?gpu\.\d{1,2}\.gpu\"")


def recognised(text: str) -> bool:
    """Return whether lines of JSON name a GPU's utilisation as W&B does."""
    return text.lstrip()[:1] in "[{" and _MARK.search(text[: 1 << 16]) is not None


def read(text: str) -> Found:
    """Return the GPUs of all lines.

    Raises:
        UserError: no line is JSON with readings.
    """
    events = list(_events(text))
    samples = tuple(sample for event in events for sample in _samples(event))
    if not samples:
        raise UserError.of("diagnose.file.broken-json", format="wandb")
    loads = [value / 100 for event in events if (value := _figure(event, "cpu")) is not None]
    spread = (
        {"mean": sum(loads) / len(loads), "low": min(loads), "high": max(loads)} if loads else {}
    )
    facts = {"host": {"utilisation": spread}} if loads else {}
    missed = (Message.of("diagnose.file.no-step-times"),)
    return Found(tuple(sample_count(samples)), missed, facts, samples)


def _events(text: str) -> Iterator[dict[str, Any]]:
    for line in [text] if text.lstrip().startswith("[") else text.splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue  # a line that was cut off
        yield from (each for each in (event if isinstance(event, list) else [event])
                    if isinstance(each, dict))  # fmt: skip


def _figure(event: dict[str, Any], name: str) -> float | None:
    value = event.get(f"system.{name}", event.get(f"system/{name}", event.get(name)))
    if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 100:
        return float(value)
    return None


def _samples(event: dict[str, Any]) -> Iterator[GpuSample]:
    gpus: dict[int, dict[str, float]] = {}
    for key, value in event.items():
        name = _GPU.match(key)
        if name is None or name[2] not in _FIELDS or isinstance(value, bool):
            continue
        field, factor = _FIELDS[name[2]]
        if isinstance(value, int | float) and 0 <= value < 1e18:
            held = value * factor
            if field not in _SHARES or held <= 1:
                gpus.setdefault(int(name[1]), {})[field] = held
    for index, readings in gpus.items():
        yield GpuSample(index=index, **readings)  # type: ignore[arg-type]
