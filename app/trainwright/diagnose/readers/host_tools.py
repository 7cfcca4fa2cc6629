"""Tables of ``iostat``, ``sar``, ``mpstat``, ``vmstat``, ``dstat`` and ``free``, of the computer.

Columns as their manuals (sysstat, procps-ng, dstat) name them.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean
from typing import Any

from trainwright.diagnose import texts
from trainwright.diagnose.readers.found import KIB, MIB, Found, share, spread, without_absent
from trainwright.messages import Message, UserError

TOOLS = {
    tool: re.compile(rf"^[ \t]{{0,80}}{heading}", re.MULTILINE)
    for tool, heading in {
        "iostat": r"(?:avg-cpu:|(?P<label>Device):?) +(?P<names>(?:%user|tps|[a-z]+/s) [^\n]*)$",
        "vmstat": r"(?P<label>)(?P<names>r +b +swpd +free [a-z ]{0,200}\bsi [a-z ]*)",
        "sar": r"(?P<label>CPU|DEV) +(?P<names>(?:%user|%usr|tps) [^\n]*)$",
        "dstat": r"(?P<label>)(?P<names>usr +sys +idl +wai [^\n]*)$",
    }.items()
}
"""Headings by tool; rows below one with a label begin with a word. mpstat's are sar's; -t of vmstat
adds a time, under the name of its zone."""
_TIME = re.compile(r"^\d\d:\d\d:\d\d(?: [AP]M)? +", re.MULTILINE)
_JSON = re.compile(r"\s*\{\s{0,80}\"sysstat\":")
_PASSIVE = re.compile(r"loop|ram|zram|sr\d|fd\d|dm-|md\d|.*:$")
"""Devices that are not drives, or stand for drives that are listed themselves; averages."""
_IDLE = {"%idle": 0.01, "id": 0.01, "idl": 0.01}
_WAIT = {"%iowait": 0.01, "wa": 0.01, "wai": 0.01}
_READ = {"rkB/s": KIB, "kB_read/s": KIB, "rMB/s": MIB, "MB_read/s": MIB, "rsec/s": 512,
         "rd_sec/s": 512, "Blk_read/s": 512, "bi": KIB, "read": 1}  # fmt: skip
_SWAPPED = {"si": KIB, "in": 1}
"""Columns of idle cores, of those that wait, of what was read, also from swap, and their units;
dstat counts bytes."""
_FREE = re.compile(
    r"^[ \t]{1,80}(?P<heading>[^\d\n:]{10,200})\n[ \t]{0,80}(?:Mem|메모리) ?: +(?P<row>\d[^\n]*)$",
    re.MULTILINE,
)
"""The heading, in any language, and the row of the memory."""
LEAST_MEMORY = 512 * MIB
"""Of a computer that trains, read as the KiB that ``free`` prints; assumed."""

Row = dict[str, float]
"""A line's numbers by their columns."""


def read(tool: str, text: str) -> Found | None:
    """Return the means of all processors together, and of each drive."""
    if tool == "iostat" and _JSON.match(text):
        rows = texts.from_json(text, tool, lambda data: list(_of_json(data)))
    elif TOOLS[tool].search(text := _TIME.sub("", text)) is not None:
        rows = list(_rows(tool, text))
    else:
        return None
    every: dict[str, list[Row]] = {}
    for label, row in rows:
        of_cores = (row[each] for each in row if each[0] == "%" and each != "%util")
        if not _PASSIVE.match(label) and all(0 <= part <= 100 for part in of_cores):
            every.setdefault(label, []).append(row)
    # All but sar begin with the mean since boot.
    later = {label: held if tool == "sar" else held[1:] or held for label, held in every.items()}
    loads = later.get("all", later.get("", []))
    drives = [held for held in later.values() if "%util" in held[0] or _of(held, _READ)]
    if not (_of(loads, _IDLE) or drives):
        raise UserError.of("diagnose.file.no-rows")
    waits, swapped = _of(loads, _WAIT), _of(loads, _SWAPPED)
    busy = [fmean(row["%util"] for row in held) for held in drives if "%util" in held[0]]
    held_up = waits or [0.0] * len(loads)
    used = [1 - idle - wait for idle, wait in zip(_of(loads, _IDLE), held_up, strict=False)]
    host = {
        "utilisation": spread(map(share, used)) if used else None,
        "io_wait": share(fmean(waits)) if waits else None,
        "swapped_bytes_s": fmean(swapped) if swapped else None,
        "drive_busy": share(max(busy) / 100) if busy else None,
        "read_bytes_s": sum(fmean(_of(each, _READ)) for each in drives) if drives else None,
    }
    took = [Message.of("diagnose.file.reports", tool=tool, count=max(map(len, later.values())))]
    if tool != "sar" and max(map(len, every.values())) == 1:
        took.append(Message.of("diagnose.file.since-boot"))
    left = ("no-step-times", "not-by-process", *([] if busy else ["no-busy"]))
    missed = tuple(Message.of(f"diagnose.file.{each}") for each in left)
    return Found(tuple(took), missed, {"host": without_absent(host)})


def _rows(tool: str, text: str) -> Iterator[tuple[str, Row]]:
    """Yield the lines under each heading whose numbers fit it, with the word before them."""
    names, labelled = list[str](), False
    taken = texts.size if tool == "dstat" else texts.number  # which prints 402M
    for line in text.splitlines():
        if (found := TOOLS[tool].match(line)) is not None:
            names, labelled = found["names"].replace("|", " ").split(), bool(found["label"])
            continue
        words = line.replace("|", " ").split()
        label = words.pop(0) if labelled and words else ""
        values = [value for word in words if (value := taken(word)) is not None]
        if names and len(values) >= len(names) and min(values) >= 0:
            # Of two columns of one name, the first: dstat has more of them.
            yield label, dict(reversed([*zip(names, values, strict=False)]))


def _of_json(data: Any) -> Iterator[tuple[str, Row]]:
    """Yield the lines of ``iostat -o JSON``, whose names lack the tables' per cent signs."""
    for report in data["sysstat"]["hosts"][0]["statistics"]:
        if "avg-cpu" in report:
            yield "", {f"%{name}": float(value) for name, value in report["avg-cpu"].items()}
        for drive in report.get("disk", ()):
            label = str(drive.pop("disk_device"))
            yield label, {("%util" if name == "util" else name): float(value)
                          for name, value in drive.items()}  # fmt: skip


def _of(rows: Iterable[Row], units: Mapping[str, float]) -> list[float]:
    """Return what a column of some names says in each row that has one."""
    return [next(row[name] * unit for name, unit in units.items() if name in row)
            for row in rows if not units.keys().isdisjoint(row)]  # fmt: skip


def free(text: str) -> Found | None:
    """Return the memory that ``free`` shows; the least where it was repeated."""
    reports = list(_FREE.finditer(text))
    rows = [each["row"].split() for each in reports]
    if not rows:
        return None
    if (total := _memory(rows[-1][0])) is None:
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
