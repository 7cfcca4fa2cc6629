"""Tables of ``iostat``, ``sar``, ``mpstat``, ``vmstat``, ``dstat`` and ``free``, of the computer.

Columns as their manuals (sysstat, procps-ng, dstat) name them. Of Windows: performance counters, as
``typeperf``, ``relog`` and ``Get-Counter`` print them, and what Task Manager copies.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from statistics import fmean
from typing import Any

from trainwright.diagnose import texts
from trainwright.diagnose.readers.found import (
    KIB,
    MIB,
    Found,
    GpuSample,
    of_gpus,
    sampled,
    share,
    spread,
    without_absent,
)
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


_PATH = re.compile(r"\\\\[^\\\n]{1,80}\\(?P<of>[^\n]{1,400})\\(?P<name>[^\\\n]{1,80})")
"""A counter of Windows: computer, object with its instance, name."""
_ENGINE = re.compile(
    r"_luid_(?P<gpu>\w{1,60}?)_phys_\d_(?P<engine>eng_\d+)_engtype_(?:compute|cuda)"
)
_ADAPTER = re.compile(
    r"adapter memory\(luid_(?P<gpu>\w{1,60}?)_phys_\d\)|어댑터 메모리\(luid_(\w{1,60}?)_"
)
_AVAILABLE = {"bytes": 1, "kbytes": KIB, "mbytes": MIB, "바이트": 1, "kb": KIB, "mb": MIB}
Series = dict[tuple[str, str], list[float]]
"""Values of counters, by object and name in lower case."""


def counters(text: str) -> Found | None:
    """Return what performance counters of Windows say of cores, drives, memory and GPUs."""
    series = _series(text)
    if not series and "(PDH-" in text[:400]:
        raise UserError.of("diagnose.file.no-rows")
    if not series:
        return None

    def values(of: str, *names: str, total: bool = True) -> list[list[float]]:
        found = {at: held for at, held in series.items()
                 if of in at[0] and any(name in at[1] for name in names)}  # fmt: skip
        whole = [held for at, held in found.items() if "_total" in at[0]]
        parts = [held for at, held in found.items() if "_total" not in at[0]]
        return (whole or parts) if total else (parts or whole)

    loads = values("processor", "processor time", "프로세서 시간")
    loads = loads or values("프로세서", "processor time", "프로세서 시간")
    idle = values("disk", "idle time", "유휴 시간", total=False)
    busy = [1 - fmean(one) / 100 for one in idle]
    busy = busy or [fmean(one) / 100 for one in values("disk", "% disk time", total=False)]
    reads = values("disk", "read bytes/sec", "읽기 바이트")
    free_bytes = [min(held) * unit for (_, name), held in series.items()
                  for word, unit in _AVAILABLE.items()
                  if name in (f"available {word}", f"사용 가능한 {word}")]  # fmt: skip
    host = {
        "utilisation": spread(share(fmean(row) / 100) for row in zip(*loads, strict=False))
        if loads
        else None,
        "drive_busy": share(max(busy)) if busy else None,
        "read_bytes_s": sum(map(fmean, reads)) if reads else None,
        "memory_available_bytes": min(free_bytes, default=None),
    }
    gpus = list(_gpus(series))
    if not (without_absent(host) or gpus):
        raise UserError.of("diagnose.file.no-rows")
    count = max(map(len, series.values()))
    took = Message.of("diagnose.file.reports", tool="Windows", count=count)
    missed = tuple(
        Message.of(f"diagnose.file.{each}") for each in ("no-step-times", "not-by-process")
    )
    found = of_gpus(gpus)
    return Found((took, *found.took), missed, {"host": without_absent(host)}, found.gpus)


def _series(text: str) -> Series:
    cells: list[tuple[str, list[str]]] = []
    if "(PDH-" in text[:400] and (held := texts.table(text)) is not None:
        names, rows = held
        cells = [(name, [row[at] for row in rows]) for at, name in enumerate(names)]
    elif "\\\\" in text[:2000]:
        cells = list(_printed(text))
    series: Series = {}
    for name, words in cells:
        if (path := _PATH.fullmatch(name.strip())) is not None:
            read = [
                value for word in words if (value := texts.number(word)) is not None and value >= 0
            ]
            series.setdefault((path["of"].lower(), path["name"].lower()), []).extend(read)
    return {at: held for at, held in series.items() if held}


def _printed(text: str) -> Iterator[tuple[str, list[str]]]:
    """Yield what Get-Counter prints: a counter's path with a colon, and its value below."""
    path = ""
    for line in text.splitlines():
        _, mark, name = line.partition("\\\\")
        if mark and line.rstrip().endswith(":"):
            path = mark + name.rstrip().removesuffix(":").rstrip()
        elif path and (word := line.strip()):
            yield path, [word]
            path = ""


