"""``iostat``, ``vmstat`` and ``free``: processors, drives and memory of the computer.

Columns as their manuals (sysstat, procps-ng) name them.
"""

import re
from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import Any

from trainwright.diagnose.readers import texts
from trainwright.diagnose.readers.found import KIB, MIB, Found, without_absent
from trainwright.messages import Message, UserError

_VMSTAT = re.compile(r"^[ \t]{0,80}r +b +swpd +free [^\n]*$", re.MULTILINE)
_IOSTAT_CPU = re.compile(r"^[ \t]{0,80}avg-cpu: +%user [^\n]*$", re.MULTILINE)
_IOSTAT_DEVICE = re.compile(r"^[ \t]{0,80}Device:? [^\n]*$", re.MULTILINE)
_FREE = re.compile(r"^[ \t]{1,80}total +used +free +shared\b[^\n]*$", re.MULTILINE)
_FREE_ROW = re.compile(r"^[ \t]{0,80}(?:Mem|메모리) ?: +([^\n]*)$", re.MULTILINE)
_PASSIVE = re.compile(r"loop|ram|zram|sr\d|fd\d|dm-|md\d")
"""Devices that are not drives, or stand for drives that are listed themselves."""


def is_vmstat(text: str) -> bool:
    """Return whether there is a heading of ``vmstat``."""
    found = _VMSTAT.search(text)
    return found is not None and {"si", "bi", "us"} <= set(found[0].split())


def read_vmstat(text: str) -> Found:
    """Return the means of ``vmstat``'s lines.

    Raises:
        UserError: there is a heading and no line of numbers.
    """
    heading = _VMSTAT.search(text)
    names = heading[0].split() if heading is not None else []
    names = list(takewhile(str.islower, names))  # -t adds a time, under the name of its zone
    rows = []
    for line in text.splitlines():
        words = line.split()[: len(names)]
        if len(words) == len(names) and all(word.isdigit() for word in words):
            rows.append({name: float(word) for name, word in zip(names, words, strict=True)})
    took = _took("vmstat", len(rows))
    rows = list(_after_boot(rows))
    if not rows:
        raise UserError.of("diagnose.file.no-rows")
    host = {
        "utilisation": _spread((row["us"] + row["sy"] + row.get("ni", 0)) / 100 for row in rows),
        "io_wait": _share(_mean(row["wa"] for row in rows) / 100) if "wa" in names else None,
        "swapped_bytes_s": _mean(row["si"] for row in rows) * KIB,
        "read_bytes_s": _mean(row["bi"] for row in rows) * KIB,
    }
    missed = (Message.of("diagnose.file.no-step-times"), Message.of("diagnose.file.not-by-process"))
    return Found(took, missed, {"host": without_absent(host)})


def _after_boot(reports: list[Any]) -> Iterator[Any]:
    """Yield the reports but for the first, which is the mean since boot where there are more."""
    yield from reports[1:] if len(reports) > 1 else reports


def _took(tool: str, count: int) -> tuple[Message, ...]:
    """Return what was taken of so many reports, the first of which is left out if it can be."""
    reports = Message.of("diagnose.file.reports", tool=tool, count=max(1, count - 1))
    return (reports, Message.of("diagnose.file.since-boot")) if count == 1 else (reports,)


def is_iostat(text: str) -> bool:
    """Return whether there is a table of ``iostat``."""
    return any("/s" in each[0] for each in _IOSTAT_DEVICE.finditer(text))


def read_iostat(text: str) -> Found:
    """Return the means of ``iostat``'s reports.

    Raises:
        UserError: there is a heading and no line of numbers.
    """
    every, each_drives = list(_iostat_processors(text)), list(_iostat_drives(text))
    processors, drives = list(_after_boot(every)), list(_after_boot(each_drives))
    if not processors and not drives:
        raise UserError.of("diagnose.file.no-rows")
    busy = [max((each["%util"] for each in report if "%util" in each), default=None)
            for report in drives]  # fmt: skip
    host = {
        "utilisation": _spread(1 - each["%idle"] / 100 - each["%iowait"] / 100
                               for each in processors),
        "io_wait": _share(_mean(each["%iowait"] for each in processors) / 100)
        if processors else None,
        "drive_busy": _share(_mean(each for each in busy if each is not None) / 100)
        if any(each is not None for each in busy) else None,
        "read_bytes_s": _mean(sum(_read_bytes(each) for each in report) for report in drives)
        if drives else None,
    }  # fmt: skip
    missed = [Message.of("diagnose.file.no-step-times"), Message.of("diagnose.file.not-by-process")]
    if all(each is None for each in busy):
        missed.append(Message.of("diagnose.file.no-busy"))
    took = _took("iostat", max(len(every), len(each_drives)))
    return Found(took, tuple(missed), {"host": without_absent(host)})


