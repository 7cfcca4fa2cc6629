"""System metrics of Weights & Biases: lines of JSON with the names of its documentation.

``wandb-events.jsonl`` of a run folder, and what ``run.history(stream="events")`` returns.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trainwright.diagnose.readers import texts
from trainwright.diagnose.readers.found import Found, GpuSample, called, of_gpus, sampled, spread
from trainwright.messages import UserError

_GPU = re.compile(r"^(?:system[./])?gpu\.(\d{1,2})\.(\w{1,40})$")
_CPU = ("system.cpu", "system/cpu", "cpu")
_FIELDS = called("wandb")
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
    words = (next((event[name] for name in _CPU if name in event), "") for event in events)
    loads = [load for word in words if (load := texts.percent(str(word))) is not None]
    facts = {"host": {"utilisation": spread(loads)}} if loads else {}
    return replace(of_gpus(samples), facts=facts)


def _events(text: str) -> Iterator[dict[str, Any]]:
    for line in [text] if text.lstrip().startswith("[") else text.splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue  # a line that was cut off
        yield from (each for each in (event if isinstance(event, list) else [event])
                    if isinstance(each, dict))  # fmt: skip


def _samples(event: dict[str, Any]) -> Iterator[GpuSample]:
    gpus: dict[str, dict[str, str]] = {}
    for key, value in event.items():
        name = _GPU.match(key)
        if name is not None and name[2] in _FIELDS and type(value) in (int, float):
            field = _FIELDS[name[2]]
            word = f"{value:.3f}B" if field == "memory_used_bytes" else str(value)
            gpus.setdefault(name[1], {})[field] = word
    samples = (sampled(index, words) for index, words in gpus.items())
    yield from (each for each in samples if each.readings)
