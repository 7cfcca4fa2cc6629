"""The short trial that tells two near causes apart: one thing is changed for half a minute."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import get_args

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.trials import Changed
from trainwright.diagnose.verdict import Cause, Confidence, Diagnosis, Verdict
from trainwright.messages import Message

_TRIALS: dict[tuple[Cause, str], Changed] = {
    (Cause.INPUT, ""): "synthetic-data",
    (Cause.MONITORING, "profiler"): "profiler",
    (Cause.MONITORING, "anomaly-detection"): "anomaly-detection",
    (Cause.MONITORING, "logging"): "logging",
    (Cause.MONITORING, "synchronisation"): "synchronisation",
    (Cause.MEMORY, "empty-cache"): "empty-cache",
    (Cause.MEMORY, "garbage"): "garbage-collection",
    (Cause.PARALLELISM, ""): "batch",
    (Cause.TUNING, "precision"): "precision",
    (Cause.TUNING, "layout"): "channels-last",
    (Cause.MEMORY, "heap"): "allocator",
    (Cause.TUNING, "attention"): "attention",
    (Cause.TUNING, "compile"): "compile",
    (Cause.SCHEDULING, "threads"): "threads",
    (Cause.SCHEDULING, "other-programs-gpu"): "other-programs",
    (Cause.SCHEDULING, "other-programs-cpu"): "other-programs",
    (Cause.COMMUNICATION, ""): "devices",
    (Cause.MEMORY, "recomputation"): "checkpointing",
    (Cause.MEMORY, "offload"): "offloading",
}
"""Cause and variant (empty: any) -> what is changed to try it, the easiest first."""
_TIMED: dict[Changed, str] = {
    "synthetic-data": "synthetic_batch",
    "batch": "doubled_batch",
    "precision": "other_precision",
    "channels-last": "channels_last",
    "compile": "compiled",
    "attention": "fused_attention",
    "threads": "all_threads",
    "empty-cache": "without_empty_cache",
    "synchronisation": "without_synchronisation",
    "devices": "single_device",
    "other-programs": "alone",
}
"""The same among a record's experiments."""


@dataclass(frozen=True, slots=True)
class Deciding:
    """A trial, and what each of its outcomes says."""

    changed: Changed
    verdict: Verdict
    """What it is where the change helps."""
    other: Verdict | None
    """What it is where the change does nothing; None: nothing else was named."""

    @property
    def how(self) -> Message:
        """What to do for half a minute."""
        return Message.of(f"diagnose.deciding.{self.changed}")

    @property
    def outcome(self) -> Message:
        """What follows; of a larger batch a step that takes no longer is the gain."""
        id = "outcome-batch" if self.changed == "batch" else "outcome"
        other = Message.of("diagnose.deciding.something-else")
        if self.other is not None:
            other = self.other.title
        return Message.of(f"diagnose.deciding.{id}", verdict=self.verdict.title, other=other)


def deciding(
    diagnosis: Diagnosis, evidence: Evidence, among: Collection[str] = get_args(Changed)
) -> Deciding | None:
    """Return the easiest trial that separates the two likeliest causes, or confirms the only one.

    None where one is sure, and where no trial is left that says more. ``among``: the trials that
    may be named.
    """
    named = [each for each in diagnosis.verdicts if each.cause is not Cause.UNKNOWN][:2]
    if diagnosis.first.confidence is Confidence.HIGH or not named:
        return None
    first, *others = named
    other = next((each for each in others if each.cause is not first.cause), None)
    tried = _tried(evidence)
    for (cause, variant), changed in _TRIALS.items():
        for verdict, rival in ((first, other), (other, first)):
            if verdict is None or verdict.cause is not cause or changed in tried:
                continue
            if variant in ("", verdict.variant) and changed in among:
                return Deciding(changed, verdict, rival)
    return None


def _tried(evidence: Evidence) -> frozenset[Changed]:
    timed = {
        changed
        for changed, name in _TIMED.items()
        if getattr(evidence.experiments, name, None) is not None
    }
    return frozenset(timed | {trial.changed for trial in evidence.trials})
