"""``key_averages().table()`` of torch.profiler."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trainwright.diagnose import budget
from trainwright.diagnose.measures.names import family, host_family
from trainwright.diagnose.readers import texts
from trainwright.diagnose.readers.found import Found, without_absent
from trainwright.messages import Message, UserError

_HEADING = re.compile(r"^ *Name {2}.*Self CPU.*$", re.MULTILINE)
_TOTAL = re.compile(r"Self (?P<device>\w+) time total: (?P<time>[\d.]+\w+)")
WITHOUT_WORKERS = "_SingleProcessDataLoaderIter"
"""torch's iterator of a DataLoader with num_workers=0."""
MOST_ROWS = 50
"""Rows that a record holds."""


@dataclass(frozen=True, slots=True)
class Row:
    """An operator, kernel or annotation; seconds and calls over the whole profile."""

    name: str
    calls: float
    host_self: float
    host_total: float
    device_self: float
    device_share: float


def recognised(text: str) -> bool:
    """Return whether there is a heading of such a table."""
    return _HEADING.search(text) is not None


def read(text: str) -> Found:
    """Return the profile in the first table of a text.

    Raises:
        UserError: no row has a time.
    """
    rows = tuple(_rows(text))
    totals = {each["device"]: texts.seconds(each["time"]) for each in _TOTAL.finditer(text)}
    host = totals.pop("CPU", None) or sum(row.host_self for row in rows)
    device = next((seconds for seconds in totals.values() if seconds), None)
    if not rows or host <= 0:
        raise UserError.of("diagnose.file.no-rows")
    steps, whole = _steps(rows)
    if whole is None:
        whole = host
    took = [Message.of("diagnose.file.table", rows=len(rows))]
    missed = [Message.of("diagnose.file.table-no-gaps")]
    if steps:
        took.append(Message.of("diagnose.file.table-steps", count=steps))
    else:
        missed.append(Message.of("diagnose.file.no-steps"))
    facts = {
        "profile": _profile(rows, whole, device, steps or 1),
        "setup": _setup(rows, tuple(totals)),
    } | ({"steps": _step_times(rows, whole, device, steps)} if steps else {})
    return Found(tuple(took), tuple(missed), facts, budget=_budget(rows, whole, steps))


def _rows(text: str) -> Iterator[Row]:
    heading = _HEADING.search(text)
    if heading is None:
        return
    names = re.split(r" {2,}", heading[0].strip())
    for line in text[heading.end() :].splitlines():
        if line.startswith("Self ") or len(names) < 3:
            return
        cells = re.split(r" {2,}", line.strip())
        if len(cells) == len(names) and set(cells[0]) != {"-"}:
            yield _row(dict(zip(names, cells, strict=True)))


def _row(cells: dict[str, str]) -> Row:
    device = next((n[5:-2] for n in cells if re.fullmatch(r"Self (?!CPU)\w+ %", n)), "CUDA")

    def time(name: str) -> float:
        return texts.seconds(cells.get(name, "")) or 0.0

    return Row(
        name=cells["Name"][:500],
        calls=texts.number(cells.get("# of Calls", "")) or 0.0,
        host_self=time("Self CPU"),
        host_total=time("CPU total") or time("Self CPU"),
        device_self=time(f"Self {device}"),
        device_share=texts.percent(cells.get(f"Self {device} %", "")) or 0.0,
    )


def _steps(rows: tuple[Row, ...]) -> tuple[int, float | None]:
    """Return how many steps there were, and the time of all where an annotation says it."""
    for row in rows:
        if row.name.startswith("ProfilerStep") and row.calls:
            return int(row.calls), row.host_total or None
    for start in ("Optimizer.step#", "enumerate(DataLoader)#"):
        if calls := max((row.calls for row in rows if row.name.startswith(start)), default=0):
            return int(calls), None
    return 0, None


def _loader(rows: tuple[Row, ...]) -> float | None:
    times = [row.host_total for row in rows if row.name.startswith("enumerate(DataLoader)#")]
    return sum(times) if times else None


def _step_times(
    rows: tuple[Row, ...], whole: float, device: float | None, steps: int
) -> dict[str, Any]:
    wait = _loader(rows)
    return without_absent({
        "steps": steps,
        "seconds": whole / steps,
        "data_wait": min(wait, whole) / steps if wait is not None else None,
        "device_seconds": device / steps if device is not None else None,
    })  # fmt: skip


