"""Advice that the evidence speaks against: the run has it already, or tried it without gain."""

from collections.abc import Callable

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.trials import (
    doubled_batch,
    fewer_workers,
    saved_by,
    saved_by_larger,
    saved_by_smaller,
    step_times,
)
from trainwright.diagnose.verdict import Fix

WORTH = 0.03
"""Share of a step that a change saves at least to be worth proposing: two runs differ by as much;
assumed."""
_SETTINGS = {
    "settings.precision": "precision",
    "settings.compile": "compile",
    "settings.channels_last": "channels_last",
    "settings.attention": "attention",
    "settings.allocator": "allocator",
    "settings.checkpointing": "checkpointing",
    "settings.strategy": "strategy",
    "settings.loader.num_workers": "num_workers",
    "settings.loader.prefetch_factor": "prefetch_factor",
    "settings.loader.pin_memory": "pin_memory",
}
"""Keys of a plan -> the same in a record's setup."""


def refuted(fix: Fix, evidence: Evidence) -> bool:
    """Return whether the run has what is proposed, or was tried with it and gained nothing."""
    return _in_place(fix, evidence) or _in_vain(fix, evidence)


def _in_place(fix: Fix, evidence: Evidence) -> bool:
    has = {
        key: value
        for key, name in _SETTINGS.items()
        if key in fix.patch and (value := getattr(evidence.setup, name, None)) is not None
    }
    return bool(has) and all(fix.patch[key] == value for key, value in has.items())


def _in_vain(fix: Fix, evidence: Evidence) -> bool:
    id = fix.says.id.removeprefix("diagnose.fix.")
    if id == "precision":
        saved = _by_precision(str(fix.patch["settings.precision"]), evidence)
    else:
        saved = _SAVED[id](evidence) if id in _SAVED else None
    return saved is not None and saved < WORTH


def _by_larger_batch(evidence: Evidence) -> float | None:
    """Return the share of a sample's time that a larger batch takes away, the best of them."""
    doubled, larger = doubled_batch(evidence), saved_by_larger(evidence)
    known = [each for each in (larger, 1 - doubled / 2 if doubled is not None else None)
             if each is not None]  # fmt: skip
    return max(known, default=None)


def _by_precision(word: str, evidence: Evidence) -> float | None:
    """Return what the tried precisions of as many bits save, the best of them."""
    bits = "".join(each for each in word if each.isdigit())
    timed = evidence.experiments.other_precision if evidence.experiments is not None else None
    tried = [
        1 - times
        for trial in evidence.trials
        if trial.changed == "precision" and bits in trial.to
        if (times := step_times(trial, evidence)) is not None
    ]
    if timed is not None and evidence.steps is not None and bits == "16":
        tried.append(1 - timed / evidence.steps.seconds)
    return max(tried, default=None)


_SAVED: dict[str, Callable[[Evidence], float | None]] = {
    **dict.fromkeys(
        ("workers", "workers-kept", "workers-more", "prefetch"), saved_by("more_workers")
    ),
    **dict.fromkeys(("threads", "threads-of"), saved_by("all_threads")),
    **dict.fromkeys(("other-programs-gpu", "other-programs-cpu"), saved_by("alone")),
    **dict.fromkeys(
        ("larger-batch", "larger-batch-of", "larger-batch-for-accumulation"), _by_larger_batch
    ),
    "affinity": saved_by("affinity"),
    "anomaly-detection": saved_by("without_anomaly_detection"),
    "attention": saved_by("fused_attention"),
    "channels-last": saved_by("channels_last"),
    "compile": saved_by("compiled"),
    "empty-cache": saved_by("without_empty_cache"),
    "expandable": saved_by("allocator"),
    "fewer-updates": saved_by("accumulation"),
    "fewer-workers": fewer_workers,
    "garbage": saved_by("without_garbage"),
    "heat": saved_by("cooling"),
    "kernels": saved_by("kernels"),
    "link": saved_by("link"),
    "logging": saved_by("without_logging"),
    "mig": saved_by("slice"),
    "no-checkpointing": saved_by("without_checkpointing"),
    "no-offload": saved_by("without_offloading"),
    "packing": saved_by("padding"),
    "pin": saved_by("pinned_memory"),
    "power": saved_by("power_limit"),
    "profiler": saved_by("without_profiler"),
    "quota": saved_by("quota"),
    "shapes": saved_by("shapes"),
    "shards": saved_by("cached_data"),
    "smaller-batch": saved_by_smaller,
    "fewer-samples": saved_by_smaller,
    "synchronisation": saved_by("without_synchronisation"),
}
"""Fix -> what the trials of its change save, as a share of the step; None where none was tried."""
