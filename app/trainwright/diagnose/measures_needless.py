"""Work of a step on the processor that need not be done, as far as its operators show it."""

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures import given, number, on_cpu
from trainwright.diagnose.measures_work import heavy, only_computes

_APART = ("::cat", "::bernoulli_", "::native_dropout", "::normal_", "::uniform_", "::random_")
"""What asks for memory, which counts there, and what draws numbers, which models are made for."""


def _longest_other(evidence: Evidence) -> float | None:
    rows = evidence.operators
    other = (row.share for row in rows if not heavy(row.name) and not row.name.endswith(_APART))
    return max(other, default=0.0) if rows else None


longest_other = given(only_computes, _longest_other)
"""Return the share of the one operator that takes most of a step and multiplies no matrices.

Sorting, indexing, copying or a function of each number: next to products they are little.
"""


def ignored_scores(evidence: Evidence) -> float | None:
    """Return the share of ignored targets, where the loss of classes is seen to take time."""
    rows = evidence.operators
    loss = sum(row.share for row in rows if "log_softmax" in row.name or "nll_loss" in row.name)
    known = number("setup.ignored_targets")(evidence)
    return known if loss >= 0.05 or not on_cpu(evidence) else None
