"""Traits of a run: what its record has, in coarse classes, and what the rules say of it.

A trait is short text, such as ``setup.num_workers = 1e+0.5``: the classes are so wide that another
measurement of the same run has the same traits.
"""

import re
from collections.abc import Iterable
from math import log10
from typing import Any

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.trials import Trial
from trainwright.diagnose.verdict import Signal

UNREAD = ("trainwright_record", "made_by", "source", "note", "command")
"""Parts that say who wrote a record, and nothing of the run."""
NAMES = ("name", "to", "torch", "compute_capability", "text")
"""Texts without end: that there is one is the trait."""
STATED = (
    *("name", "compute_capability", "memory_total_bytes", "cores", "usable_cores", "steps"),
    *("unit", "samples", "threads_per_core", "sm_clock_max_mhz", "power_limit_w", "synchronised"),
    "mig_profile",
)
"""What is known of a run or its computer, and measures nothing."""
MEASURING = ("host", "steps", "loading", "counters", "profile", "throughput", "experiments")
"""Parts of a record that hold readings; a GPU's and the trials are counted besides."""
ROWS = 6
"""Rows of a profiler's table that are read; assumed, the ones after them take little."""
FASTER, FAST, SLOW = 0.6, 0.9, 1.1
"""Times of a step that an experiment changed much, changed, or did not; assumed."""


def traits(evidence: Evidence, found: Iterable[Signal]) -> frozenset[str]:
    """Return a run's traits; ``found`` are the signals of all rules."""
    data = evidence.model_dump(exclude_none=True, exclude_defaults=True)
    of_rules = (f"rule {signal.reading} {signal.limit}" for signal in found)
    of_record = _of_parts("", {key: data[key] for key in data if key not in UNREAD})
    return frozenset((*of_record, *_of_waits(evidence), *of_rules))


def measured(evidence: Evidence) -> int:
    """Return how many readings a record holds; settings and data sheets are none."""
    data = evidence.model_dump(exclude_none=True, exclude_defaults=True)
    parts = [*(data.get(part, {}) for part in MEASURING), *(data.get("gpus") or ({},))[:1]]
    read = sum(key not in STATED for part in parts for key in part)
    return read + len(evidence.trials) + (evidence.failure is not None)


def speed_alone(evidence: Evidence) -> bool:
    """Return whether a record says how fast the run goes, and nothing of why."""
    data = evidence.model_dump(exclude_none=True, exclude_defaults=True)
    rest = (data.get(part) for part in (*MEASURING, "gpus", "trials") if part != "throughput")
    return not any(
        set(part) - {"steps", "seconds"} if isinstance(part, dict) else part for part in rest
    )


def _of_parts(path: str, value: Any) -> Iterable[str]:
    """Yield the traits of a part of a record, from its place downwards."""
    if isinstance(value, dict):
        for key, each in value.items():
            yield from _of_parts(f"{path}.{key}" if path else key, each)
    elif isinstance(value, list | tuple):
        yield from _of_list(path, value)
    elif path.split(".")[-1] in NAMES:
        yield path
    elif isinstance(value, bool | str):
        yield f"{path} = {value}"
    else:
        yield from (path, f"{path} = {_class(value)}")


def _of_list(path: str, values: "list[Any] | tuple[Any, ...]") -> Iterable[str]:
    if path == "gpus":
        yield f"gpus {min(len(values), 8)}"
        yield from _of_parts(path, values[0] if values else {})
    elif path == "trials":
        for each in values:
            yield from _of_trial(Trial.model_validate(each))
    elif path in ("profile.top", "profile.host_top"):
        for row in values[:ROWS]:
            yield from (f"{path} {word}" for word in _words(row["name"]))
    else:
        yield path


def _of_trial(trial: Trial) -> Iterable[str]:
    changed: str = trial.changed
    if trial.factor is not None:
        changed += " up" if trial.factor > 1 else " down"
    times = trial.step_times or (1 / trial.rate_times if trial.rate_times else None)
    yield f"trials {changed}"
    yield f"trials {changed}: {_effect(times)}"


def _effect(times: float | None) -> str:
    if times is None:
        return "in words"
    levels = ((FASTER, "much faster"), (FAST, "faster"), (SLOW, "the same"))
    return next((said for limit, said in levels if times < limit), "slower")


def _of_waits(evidence: Evidence) -> Iterable[str]:
    """Yield what a share of the step the wait for batches is, as the record holds seconds."""
    steps = evidence.steps
    if steps is not None and steps.data_wait:
        yield f"waits = {_class(min(steps.data_wait / steps.seconds, 1.0))}"


def _words(name: str) -> set[str]:
    """Return the words in a function's or kernel's name."""
    return set(re.findall(r"[a-z]{3,}", name.lower()))


def _class(value: float) -> str:
    """Return the quarter of a share, or the half of a power of ten."""
    if 0 <= value <= 1:
        return f"quarter {int(min(value, 0.999) * 4) + 1}"
    return f"1e{round(log10(abs(value)) * 2) / 2:+.1f}"
