"""``iostat``, ``sar``, ``vmstat`` and ``free``: processors, drives and memory of the computer.

Columns as their manuals (sysstat, procps-ng) name them.
"""

import re
from collections.abc import Iterable
from typing import Any

from trainwright.diagnose import texts
from trainwright.diagnose.readers.found import KIB, MIB, Found, share, spread, without_absent
from trainwright.messages import Message, UserError

_VMSTAT = re.compile(r"^[ \t]{0,80}(r +b +swpd +free [a-z ]*)", re.MULTILINE)
"""-t adds a time, under the name of its zone."""
_PROCESSORS = re.compile(r"^[ \t]{0,80}avg-cpu: +(%user [^\n]*)$", re.MULTILINE)
_DRIVES = re.compile(r"^[ \t]{0,80}Device:? ([^\n]*)$", re.MULTILINE)
_SAR = re.compile(r"^(?:CPU|DEV) +((?:%user|%usr|tps) [^\n]*)$", re.MULTILINE)
_TIME = re.compile(r"^\d\d:\d\d:\d\d(?: [AP]M)? +", re.MULTILINE)
_FREE = re.compile(
    r"^[ \t]{1,80}(?P<heading>[^\d\n:]{10,200})\n[ \t]{0,80}(?:Mem|메모리) ?: +(?P<row>\d[^\n]*)$",
    re.MULTILINE,
)
"""The heading, in any language, and the row of the memory."""
_JSON = re.compile(r"\s*\{\s{0,80}\"sysstat\":")
_PASSIVE = re.compile(r"loop|ram|zram|sr\d|fd\d|dm-|md\d")
"""Devices that are not drives, or stand for drives that are listed themselves."""
_READ = {"rkB/s": KIB, "kB_read/s": KIB, "rMB/s": MIB, "MB_read/s": MIB, "rsec/s": 512,
         "rd_sec/s": 512, "Blk_read/s": 512}  # fmt: skip
"""Columns of what was read, and their unit in bytes."""
LEAST_MEMORY = 512 * MIB
"""Of a computer that trains, read as the KiB that ``free`` prints; assumed."""

Row = dict[str, float]
"""A line's numbers by their columns."""
Report = list[tuple[str, Row]]
"""The lines under a heading, with the word before each."""


def is_vmstat(text: str) -> bool:
    """Return whether there is a heading of ``vmstat``."""
    found = _VMSTAT.search(text)
    return found is not None and {"si", "bi", "us"} <= set(found[0].split())


def read_vmstat(text: str) -> Found:
    """Return the means of ``vmstat``'s lines.

    Raises:
        UserError: there is a heading and no line of numbers.
    """
    rows = [row for report in _reports(text, _VMSTAT) for _, row in report]
    later = _after_boot(rows)
    if not later:
        raise UserError.of("diagnose.file.no-rows")
    busy = [(row["us"] + row["sy"] + row.get("ni", 0)) / 100 for row in later]
    return _host("vmstat", len(rows), {
        "utilisation": spread(map(share, busy)),
        "io_wait": _share(_mean(row["wa"] for row in later) / 100) if "wa" in later[0] else None,
        "swapped_bytes_s": _mean(row["si"] for row in later) * KIB,
        "read_bytes_s": _mean(row["bi"] for row in later) * KIB,
    })  # fmt: skip


def is_iostat(text: str) -> bool:
    """Return whether there is a table of ``iostat``, or its JSON."""
    return _JSON.match(text) is not None or any("/s" in each[0] for each in _DRIVES.finditer(text))


def read_iostat(text: str) -> Found:
    """Return the means of ``iostat``'s reports.

    Raises:
        UserError: there is a heading and no line of numbers, or broken JSON.
    """
    if _JSON.match(text) is None:
        loads, drives_ = _reports(text, _PROCESSORS), _reports(text, _DRIVES, labelled=True)
    else:
        loads, drives_ = texts.from_json(text, "iostat", _of_json)
    every = [
        row
        for report in loads
        for _, row in report[:1]
        if {"%idle", "%iowait"} <= set(row) and all(0 <= each <= 100 for each in row.values())
    ]
    each_drives = [
        [row for device, row in report if not _PASSIVE.match(device)] for report in drives_
    ]
    processors, drives = _after_boot(every), _after_boot(list(filter(None, each_drives)))
    if not processors and not drives:
        raise UserError.of("diagnose.file.no-rows")
    busy = [
        max(row["%util"] for row in report if "%util" in row)
        for report in drives
        if any("%util" in row for row in report)
    ]
    read = [sum(_read_bytes(row) for row in report) for report in drives]
    host = _processors(processors) | {
        "drive_busy": _share(_mean(busy) / 100) if busy else None,
        "read_bytes_s": _mean(read) if read else None,
    }  # fmt: skip
    return _host("iostat", max(len(every), len(each_drives)), host, *([] if busy else ["no-busy"]))


def _of_json(data: Any) -> tuple[list[Report], list[Report]]:
    """Return the reports of ``iostat -o JSON``, whose names lack the tables' per cent signs."""
    every = data["sysstat"]["hosts"][0]["statistics"]
    loads = [[("", {f"%{name}": float(value) for name, value in one["avg-cpu"].items()})]
             for one in every if "avg-cpu" in one]  # fmt: skip
    drives = [
        [(one["disk_device"], {("%util" if name == "util" else name): float(value)
                               for name, value in one.items() if name != "disk_device"})
         for one in report["disk"]]
        for report in every if "disk" in report
    ]  # fmt: skip
    return loads, drives


