"""How long operators of a step on the processor are, by what a call takes on that computer."""

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.figures import on_cpu

CALL_S = 2e-6
"""Of an operator that has next to nothing to compute, called from Python, where it was not timed:
1.5 to 2.5 µs on servers' processors; assumed."""
WATCHED_S = 6e-6
"""Of such a call, from which something watches each; assumed: 3 µs at most in 121 records of runs
that nothing watched, 10 µs in one whose operators were written down."""
FEW_CALLS = "assumed: PyTorch takes a few empty ones for an operator, and as much for its gradient"
LONG_CALLS = 40
"""Calls from which an operator's time is its own work; assumed."""


def operator_seconds(evidence: Evidence) -> float | None:
    """Return what an operator of a step on the processor takes on average, Python included.

    Of a step without parts, where they are short though nothing else took time.
    """
    steps, profile = evidence.steps, evidence.profile
    if steps is None or profile is None or not profile.kernels_a_step or not on_cpu(evidence):
        return None
    if steps.compute:
        return steps.compute / profile.kernels_a_step
    most = steps.seconds / profile.kernels_a_step
    return most if steps.unit == "step" and most < LONG_CALLS * CALL_S else None


def operator_calls(evidence: Evidence) -> float | None:
    """Return how many times as long an operator takes as one that computes next to nothing.

    A computer that calls operators in half the time also gets short ones done in half of it. None
    where each call is watched: that makes operators of any work take longer.
    """
    taken = operator_seconds(evidence)
    return None if taken is None or watched_call(evidence) else taken / _empty_call(evidence)


def step_calls(evidence: Evidence) -> float | None:
    """Return how many such operators could be called one after the other in a step."""
    return None if evidence.steps is None else evidence.steps.seconds / _empty_call(evidence)


def watched_call(evidence: Evidence) -> float | None:
    """Return the seconds of an empty operator's call, where something must be watching it."""
    taken = _empty_call(evidence)
    return taken if taken >= WATCHED_S else None


def _empty_call(evidence: Evidence) -> float:
    profile = evidence.profile
    return (profile.empty_call_seconds if profile is not None else None) or CALL_S


SHORT = 0.15
"""Least share of a step of operators as short as the middle one, for short ones to hold it up;
assumed."""


def short_operator_calls(evidence: Evidence) -> float | None:
    """Return that, where it is not due to a few long operators among many short ones."""
    taken, profile = operator_seconds(evidence), evidence.profile
    middle = None if profile is None else profile.kernel_median_seconds
    few = taken is not None and middle is not None and middle < SHORT * taken
    return None if few else operator_calls(evidence)
