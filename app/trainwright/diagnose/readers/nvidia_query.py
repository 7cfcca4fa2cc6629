"""``nvidia-smi --query-gpu=... --format=csv``: one line a GPU and moment.

Names of the columns: ``nvidia-smi --help-query-gpu``. ``--query-compute-apps`` lists processes.
"""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from trainwright.diagnose.readers import texts
from trainwright.diagnose.readers.found import MIB, Found, GpuSample, sample_count
from trainwright.messages import Message, UserError


def _mebibytes(word: str) -> float | None:
    """Return bytes; ``nounits`` leaves out what is always MiB."""
    value = texts.number(word)
    return value * MIB if value is not None else None


def _whole(word: str) -> int | None:
    value = texts.number(word)
    return int(value) if value is not None and 0 < value <= 32 else None


def _state(word: str) -> int | None:
    digits = word.strip().removeprefix("P")
    return int(digits) if digits.isdigit() and int(digits) <= 15 else None


def _name(word: str) -> str | None:
    return word.strip()[:200] or None


_COLUMNS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "name": ("name", _name),
    "gpu_name": ("name", _name),
    "utilization.gpu": ("utilisation", texts.percent),
    "utilization.memory": ("memory_utilisation", texts.percent),
    "memory.used": ("memory_used_bytes", _mebibytes),
    "memory.total": ("memory_total_bytes", _mebibytes),
    "power.draw": ("power_w", texts.number),
    "power.draw.average": ("power_w", texts.number),
    "power.draw.instant": ("power_w", texts.number),
    "power.limit": ("power_limit_w", texts.number),
    "enforced.power.limit": ("power_limit_w", texts.number),
    "power.default_limit": ("power_limit_default_w", texts.number),
    "temperature.gpu": ("temperature_c", texts.number),
    "clocks.sm": ("sm_clock_mhz", texts.number),
    "clocks.current.sm": ("sm_clock_mhz", texts.number),
    "clocks.max.sm": ("sm_clock_max_mhz", texts.number),
    "pstate": ("performance_state", _state),
    "pcie.link.gen.current": ("link_generation", _whole),
    "pcie.link.gen.gpucurrent": ("link_generation", _whole),
    "pcie.link.gen.max": ("link_generation_max", _whole),
    "pcie.link.width.current": ("link_width", _whole),
    "pcie.link.width.max": ("link_width_max", _whole),
}
REASONS = {
    "sw_power_cap": "power-cap",
    "hw_slowdown": "hardware-slowdown",
    "sw_thermal_slowdown": "thermal",
    "hw_thermal_slowdown": "hardware-thermal",
    "hw_power_brake_slowdown": "power-brake",
}
"""nvidia-smi's names of the clock event reasons, in the words of a record."""
_BITS = {0x4: "power-cap", 0x8: "hardware-slowdown", 0x20: "thermal", 0x40: "hardware-thermal",
         0x80: "power-brake"}  # fmt: skip
"""nvmlClocksEventReasons."""
_ACTIVE = ("clocks_event_reasons.", "clocks_throttle_reasons.")
_INDEX = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial")
_KNOWN = {*_COLUMNS, *_INDEX, "timestamp"}


_UNNAMED = re.compile(r"^[^\n|]{0,200}\b\d{1,3} %, [^\n|]{0,200}\b\d{1,7} MiB\b", re.MULTILINE)
"""A line of the query with ``noheader``."""


def recognised(text: str) -> bool:
    """Return whether a line near the start names columns of this query, or could be of it."""
    head = text.splitlines()[:50]
    named = _heading(head) is not None or any(map(_names_processes, head))
    return named or _UNNAMED.search(text[:4096]) is not None


def _names_processes(line: str) -> bool:
    return "pid" in (keys := _keys(line)) and bool({"process_name", "used_gpu_memory"} & set(keys))


def _keys(line: str) -> list[str]:
    return [cell.split("[")[0].strip().strip('"').lower() for cell in line.split(",")]


def _heading(lines: Sequence[str]) -> int | None:
    """Return the line that names the columns; at least one beyond those that tell GPUs apart."""
    return next(
        (at for at, line in enumerate(lines)
         if any((key in _COLUMNS and key not in ("name", "gpu_name")) or key.startswith(_ACTIVE)
                for key in _keys(line))),
        None,
    )  # fmt: skip


def read(text: str) -> Found:
    """Return the GPUs of all lines.

    Raises:
        UserError: there is a heading and no reading, or no heading.
    """
    lines = text.splitlines()
    at = _heading(lines[:50])
    if at is None:
        return _processes(lines)
    keys = _keys(lines[at])
    samples = tuple(_samples(keys, lines[at + 1 :]))
    if not samples:
        raise UserError.of("diagnose.file.no-rows")
    unread = [key for key in keys if key not in _KNOWN and not key.startswith(_ACTIVE)]
    missed = [Message.of("diagnose.file.no-step-times")]
    if unread:
        missed.append(Message.of("diagnose.file.columns-left", names=unread[:20]))
    return Found(tuple(sample_count(samples)), tuple(missed), gpus=samples)


def _processes(lines: list[str]) -> Found:
    """Return how many processes ``--query-compute-apps`` lists.

    Raises:
        UserError: there is no heading.
    """
    at = next((at for at, line in enumerate(lines[:50]) if _names_processes(line)), None)
    if at is None:
        raise UserError.of("diagnose.file.no-heading")
    column = _keys(lines[at]).index("pid")
    cells = (line.split(",") for line in lines[at + 1 :])
    pids = {row[column].strip() for row in cells if len(row) > column} - {"pid"}
    took = Message.of("diagnose.file.gpu-processes", count=len(pids))
    missed = ("diagnose.file.no-step-times", "diagnose.file.no-utilisation")
    return Found((took,), tuple(map(Message.of, missed)))


def _samples(keys: list[str], lines: list[str]) -> Iterator[GpuSample]:
    known: dict[str, int] = {}
    told_apart = next((key for key in _INDEX if key in keys), None)
    for row in csv.reader(lines, skipinitialspace=True):
        if len(row) != len(keys) or _keys(",".join(row)) == keys:
            continue  # a repeated heading, or a line that was cut off
        values = dict(zip(keys, row, strict=True))
        index = 0
        if told_apart == "index" and values["index"].strip().isdigit():
            index = int(values["index"])
        elif told_apart is not None:
            index = known.setdefault(values[told_apart], len(known))
        if index < MOST_GPUS:
            yield GpuSample(index=index, throttled=_throttled(values), **_readings(values))


MOST_GPUS = 64
"""GPUs that a record holds."""


def _readings(values: dict[str, str]) -> dict[str, Any]:
    readings: dict[str, Any] = {}
    for key, word in values.items():
        if key in _COLUMNS:
            field, parse = _COLUMNS[key]
            value = parse(word)
            if value is not None and (not isinstance(value, float) or value >= 0):
                readings.setdefault(field, value)
    return readings


def _throttled(values: dict[str, str]) -> frozenset[str] | None:
    """Return the reasons that held the clocks down; None where none was asked for."""
    asked, active = False, set()
    for key, word in values.items():
        reason = key.partition(".")[2] if key.startswith(_ACTIVE) else ""
        if reason in REASONS and word.strip() in ("Active", "Not Active"):
            asked = True
            active |= {REASONS[reason]} if word.strip() == "Active" else set()
        elif reason == "active" and word.strip().lower().startswith("0x"):
            try:
                mask = int(word.strip(), 16)
            except ValueError:
                continue
            asked = True
            active |= {name for bit, name in _BITS.items() if mask & bit}
    return frozenset(active) if asked else None
