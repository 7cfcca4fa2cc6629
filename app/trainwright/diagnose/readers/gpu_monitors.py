"""The text of ``gpustat``, ``nvtop`` and ``nvitop``, and Weights & Biases' system metrics.

W&B's have the names of its documentation: lines of JSON (``wandb-events.jsonl`` of a run folder,
and what ``run.history(stream="events")`` returns), that as CSV, or a chart as CSV, whose columns
are named after the run and the metric.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Literal

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
from trainwright.messages import Message, UserError

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
"""Its JSON has nvidia-smi's names."""
_NVTOP = re.compile(
    r"Device (?P<index>\d{1,2}) \[(?P<name>[^\]\n]{1,80})\][^\n]*\n"
    r" ?GPU (?P<sm_clock_mhz>\d+)MHz[^\n]*TEMP (?P<temperature_c>\d+)[^\n]*"
    r" POW (?P<power_w>\d+|N/A) / (?P<power_limit_w>\d+|N/A) W[^\n]*\n"
    r" ?GPU\[[| ]*(?P<utilisation>\d+)%\] ?MEM\[[| ]*(?P<memory_used_bytes>[\d.]+[MG]i)"
    r"/(?P<memory_total_bytes>[\d.]+[MG]i)\]"
)
_NVTOP_JSON = re.compile(r"\s*\[\s*\{\s*\"device_name\":")
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


def gpustat(text: str) -> Found | None:
    """Return the GPUs of all lines of ``gpustat``, or of ``gpustat --json``."""
    if _GPUSTAT_JSON.match(text) is None:
        return _lines(_GPUSTAT, text)
    return of_gpus(texts.from_json(text, "gpustat", lambda data: _named("query", data["gpus"])))


def nvtop(text: str) -> Found | None:
    """Return the GPUs of a screen of ``nvtop``, or of ``nvtop --snapshot``."""
    if _NVTOP_JSON.match(text) is None:
        return _lines(_NVTOP, text)
    return of_gpus(texts.from_json(text, "nvtop", lambda data: _named("nvtop", data)))


def nvitop(text: str) -> Found | None:
    """Return the GPUs of all panels of ``nvitop``, full or compact."""
    text = _FULL_LOAD.sub("100%", texts.squeezed(text))
    compact = _COMPACT.finditer(text)
    samples = [*panels(text, _NVITOP_NAME, _NVITOP),
               *(sampled(each["index"], each.groupdict()) for each in compact)]  # fmt: skip
    return of_gpus(samples) if "nvitop" in text.lower() and samples else None


def _lines(pattern: re.Pattern[str], text: str) -> Found | None:
    """Return the GPUs of all places that a pattern fits; None where there is none."""
    found = pattern.finditer(texts.squeezed(text))
    samples = [sampled(each["index"], each.groupdict()) for each in found]
    return of_gpus(samples) if samples else None


def _named(tool: Literal["query", "nvtop", "wandb"], gpus: list[dict[str, Any]]) -> list[GpuSample]:
    """Return what JSON says of each GPU by a tool's names; gpustat alone counts in MiB."""
    names, samples = called(tool), []
    for at, gpu in enumerate(gpus):
        words = {}
        for key, value in gpu.items():
            if key in names and type(value) in (int, float, str):
                whole = tool != "query" and names[key].endswith("_bytes")
                words[names[key]] = f"{float(value):.0f}B" if whole else str(value)
        samples.append(sampled(at if tool == "nvtop" else gpu["index"], words))
    return samples


_WANDB = re.compile(r"^(?:system[./])?gpu\.(\d{1,2})\.(\w{1,40})$")
_CPU = ("system.cpu", "system/cpu", "cpu")
_WANDB_MARK = re.compile(r"\"(?:system[./])?gpu\.\d{1,2}\.gpu\"")
_WANDB_COLUMN = re.compile(r"\bgpu\.\d{1,2}\.[a-z]")


def of_first_run(names: Sequence[str]) -> tuple[list[str], Message | None]:
    """Return columns by their metric, those of other runs than the first blank, and who that is.

    A chart of W&B names the column of one run "run - metric".
    """
    found = [name.rpartition(" - ") for name in names]
    runs = list(dict.fromkeys(run for run, mark, _ in found if mark))
    kept = [metric if not mark or run == runs[0] else "" for run, mark, metric in found]
    if len(runs) < 2:
        return kept, None
    return kept, Message.of("diagnose.file.runs-left", run=runs[0], count=len(runs) - 1)


def wandb(text: str) -> Found | None:
    """Return the GPUs of all lines of JSON or CSV that name a GPU's readings as W&B does."""
    left: tuple[Message, ...] = ()
    if text.lstrip()[:1] in ("[", "{") and _WANDB_MARK.search(text[: 1 << 16]) is not None:
        events = list(_events(text))
    elif _WANDB_COLUMN.search(text[: 1 << 16]) and (held := texts.table(text)) is not None:
        names, others = of_first_run(held[0])
        if not any(map(_WANDB.match, names)):
            return None
        left = () if others is None else (others,)
        cells = texts.columns(names, held[1])
        events = [
            {name: column[at] for name, column in cells.items()} for at in range(len(held[1]))
        ]
    else:
        return None
    samples = tuple(sample for event in events for sample in _wandb(event))
    if not samples and text.lstrip()[:1] in ("[", "{"):
        raise UserError.of("diagnose.file.broken-json", format="wandb")
    if not samples:
        raise UserError.of("diagnose.file.no-rows")
    words = (next((event[name] for name in _CPU if name in event), "") for event in events)
    loads = [load for word in words if (load := texts.percent(str(word))) is not None]
    facts = {"host": {"utilisation": spread(loads)}} if loads else {}
    found = of_gpus(samples)
    return replace(found, missed=(*found.missed, *left), facts=facts)


def _events(text: str) -> Iterator[dict[str, Any]]:
    for line in [text] if text.lstrip().startswith("[") else text.splitlines():
        try:
            event = json.loads(line)
        except (ValueError, RecursionError):
            continue  # a line that was cut off
        yield from (each for each in (event if isinstance(event, list) else [event])
                    if isinstance(each, dict))  # fmt: skip


def _wandb(event: dict[str, Any]) -> Iterator[GpuSample]:
    gpus: dict[str, dict[str, Any]] = {}
    for key, value in event.items():
        if (name := _WANDB.match(key)) is not None and type(value) in (int, float):
            gpus.setdefault(name[1], {"index": name[1]})[name[2]] = value
    yield from (each for each in _named("wandb", [*gpus.values()]) if each.readings)
