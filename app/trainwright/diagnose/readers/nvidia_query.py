"""``nvidia-smi --query-gpu=... --format=csv``: one line a GPU and moment.

Names of the columns: ``nvidia-smi --help-query-gpu``. ``--query-compute-apps`` lists processes.
"""

import csv
import re
from collections.abc import Iterator, Sequence

from trainwright.diagnose.readers.found import Found, GpuSample, called, of_gpus, sampled
from trainwright.diagnose.readers.nvidia_report import REASONS
from trainwright.messages import Message, UserError

_COLUMNS = called("query")
_BITS = {0x4: "power-cap", 0x8: "hardware-slowdown", 0x20: "thermal", 0x40: "hardware-thermal",
         0x80: "power-brake"}  # fmt: skip
"""nvmlClocksEventReasons."""
_ACTIVE = ("clocks_event_reasons.", "clocks_throttle_reasons.")
_INDEX = ("index", "uuid", "gpu_uuid", "pci.bus_id", "gpu_bus_id", "serial", "gpu_serial")
_KNOWN = {*_COLUMNS, *_INDEX, "timestamp"}
_UNNAMED = re.compile(r"^[^\n|]{0,200}\b\d{1,3} %, [^\n|]{0,200}\b\d{1,7} MiB\b", re.MULTILINE)
"""A line of the query with ``noheader``."""
_HEAD = 50
"""Lines among which the names of the columns stand; assumed."""


def _names_readings(line: str) -> bool:
    """Return whether a line names a column beyond those that tell GPUs apart."""
    return any(_COLUMNS.get(key, "name") != "name" or key.startswith(_ACTIVE)
               for key in _keys(line))  # fmt: skip


def _names_processes(line: str) -> bool:
    return "pid" in (keys := _keys(line)) and bool({"process_name", "used_gpu_memory"} & set(keys))


def _keys(line: str) -> list[str]:
    return [cell.split("[")[0].strip().strip('"').lower() for cell in line.split(",")]


def read(text: str) -> Found | None:
    """Return the GPUs of all lines, or how many processes they list."""
    lines = text.splitlines()
    for at, line in enumerate(lines[:_HEAD]):
        if _names_readings(line):
            return _gpus(_keys(line), lines[at + 1 :])
    for at, line in enumerate(lines[:_HEAD]):
        if _names_processes(line):
            return _processes(_keys(line).index("pid"), lines[at + 1 :])
    if _UNNAMED.search(text[:4096]) is not None:
        raise UserError.of("diagnose.file.no-heading")
    return None


def _gpus(keys: list[str], lines: Sequence[str]) -> Found:
    found = of_gpus(_samples(keys, lines))
    if not found.gpus:
        raise UserError.of("diagnose.file.no-rows")
    unread = [key for key in keys if key not in _KNOWN and not key.startswith(_ACTIVE)]
    left = [Message.of("diagnose.file.columns-left", names=unread[:20])] if unread else []
    return Found(found.took, (*found.missed, *left), gpus=found.gpus)


def _processes(column: int, lines: Sequence[str]) -> Found:
    cells = (line.split(",") for line in lines)
    pids = {row[column].strip() for row in cells if len(row) > column} - {"pid"}
    took = Message.of("diagnose.file.gpu-processes", count=len(pids))
    return of_gpus((), took, missed=["no-utilisation"])


def _samples(keys: list[str], lines: Sequence[str]) -> Iterator[GpuSample]:
    known: dict[str, int] = {}
    told_apart = next((key for key in _INDEX if key in keys), None)
    for row in csv.reader(lines, skipinitialspace=True):
        if len(row) != len(keys) or _keys(",".join(row)) == keys:
            continue  # a repeated heading, or a line that was cut off
        cells = dict(zip(keys, map(str.strip, row), strict=True))
        index = 0
        if told_apart == "index" and cells["index"].isdigit():
            index = int(cells["index"])
        elif told_apart is not None:
            index = known.setdefault(cells[told_apart], len(known))
        words: dict[str, str | None] = {}
        for key, word in cells.items():
            if key in _COLUMNS and word != "N/A" and not word.startswith("["):
                words.setdefault(_COLUMNS[key], word)
        yield sampled(index, words, _throttled(cells))


def _throttled(cells: dict[str, str]) -> frozenset[str] | None:
    """Return the reasons that held the clocks down; None where none was asked for."""
    asked, active = False, set[str]()
    for key, word in cells.items():
        reason = key.partition(".")[2] if key.startswith(_ACTIVE) else ""
        if reason in REASONS and word in ("Active", "Not Active"):
            asked = True
            active |= {REASONS[reason]} if word == "Active" else set()
        elif reason == "active" and re.fullmatch(r"0[xX][0-9A-Fa-f]{1,16}", word):
            asked = True
            active |= {name for bit, name in _BITS.items() if int(word, 16) & bit}
    return frozenset(active) if asked else None
