"""``key_averages().table()`` of torch.profiler."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from trainwright.diagnose import budget, texts
from trainwright.diagnose.measures.names import family, host_family
from trainwright.diagnose.readers.found import (
    MOST_ROWS,
    Found,
    profile_rows,
    share,
    without_absent,
)
from trainwright.diagnose.readers.trace_device import ALLOCATION, LAUNCH, WAIT
from trainwright.diagnose.readers.trace_events import LOADER
from trainwright.messages import Message, UserError

_HEADING = re.compile(r"^ *Name {2}.*Self CPU.*$", re.MULTILINE)
_TOTAL = re.compile(r"Self (?P<device>\w+) time total: (?P<time>[\d.]+\w+)")
_DEVICE = re.compile(r"Self ((?!CPU)\w+) %")
_DEVICES = {"CUDA": "cuda", "XPU": "xpu", "HIP": "rocm", "MPS": "mps"}
_FAMILIES: dict[str | None, budget.Use]
_FAMILIES = {"waiting": "waiting", "communication": "communication", "allocation": "allocator"}
WITHOUT_WORKERS = "_SingleProcessDataLoaderIter"
"""torch's iterator of a DataLoader with num_workers=0."""


@dataclass(frozen=True, slots=True)
class Row:
    """An operator, kernel or annotation; seconds and calls over the whole profile."""

    name: str
    calls: float
    host_self: float
    host_total: float
    device_share: float


@dataclass(frozen=True, slots=True)
class Table:
    """The rows, and the seconds that they share."""

    rows: Sequence[Row]
    steps: int
    """None are known: 0."""
    whole: float
    """The host's."""
    device: float | None

    def calls(self, words: re.Pattern[str]) -> float | None:
        """Return the calls of a step whose names begin so; None where there are none."""
        found = [row.calls for row in self.rows if words.match(row.name)]
        return sum(found) / (self.steps or 1) if found else None

    @property
    def loader(self) -> float | None:
        """Seconds in the loader."""
        found = [row.host_total for row in self.rows if row.name.startswith(LOADER)]
        return sum(found) if found else None


def read(text: str) -> Found | None:
    """Return the profile in the first table of a text."""
    heading = _HEADING.search(text)
    if heading is None:
        return None
    rows = tuple(_rows(heading[0], text[heading.end() :]))
    totals = {each["device"]: texts.seconds(each["time"]) for each in _TOTAL.finditer(text)}
    host = totals.pop("CPU", None) or sum(row.host_self for row in rows)
    single = len({row.name for row in rows}) < len(rows) and all(row.calls == 1 for row in rows)
    if single and sum(row.host_self for row in rows) < host / 2:
        # Single events, of which torch prints a few.
        raise UserError.of("diagnose.file.table-of-events")
    device = next((seconds for seconds in totals.values() if seconds), None)
    if not rows or host <= 0:
        raise UserError.of("diagnose.file.no-rows")
    steps, whole = _steps(rows)
    table = Table(rows, steps, whole or host, device)
    took = [Message.of("diagnose.file.table", rows=len(rows))]
    missed = [Message.of("diagnose.file.table-no-gaps")]
    facts = {"profile": _profile(table), "setup": _setup(rows, next(iter(totals), None))}
    if steps:
        took.append(Message.of("diagnose.file.table-steps", count=steps))
        wait = min(table.loader, table.whole) if table.loader is not None else None
        times = {"seconds": table.whole, "data_wait": wait, "device_seconds": device}
        a_step = {name: each / steps for name, each in without_absent(times).items()}
        facts["steps"] = {"steps": steps} | a_step
    else:
        missed.append(Message.of("diagnose.file.no-steps"))
    return Found(tuple(took), tuple(missed), facts, budget=_budget(table))


