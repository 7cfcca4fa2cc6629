"""The text of ``gpustat`` and of ``nvitop``, and Weights & Biases' system metrics.

W&B's are lines of JSON with the names of its documentation: ``wandb-events.jsonl`` of a run folder,
and what ``run.history(stream="events")`` returns.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from trainwright.diagnose import texts
from trainwright.diagnose.readers.found import (
    Found,
    GpuSample,
    called,
    of_gpus,
    sampled,
    spread,
)
from trainwright.diagnose.readers.nvidia_smi import panels
from trainwright.messages import UserError

_GPUSTAT = re.compile(
    r"^ ?\[(?P<index>\d{1,2})\] (?P<name>[^|\n]{1,60}?) ?\|"
    r" ?(?P<temperature_c>\d+|\?\?) ?'?°?C?,"
    r"(?: ?\d+ ?%,(?= ?\d+ ?%))? ?(?P<utilisation>\d+|\?\?) ?%"
    r"(?:, ?(?P<power_w>\d+|\?\?) ?(?:/ ?(?P<power_limit_w>\d+|\?\?) ?)?W)? ?"
    r"\| ?(?P<memory_used_bytes>\d+|\?\?) ?/ ?(?P<memory_total_bytes>\d+|\?\?) ?MB",
    re.MULTILINE,
)
"""A GPU's line, by the fields of a sample; what gpustat calls MB is MiB."""
_GPUSTAT_JSON = re.compile(r"\s*\{\s{0,80}\"hostname\":[^\[]{0,400}\"gpus\":")
_QUERY = called("query")
"""Its JSON has nvidia-smi's names."""
_BAR = r"[│|║┃]"
_TEMPERATURE = r"(?:\d+%|N/A|MAX) (?P<temperature_c>\d+C|N/A) (?P<performance_state>P\d+|N/A) "
_MEMORY = (
    rf" ?/ ?(?P<power_limit_w>\d+W|N/A) ?{_BAR} ?(?P<memory_used_bytes>[\d.]+[KMGT]iB|N/A)"
    rf" ?/ ?(?P<memory_total_bytes>[\d.]+[KMGT]iB|N/A) ?{_BAR} ?(?P<utilisation>\d+%|N/A|MAX)"
)
_NVITOP_NAME = re.compile(
    rf"{_BAR} (?P<index>\d{{1,2}}) (?P<name>\S[^│|║┃]{{0,60}}?) (?:On|Off|N/A|WDDM|TCC) ?{_BAR}"
    r" ?[0-9A-Fa-f]{4,8}:"
)
_NVITOP = re.compile(rf"{_BAR} ?{_TEMPERATURE}(?P<power_w>\d+W|N/A){_MEMORY}")
_COMPACT = re.compile(
    rf"{_BAR} ?(?P<index>\d{{1,2}}) {_TEMPERATURE}(?P<power_w>\d+W?|N/A){_MEMORY}"
)
_FULL_LOAD = re.compile(r"\bMAX\b")


def is_gpustat(text: str) -> bool:
    """Return whether there is a line of ``gpustat``, or its JSON."""
    return (
        _GPUSTAT.search(texts.squeezed(text)) is not None or _GPUSTAT_JSON.match(text) is not None
    )


def read_gpustat(text: str) -> Found:
    """Return the GPUs of all lines of ``gpustat``, or of ``gpustat --json``.

    Raises:
        UserError: the JSON is broken.
    """
    if _GPUSTAT_JSON.match(text) is None:
        lines = _GPUSTAT.finditer(texts.squeezed(text))
        return of_gpus(sampled(each["index"], each.groupdict()) for each in lines)
    return of_gpus(texts.from_json(text, "gpustat", _queried))


def _queried(data: Any) -> list[GpuSample]:
    return [
        sampled(gpu["index"], {_QUERY[key]: str(value) for key, value in gpu.items()
                               if key in _QUERY and value is not None})
        for gpu in data["gpus"]
    ]  # fmt: skip


def is_nvitop(text: str) -> bool:
    """Return whether there is a line of readings of ``nvitop``."""
    text = texts.squeezed(text)
    readings = _NVITOP.search(text) or _COMPACT.search(text)
    return "nvitop" in text.lower() and readings is not None


def read_nvitop(text: str) -> Found:
    """Return the GPUs of all panels of ``nvitop``, full or compact."""
    return of_gpus(_nvitop(_FULL_LOAD.sub("100%", texts.squeezed(text))))


def _nvitop(text: str) -> Iterator[GpuSample]:
    yield from panels(text, _NVITOP_NAME, _NVITOP)
    for each in _COMPACT.finditer(text):
        yield sampled(each["index"], each.groupdict())


_WANDB = re.compile(r"^(?:system[./])?gpu\.(\d{1,2})\.(\w{1,40})$")
_CPU = ("system.cpu", "system/cpu", "cpu")
_WANDB_NAMES = called("wandb")
_WANDB_MARK = re.compile(r"\"(?:system[./])?gpu\.\d{1,2}\.gpu\"")


def is_wandb(text: str) -> bool:
    """Return whether lines of JSON name a GPU's utilisation as W&B does."""
    return text.lstrip()[:1] in "[{" and _WANDB_MARK.search(text[: 1 << 16]) is not None


def read_wandb(text: str) -> Found:
    """Return the GPUs of all lines.

    Raises:
        UserError: no line is JSON with readings.
    """
    events = list(_events(text))
    samples = tuple(sample for event in events for sample in _wandb(event))
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


def _wandb(event: dict[str, Any]) -> Iterator[GpuSample]:
    gpus: dict[str, dict[str, str]] = {}
    for key, value in event.items():
        name = _WANDB.match(key)
        if name is not None and name[2] in _WANDB_NAMES and type(value) in (int, float):
            field = _WANDB_NAMES[name[2]]
            word = f"{value:.3f}B" if field == "memory_used_bytes" else str(value)
            gpus.setdefault(name[1], {})[field] = word
    samples = (sampled(index, words) for index, words in gpus.items())
    yield from (each for each in samples if each.readings)