def _processors(rows: list[Row]) -> dict[str, Any]:
    """Return what the columns that iostat and sar share say of all processors."""
    if not rows:
        return {}
    idle = (1 - row["%idle"] / 100 - row["%iowait"] / 100 for row in rows)
    waits = _share(_mean(row["%iowait"] for row in rows) / 100)
    return {"utilisation": spread(map(share, idle)), "io_wait": waits}


def _read_bytes(drive: Row) -> float:
    return next((drive[name] * unit for name, unit in _READ.items() if name in drive), 0.0)


def is_sar(text: str) -> bool:
    """Return whether there is a table of ``sar -u`` or ``sar -d``."""
    return _SAR.search(_TIME.sub("", text)) is not None


def read_sar(text: str) -> Found:
    """Return the means of ``sar``'s lines: of all processors together, and of each drive.

    Raises:
        UserError: there is a heading and no line of numbers.
    """
    lines: dict[str, list[Row]] = {}
    for report in _reports(_TIME.sub("", text), _SAR, labelled=True):
        for label, row in report:
            if not label.endswith(":") and not _PASSIVE.match(label):  # the average of all lines
                lines.setdefault(label, []).append(row)
    loads = [row for row in lines.get("all", []) if "%idle" in row]
    drives = [rows for rows in lines.values() if "%idle" not in rows[0]]
    if not loads and not drives:
        raise UserError.of("diagnose.file.no-rows")
    busy = [_mean(row["%util"] for row in rows) for rows in drives if "%util" in rows[0]]
    host = _processors(loads) | {
        "drive_busy": _share(max(busy) / 100) if busy else None,
        "read_bytes_s": sum(_mean(map(_read_bytes, rows)) for rows in drives) if drives else None,
    }
    return _host("sar", 1 + max(map(len, lines.values())), host, *([] if busy else ["no-busy"]))


def is_free(text: str) -> bool:
    """Return whether there is a table of ``free``."""
    return _FREE.search(text) is not None


def read_free(text: str) -> Found:
    """Return the memory that ``free`` shows; the least where it was repeated.

    Raises:
        UserError: the row of the memory holds no sizes.
    """
    reports = list(_FREE.finditer(text))
    rows = [each["row"].split() for each in reports]
    total = _memory(rows[-1][0]) if rows else None
    if total is None:
        raise UserError.of("diagnose.file.no-rows")
    if all(row[0].isdigit() for row in rows) and total < LEAST_MEMORY:
        # -m and -g print plain numbers: nothing in the text tells which unit it was.
        return Found((), (Message.of("diagnose.file.free-unit"),))
    # Up to procps 3.2 the last column is "cached".
    last = [row[-1] for row, each in zip(rows, reports, strict=True)
            if len(row) > 5 and not each["heading"].rstrip().endswith("cached")]  # fmt: skip
    available = [size for word in last if (size := _memory(word)) is not None]
    host = {"memory_total_bytes": total, "memory_available_bytes": min(available, default=None)}
    took = Message.of("diagnose.file.reports", tool="free", count=len(rows))
    missed = Message.of("diagnose.file.no-step-times")
    return Found((took,), (missed,), {"host": without_absent(host)})


def _memory(word: str) -> float | None:
    """Return bytes; a plain number counts KiB."""
    return texts.size(f"{word}KiB" if word.isdigit() else word)


def _reports(text: str, heading: re.Pattern[str], *, labelled: bool = False) -> list[Report]:
    """Return the lines under each heading whose numbers fit it, with the word before them."""
    names: list[str] = []
    reports: list[Report] = []
    for line in text.splitlines():
        if (found := heading.match(line)) is not None:
            names = found[1].split()
            reports.append([])
            continue
        words = line.split()
        label = words.pop(0) if labelled and words else ""
        values = [value for word in words if (value := texts.number(word)) is not None]
        if reports and len(values) >= len(names) and min(values, default=-1) >= 0:
            reports[-1].append((label, dict(zip(names, values, strict=False))))
    return reports


def _after_boot(reports: list[Any]) -> list[Any]:
    """Return the reports but for the first, which is the mean since boot where there are more."""
    return reports[1:] if len(reports) > 1 else reports


def _host(tool: str, count: int, host: dict[str, Any], *more: str) -> Found:
    """Return the means of so many reports, the first of which is left out if it can be."""
    took = [Message.of("diagnose.file.reports", tool=tool, count=max(1, count - 1))]
    if count == 1:
        took.append(Message.of("diagnose.file.since-boot"))
    missed = (Message.of(f"diagnose.file.{each}")
              for each in ("no-step-times", "not-by-process", *more))  # fmt: skip
    return Found(tuple(took), tuple(missed), {"host": without_absent(host)})


def _mean(values: Iterable[float]) -> float:
    held = tuple(values)
    return sum(held) / len(held)


def _share(value: float) -> float | None:
    """Return a share; None for what is none, as of a drive with several queues above 100 %."""
    return min(1.0, value) if 0 <= value <= 2 else None
