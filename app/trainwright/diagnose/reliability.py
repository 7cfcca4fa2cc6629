"""How often verdicts were right before: on runs of known cause that no rule had seen.

``resources/calibration/verdicts.csv`` counts the first verdicts on held-out batches of
``tests/accuracy/situations``, each as it was said on the day of its score.
"""

import csv
from collections.abc import Mapping
from dataclasses import replace
from functools import cache

from trainwright.data import resources
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.figures import on_cpu
from trainwright.diagnose.verdict import Cause, Confidence, Reliability, Verdict

RECORDED, ON_GPU, REPORTED = "recorded", "on-gpu", "reported"
"""Kinds of evidence: the product's recorder was in the run, on a processor or on a GPU, or a person
wrote down what is said of it. Runs that are watched from outside were scored too seldom to say how
often, and recorded runs on GPUs not at all."""
LEAST = 20
"""Verdicts that a share is told of; of fewer it could be far off; assumed."""


def reliability(evidence: Evidence, first: Verdict) -> Reliability | None:
    """Return how often first verdicts like this one were right; None: too few were scored."""
    if first.cause is Cause.UNKNOWN:
        return None
    kind = kind_of(evidence)
    counted = counts().get((RECORDED if kind == ON_GPU else kind, first.confidence))
    return replace(counted, kind=kind) if counted is not None and counted.of >= LEAST else None


def kind_of(evidence: Evidence) -> str:
    """Return the kind of evidence that verdicts are counted by; empty: none."""
    if evidence.recorded:
        return RECORDED if on_cpu(evidence) else ON_GPU
    return REPORTED if evidence.by_hand else ""


@cache
def counts() -> Mapping[tuple[str, Confidence], Reliability]:
    """Return the shipped counts by kind and confidence."""
    with resources("calibration", "verdicts.csv").open(newline="", encoding="utf-8") as file:
        rows = [
            Reliability(
                row["kind"], Confidence(row["confidence"]), int(row["right"]), int(row["of"])
            )
            for row in csv.DictReader(file)
        ]
    return {(row.kind, row.confidence): row for row in rows}