def _iostat_processors(text: str) -> Iterator[dict[str, float]]:
    names: list[str] = []
    for line in text.splitlines():
        if _IOSTAT_CPU.match(line):
            names = line.split()[1:]
        elif names and (values := _numbers(line.split())) and len(values) == len(names):
            cells = dict(zip(names, values, strict=True))
            names = []
            if {"%idle", "%iowait"} <= set(cells) and all(0 <= v <= 100 for v in values):
                yield cells


def _iostat_drives(text: str) -> Iterator[list[dict[str, float]]]:
    """Yield the drives of each report: a value for each column of each."""
    names: list[str] = []
    report: list[dict[str, float]] = []
    for line in [*text.splitlines(), "Device /s"]:
        words = line.split()
        if words and words[0].rstrip(":") == "Device":
            if report:
                yield report
            names, report = words[1:], []
        elif names and len(words) == len(names) + 1 and not _PASSIVE.match(words[0]):
            values = _numbers(words[1:])
            if values and min(values) >= 0:
                report.append(dict(zip(names, values, strict=True)))


def _numbers(words: list[str]) -> list[float]:
    values = [texts.number(word) for word in words]
    return [value for value in values if value is not None] if None not in values else []


def _read_bytes(drive: dict[str, float]) -> float:
    units = (("rkB/s", KIB), ("kB_read/s", KIB), ("rMB/s", MIB), ("MB_read/s", MIB),
             ("rsec/s", 512), ("Blk_read/s", 512))  # fmt: skip
    return next((drive[name] * unit for name, unit in units if name in drive), 0.0)


def is_free(text: str) -> bool:
    """Return whether there is a table of ``free``."""
    return _FREE.search(text) is not None and _FREE_ROW.search(text) is not None


def read_free(text: str) -> Found:
    """Return the memory that ``free`` shows; the least where it was repeated.

    Raises:
        UserError: the row of the memory holds no sizes.
    """
    heading = _FREE.search(text)
    names = heading[0].split() if heading is not None else []
    rows = [dict(zip(names, each[1].split(), strict=False)) for each in _FREE_ROW.finditer(text)]
    sized = any(re.search(r"[A-Za-z]", row.get("total", "")) for row in rows)
    totals = [_memory(row.get("total", "")) for row in rows]
    available = [_memory(row.get("available", "")) for row in rows]
    if not totals or totals[-1] is None:
        raise UserError.of("diagnose.file.no-rows")
    missed = [Message.of("diagnose.file.no-step-times")]
    if not sized and totals[-1] < LEAST_MEMORY:
        # -m and -g print plain numbers: nothing in the text tells which unit it was.
        return Found((), (Message.of("diagnose.file.free-unit"),))
    host = {
        "memory_total_bytes": totals[-1],
        "memory_available_bytes": min(
            (each for each in available if each is not None), default=None
        ),
    }
    took = (Message.of("diagnose.file.reports", tool="free", count=len(rows)),)
    return Found(took, tuple(missed), {"host": without_absent(host)})


LEAST_MEMORY = 512 * MIB
"""Of a computer that trains, read as the KiB that ``free`` prints; assumed."""


def _memory(word: str) -> float | None:
    """Return bytes; a plain number counts KiB."""
    if word.isdigit():
        return int(word) * float(KIB)
    return texts.size(word)


def _mean(values: Iterable[float]) -> float:
    held = tuple(values)
    return sum(held) / len(held) if held else 0.0


def _share(value: float) -> float | None:
    """Return a share; None for what is none, as of a drive with several queues above 100 %."""
    return min(1.0, value) if 0 <= value <= 2 else None


def _spread(values: Iterable[float]) -> dict[str, float] | None:
    held = [min(1.0, max(0.0, value)) for value in values]
    return {"mean": _mean(held), "low": min(held), "high": max(held)} if held else None