def _calls(rows: tuple[Row, ...], words: re.Pattern[str]) -> float | None:
    found = [row.calls for row in rows if words.match(row.name)]
    return sum(found) if found else None


_LAUNCH = re.compile(r"(cuda|hip)(Ext)?(Launch|GraphLaunch|ModuleLaunch)")
_WAIT = re.compile(r"(cuda|hip)(Stream|Device|Event)Synchronize")
_ALLOCATION = re.compile(r"(cuda|hip)(Malloc|Free)$")


def _profile(
    rows: tuple[Row, ...], whole: float, device: float | None, steps: int
) -> dict[str, Any]:
    launches, waits = _calls(rows, _LAUNCH), _calls(rows, _WAIT)
    allocations = _calls(rows, _ALLOCATION)
    launching = sum(row.host_self for row in rows if _LAUNCH.match(row.name))
    loader = _loader(rows)
    return without_absent({
        "step_seconds": whole / steps,
        "idle": max(0.0, 1 - device / whole) if device is not None else None,
        "data_loader": min(1.0, loader / whole) if loader is not None else None,
        "launches_a_step": launches / steps if launches is not None else None,
        "launch_seconds": launching / steps if launches is not None else None,
        "synchronise_calls": waits / steps if waits is not None else None,
        "allocation_calls": allocations / steps if allocations is not None else None,
        "top": _top(rows, whole, device, steps),
        "host_top": [
            {
                "name": row.name,
                "share": min(1.0, row.host_total / whole),
                "calls": row.calls / steps,
            }
            for row in sorted(rows, key=lambda row: -row.host_total)[:MOST_ROWS]
            if row.host_total > 0 and not row.name.startswith("ProfilerStep")
        ],
    })  # fmt: skip


def _top(
    rows: tuple[Row, ...], whole: float, device: float | None, steps: int
) -> list[dict[str, Any]]:
    """Return the operators by the device's time; by the processor's where there is no device.

    An operator's own device time holds that of its kernels, so the kernels' rows stand for both.
    """
    if device is None:
        own = [(row, row.host_self / whole) for row in rows if host_family(row.name) != "loader"]
    else:
        kernels = [row for row in rows if row.device_share > 0 and row.host_self == 0]
        own = [(row, row.device_share) for row in kernels or rows]
    return [
        {
            "name": row.name,
            "share": min(1.0, share),
            "calls": row.calls / steps,
            "seconds": (share * (device or whole)) / row.calls if row.calls else 0.0,
        }
        for row, share in sorted(own, key=lambda each: -each[1])[:MOST_ROWS]
        if share > 0 and not row.name.startswith("ProfilerStep")
    ]


def _setup(rows: tuple[Row, ...], devices: tuple[str, ...]) -> dict[str, Any]:
    names = " ".join(row.name for row in rows)
    known = {"CUDA": "cuda", "XPU": "xpu", "HIP": "rocm", "MPS": "mps"}
    device = known.get(devices[0].upper()) if devices else None
    if not devices and "mkldnn" in names and "cuda" not in names.lower():
        device = "cpu"
    return without_absent(
        {"device": device, "num_workers": 0 if WITHOUT_WORKERS in names else None}
    )


def _budget(rows: tuple[Row, ...], whole: float, steps: int) -> budget.Budget:
    """Return the host's time, divided: what its rows took themselves sums to the table's total."""
    parts: dict[budget.Use, float] = {"input": _loader(rows) or 0.0}
    for row in rows:
        if row.name.startswith(("enumerate(DataLoader)#", "ProfilerStep")):
            continue
        parts[_use(row.name)] = parts.get(_use(row.name), 0.0) + row.host_self
    times = steps or 1
    spent = {use: seconds / times for use, seconds in parts.items()}
    source = Message.of("diagnose.budget.table")
    return budget.divided(whole / times, spent, source, of_step=steps > 0)


def _use(name: str) -> budget.Use:
    if name.startswith("Optimizer."):
        return "optimizer"
    match family(name):
        case "waiting":
            return "waiting"
        case "communication":
            return "communication"
        case "allocation":
            return "allocator"
        case "copy" if "emcpy" in name:
            return "transfer"
        case "launch" if not name.startswith("aten::"):
            return "launch"
    return "compute"
