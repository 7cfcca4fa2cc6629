"""Tables that training loops leave: Lightning's simple profiler, and metrics by step as CSV.

Lightning's is the report of ``Trainer(profiler="simple")``, with mean times and calls of its
actions by the names of lightning.pytorch from 1.6 to 2.6: one row an action, and those of
optimizer_step hold the forward and backward passes of its closure. Metrics have one column each:
Lightning's CSVLogger, ``results.csv`` of ultralytics, tables that Weights & Biases exports, scalars
that TensorBoard saves.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median
from typing import Any

from trainwright.diagnose import texts
from trainwright.diagnose.readers import training_log
from trainwright.diagnose.readers.found import FEW_SAMPLES, Found, step_budget
from trainwright.diagnose.readers.gpu_monitors import of_first_run
from trainwright.messages import Message, UserError

_HEADING = re.compile(r"\|[ \t]{0,80}Action[ \t]{1,500}\|[ \t]{0,80}Mean duration \(s\)")
_ACTIONS = {
    "batches": re.compile(r"run_training_batch$"),
    "data_wait": re.compile(r"train_dataloader_next$"),
    "transfer": re.compile(r"\[Strategy\]\w{1,99}\.batch_to_device$"),
    "forward": re.compile(r"\[Strategy\]\w{1,99}\.training_step$"),
    "backward": re.compile(r"\[Strategy\]\w{1,99}\.backward$"),
    "optimizer": re.compile(r"\[LightningModule\]\w{1,99}\.optimizer_step$"),
}


def lightning(text: str) -> Found | None:
    """Return the parts of a step."""
    if _HEADING.search(text) is None:
        return None
    rows: dict[str, tuple[float, float]] = {}
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        action = next((a for a, name in _ACTIONS.items() if cells and name.search(cells[0])), None)
        if action is None or len(cells) < 4:
            continue
        number, total = texts.number(cells[2]), texts.number(cells[3])
        if number and total is not None and min(number, total) >= 0:
            rows[action] = number, total
    calls, inside = rows.pop("batches", (0.0, 0.0))
    if not calls or not inside:
        raise UserError.of("diagnose.file.no-rows")
    # Validation copies batches too, and an optimizer may step once in several batches.
    parts = {action: total / max(number, calls) for action, (number, total) in rows.items()}
    step = inside / calls + parts.get("data_wait", 0.0) + parts.get("transfer", 0.0)
    if "optimizer" in parts:
        passes = parts.get("forward", 0.0) + parts.get("backward", 0.0)
        parts["optimizer"] = max(0.0, parts["optimizer"] - passes)
    took = Message.of("diagnose.file.lightning-steps", count=int(calls))
    steps = {"steps": int(calls), "seconds": step} | parts
    return Found((took,), facts={"steps": steps}, budget=step_budget(step, parts))


_STEPS = ("step", "global_step", "trainer/global_step", "train/global_step", "iter", "iteration")
"""Columns of the optimizer's steps; W&B's ``_step`` counts what was logged."""
_CLOCKS = ("wall time", "_timestamp", "_runtime", "relative time (process)",
           "relative time (wall)", "time", "elapsed", "elapsed_time")  # fmt: skip
"""Columns of the seconds that have passed."""
_OTHER = re.compile(r"__(?:min|max)$", re.IGNORECASE)
"""Columns that W&B adds to one of a metric."""
_SUMMED = 0.5
"""Share of rows times the first value that the last of a clock is at least; assumed."""

Columns = Mapping[str, Sequence[float | None]]


def metrics(text: str) -> Found | None:
    """Return the step times of a table of metrics; None where it has none and no clock."""
    held = texts.table(text)
    if held is None:
        return None
    names, others = of_first_run(held[0])
    every = texts.columns([name.lower() for name in names], held[1])
    columns: Columns = {name: one for name, one in every.items() if not _OTHER.search(name)}
    clock = next((name for name in _CLOCKS if _runs(name, columns.get(name, ()))), None)
    known = {name: quantity for name in columns
             if name != clock and (quantity := training_log.named(name)) is not None}  # fmt: skip
    at = next((name for name in _STEPS if name in columns), "")
    lines = []
    for row in range(len(held[1])):
        cells = [(quantity, value, unit) for name, (quantity, unit) in known.items()
                 if (value := columns[name][row]) is not None and value >= 0]  # fmt: skip
        lines.append(training_log.line_of(columns[at][row] if at else None, cells))
    found = training_log.told([line for line in lines if line.values])
    if found is None or not ({"steps", "throughput"} & found.facts.keys()):
        found = _by_clock(columns, clock, at)
    if found is None or others is None:
        return found
    return replace(found, missed=(*found.missed, others))


def _runs(name: str, column: Sequence[float | None]) -> bool:
    """Return whether a column counts seconds on, and is not the time of each row's step."""
    values = [value for value in column if value is not None]
    if len(values) < FEW_SAMPLES or any(a > b for a, b in pairwise(values)):
        return False
    summed = name != "time" or values[-1] >= _SUMMED * len(values) * values[0]
    return values[-1] > values[0] and summed


def _by_clock(columns: Columns, clock: str | None, at: str) -> Found | None:
    """Return the time of a step, or else of an epoch, by when the rows were written."""
    unit = "step" if at else "epoch"
    counts = columns.get(at or unit)
    if clock is None or counts is None:
        return None
    rows = zip(counts, columns[clock], strict=True)
    seen = [(count, time) for count, time in rows if count is not None and time is not None]
    each = [(time - then) / (count - before) for (before, then), (count, time) in pairwise(seen)
            if count > before and time > then]  # fmt: skip
    if not each or median(each) > training_log.MOST_SECONDS:
        return None
    passed = int(seen[-1][0] - seen[0][0])
    facts: dict[str, Any] = {"steps": max(1, passed), "seconds": median(each), "unit": unit}
    took = Message.of("diagnose.file.log", count=len(seen))
    missed = [Message.of(f"diagnose.file.{one}") for one in ("log-by-clock", "log-no-data")]
    return Found((took,), tuple(missed), {"steps": facts})
