"""Verdicts on figures that are off: a verdict that turns with noise was read off one figure."""

import random
from collections import Counter
from typing import Any

import pytest
from situationrows import SEEN, Situation, kept

from trainwright.diagnose import decide
from trainwright.diagnose.evidence import STEP_PARTS, Evidence
from trainwright.diagnose.verdict import Cause, Confidence, Verdict

NOISE = 0.25
"""Standard deviation of the logarithm of a reading's factor."""
EXACT = ("usable_cores", "quota_cores", "cores", "memory_total_bytes", "power_limit_w")
"""Figures that nobody measures."""


def outcome(row: Situation, verdict: Verdict) -> str:
    """Return ``right``, ``unknown``, ``wrong`` or ``confidently wrong``."""
    if verdict.cause in (row.cause, row.also_right):
        return "right"
    if verdict.confidence is Confidence.HIGH:
        return "confidently wrong"
    return "unknown" if verdict.cause is Cause.UNKNOWN else "wrong"


def noisy(value: Any, draw: random.Random) -> Any:
    """Return data with every number that is not a count multiplied by a random factor."""
    if isinstance(value, dict):
        each_noisy = {
            key: each if key in EXACT else noisy(each, draw) for key, each in value.items()
        }
        if "slowest_rank" in each_noisy:  # over the mean of all: 1 is the least there is
            each_noisy["slowest_rank"] = max(1.0, each_noisy["slowest_rank"])
        if "steps" in each_noisy and "seconds" in each_noisy:  # no part is longer than the step
            longest = each_noisy["seconds"]
            each_noisy |= {
                part: min(each_noisy[part], longest) for part in each_noisy.keys() & STEP_PARTS
            }
        return each_noisy
    if isinstance(value, list | tuple):
        return [noisy(each, draw) for each in value]
    if not isinstance(value, float):
        return value
    changed = value * draw.lognormvariate(0, NOISE)
    return min(changed, 1.0) if 0 <= value <= 1 else changed


def shaken(evidence: Evidence, draw: random.Random) -> Evidence:
    """Return the evidence as another measurement might have it."""
    data = evidence.model_dump(exclude_none=True)
    kept_as_it_is = {key: data.pop(key) for key in ("setup", "failure", "trials") if key in data}
    return Evidence.model_validate({**noisy(data, draw), **kept_as_it_is})


@pytest.mark.slow
def test_figures_that_are_off_by_a_quarter_turn_few_verdicts_and_hardly_any_confidently() -> None:
    rows = [row for row in kept(SEEN) if outcome(row, decide.judge(row.evidence).first) == "right"]
    found: Counter[str] = Counter()
    for row in rows:
        draw = random.Random(row.id)  # one's own: another situation more changes no other's figures
        verdict = decide.judge(shaken(row.evidence, draw)).first
        found[outcome(row, verdict)] += 1
    print(found)
    assert found["confidently wrong"] <= 0.002 * found.total()
    assert found["right"] >= 0.93 * found.total()