def _rows(heading: str, below: str) -> Iterator[Row]:
    names = re.split(r" {2,}", heading.strip())
    device = next((found[1] for each in names if (found := _DEVICE.fullmatch(each))), "CUDA")
    for line in below.splitlines():
        if line.startswith("Self ") or len(names) < 3:
            return
        words = re.split(r" {2,}", line.strip())
        if len(words) != len(names) or set(words[0]) == {"-"}:
            continue
        cells = dict(zip(names, words, strict=True))
        own = texts.seconds(cells.get("Self CPU", "")) or 0.0
        yield Row(
            name=cells["Name"][:500],
            calls=texts.number(cells.get("# of Calls", "")) or 0.0,
            host_self=own,
            host_total=texts.seconds(cells.get("CPU total", "")) or own,
            device_share=texts.percent(cells.get(f"Self {device} %", "")) or 0.0,
        )


def _steps(rows: Sequence[Row]) -> tuple[int, float | None]:
    """Return how many steps there were, and the time of all where an annotation says it."""
    for row in rows:
        if row.name.startswith("ProfilerStep") and row.calls:
            return int(row.calls), row.host_total or None
    for start in ("Optimizer.step#", LOADER):
        if calls := max((row.calls for row in rows if row.name.startswith(start)), default=0):
            return int(calls), None
    return 0, None


def _profile(table: Table) -> dict[str, Any]:
    steps, whole, loader = table.steps or 1, table.whole, table.loader
    launches = table.calls(LAUNCH)
    launching = sum(row.host_self for row in table.rows if LAUNCH.match(row.name))
    functions = sorted(table.rows, key=lambda row: -row.host_total)[:MOST_ROWS]
    return without_absent({
        "step_seconds": whole / steps,
        "idle": share(1 - table.device / whole) if table.device is not None else None,
        "data_loader": share(loader / whole) if loader is not None else None,
        "launches_a_step": launches,
        "launch_seconds": launching / steps if launches is not None else None,
        "synchronise_calls": table.calls(WAIT),
        "allocation_calls": table.calls(ALLOCATION),
        "top": profile_rows(_operators(table), table.device or whole, steps),
        "host_top": [
            {"name": row.name, "share": share(row.host_total / whole), "calls": row.calls / steps}
            for row in functions
            if row.host_total > 0 and not row.name.startswith("ProfilerStep")
        ],
    })  # fmt: skip


def _operators(table: Table) -> Iterator[tuple[str, float, float]]:
    """Yield names, seconds and calls by the device's time; by the processor's where it has none.

    An operator's own device time holds that of its kernels, so the kernels' rows stand for both.
    """
    kernels = [row for row in table.rows if row.device_share > 0 and row.host_self == 0]
    for row in (kernels or table.rows) if table.device is not None else table.rows:
        spent = row.host_self if table.device is None else row.device_share * table.device
        fed = table.device is None and host_family(row.name) == "loader"
        if not fed and not row.name.startswith("ProfilerStep"):
            yield row.name, spent, row.calls


def _setup(rows: Sequence[Row], told: str | None) -> dict[str, Any]:
    names = " ".join(row.name for row in rows)
    device = _DEVICES.get(told.upper()) if told is not None else None
    if told is None and "mkldnn" in names and "cuda" not in names.lower():
        device = "cpu"
    return without_absent(
        {"device": device, "num_workers": 0 if WITHOUT_WORKERS in names else None}
    )


def _budget(table: Table) -> budget.Budget:
    """Return the host's time, divided: what its rows took themselves sums to the table's total."""
    spent: dict[budget.Use, float] = {"input": table.loader or 0.0}
    for row in table.rows:
        if not row.name.startswith((LOADER, "ProfilerStep")):
            spent[_use(row.name)] = spent.get(_use(row.name), 0.0) + row.host_self
    times = table.steps or 1
    parts = {use: seconds / times for use, seconds in spent.items()}
    source = Message.of("diagnose.budget.table")
    return budget.divided(table.whole / times, parts, source, of_step=table.steps > 0)


def _use(name: str) -> budget.Use:
    kind = family(name)
    if name.startswith("Optimizer."):
        return "optimizer"
    if kind == "copy" and "emcpy" in name:
        return "transfer"
    if kind == "launch" and not name.startswith("aten::"):
        return "launch"
    return _FAMILIES.get(kind, "compute")