def _gpus(series: Series) -> Iterator[GpuSample]:
    """Yield the GPUs that hold memory or compute, the one that holds the most first.

    With hardware scheduling Windows does not count what CUDA computes, so none is not believed.
    """
    engines: dict[str, dict[str, list[float]]] = {}
    memory: dict[str, dict[str, float]] = {}
    for (of, name), held in series.items():
        if (engine := _ENGINE.search(of)) is not None:
            work = engines.setdefault(engine["gpu"], {}).setdefault(engine["engine"], [])
            longer = max(len(work), len(held))
            both = ([*one, *[0.0] * (longer - len(one))] for one in (work, held))
            work[:] = map(sum, zip(*both, strict=True))
        elif (adapter := _ADAPTER.search(of)) is not None:
            where = (
                "memory_shared_bytes" if "shared" in name or "공유" in name else "memory_used_bytes"
            )
            if "usage" in name or "사용" in name:
                memory.setdefault(adapter["gpu"] or adapter[2], {})[where] = max(held)
    order = sorted(
        {*engines, *memory}, key=lambda gpu: -memory.get(gpu, {}).get("memory_used_bytes", 0)
    )
    for index, gpu in enumerate(order):
        bytes_of = {name: f"{value:.0f}B" for name, value in memory.get(gpu, {}).items()}
        loads = [min(max(row), 100.0) for row in zip(*engines.get(gpu, {}).values(), strict=False)]
        loads = loads if loads and max(loads) >= 1 else []
        for load in loads or ([None] if bytes_of else []):
            yield sampled(index, bytes_of | ({} if load is None else {"utilisation": f"{load}"}))


_SECTION = re.compile(
    r"^(?:(?P<gpu>GPU \d)|(?P<disk>(?:Disk|디스크) \d.{0,40})|(?P<cpu>CPU)|(?:Memory|메모리))$"
)
_KEPT = re.compile(
    r"(?P<value>(?<![\d.,])\d[\d.,]{0,20}(?: ?/ ?\d[\d.,]{0,20})?) ?(?P<unit>[%GMK]?B?)$"
)
_MOST_LINE = 200
"""Characters of a line of Task Manager; assumed."""
_TASK_MANAGER = re.compile(
    r"^[ \t]{0,80}(?:Dedicated GPU memory|전용 GPU 메모리|Logical processors|논리 프로세서"
    r"|Active time|활성 시간)\b",
    re.MULTILINE,
)


def task_manager(text: str) -> Found | None:
    """Return what the pages of Task Manager's Performance tab say, where they were copied.

    A GPU's utilisation is not taken: it leaves out what CUDA computes on many cards.
    """
    if _TASK_MANAGER.search(text) is None:
        return None
    host: dict[str, Any] = {}
    gpus: dict[int, dict[str, str | None]] = {}
    part, index, busy = "", 0, list[float]()
    for line in text.splitlines():
        if (section := _SECTION.match(line.strip()[:_MOST_LINE])) is not None:
            part = section.lastgroup or "memory"
            index = int(line.strip()[-1]) if part == "gpu" else index
            continue
        if part == "gpu" and index not in gpus and (name := line.strip()):
            gpus[index] = {"name": name}
        line = line.strip()[:_MOST_LINE]
        if (kept := _KEPT.search(line)) is None:
            continue
        key, unit = line[: kept.start()].strip(" \t:").lower(), kept["unit"]
        first, _, second = kept["value"].partition("/")
        if part == "gpu" and key in ("dedicated gpu memory", "전용 gpu 메모리"):
            gpus[index] |= {"memory_used_bytes": f"{first.strip()}{unit}",
                            "memory_total_bytes": f"{second.strip()}{unit}"}  # fmt: skip
        elif part == "gpu" and key in ("shared gpu memory", "공유 gpu 메모리"):
            gpus[index] |= {"memory_shared_bytes": f"{first.strip()}{unit}"}
        elif part == "cpu" and key in ("utilization", "사용률"):
            if (load := texts.percent(first)) is not None:
                host["utilisation"] = spread([load])
        elif part == "cpu" and key in ("logical processors", "논리 프로세서"):
            host["cores"] = int(texts.number(first) or 0) or None
        elif part == "memory" and key in ("available", "사용 가능"):
            host["memory_available_bytes"] = texts.size(f"{first}{unit}")
        elif part == "disk" and key in ("active time", "활성 시간"):
            busy += [load for load in [texts.percent(first)] if load is not None]
    host["drive_busy"] = max(busy, default=None)
    host = without_absent(host)
    if not (host or gpus):
        raise UserError.of("diagnose.file.no-rows")
    found = of_gpus(sampled(at, words) for at, words in gpus.items())
    took = (Message.of("diagnose.file.a-glance"),) if not gpus else ()
    missed = (Message.of("diagnose.file.task-manager-load"),) if gpus else ()
    missed = (*missed, Message.of("diagnose.file.no-step-times"))
    return Found((*found.took, *took), missed, {"host": host} if host else {}, found.gpus)
