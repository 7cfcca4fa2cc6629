"""How much of the score rests on rules that few situations speak for, and on exact figures.

python tests/accuracy/robustness.py

Every situation here has been seen by whoever wrote the rules, so none of these figures is a
held-out score. They show overfitting: a rule that speaks in one kind of situation only has been
written for it, and a verdict that turns with a figure's noise was read off the figure.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

from situationrows import FOURTH, Situation, kept

from trainwright.diagnose import decide
from trainwright.diagnose.evidence import STEP_PARTS, Evidence
from trainwright.diagnose.rules import Rule
from trainwright.diagnose.verdict import Cause, Confidence, Verdict

Rules = dict[Cause, tuple[Rule, ...]]
NOISE = 0.25
"""Standard deviation of the logarithm of a reading's factor."""
DRAWS = 10
LATER = (2, 3, 5, 6)
"""Batches that were held out whole."""
EXACT = ("usable_cores", "quota_cores", "cores", "memory_total_bytes", "power_limit_w")
"""Figures that nobody measures."""


def seen() -> list[Situation]:
    """Return every situation that was not dropped."""
    later = [row for batch in LATER for row in kept(held_out=True, batch=batch)]
    guiding = [*kept(held_out=False), *kept(held_out=False, batch=FOURTH)]
    return [*guiding, *kept(held_out=True), *later]


def speaking(rows: Iterable[Situation]) -> dict[tuple[Cause, int], set[str]]:
    """Return the situations in which each rule speaks for the cause that is the true one."""
    found: dict[tuple[Cause, int], set[str]] = defaultdict(set)
    for row in rows:
        evidence = row.evidence
        for cause, rules in decide.RULES.items():
            if cause not in (row.cause, row.also_right):
                continue
            for at, rule in enumerate(rules):
                signal = rule.signal(evidence)
                if signal is not None and signal.weight > 0:
                    found[cause, at].add(row.id)
    return found


def without(own: set[str], support: dict[tuple[Cause, int], set[str]]) -> Rules:
    """Return the rules less those that speak rightly in these situations and in no other."""
    return {
        cause: tuple(
            rule
            for at, rule in enumerate(rules)
            if not support[cause, at] or support[cause, at] - own
        )
        for cause, rules in decide.RULES.items()
    }


def judged_with(rules: Rules, evidence: Evidence) -> Verdict:
    """Return the first verdict by other rules."""
    before = dict(decide.RULES)
    try:
        decide.RULES.update(rules)
        return decide.judge(evidence).first
    finally:
        decide.RULES.update(before)


def outcome(row: Situation, verdict: Verdict) -> str:
    """Return ``right``, ``unknown``, ``wrong`` or ``confidently wrong``."""
    if verdict.cause in (row.cause, row.also_right):
        return "right"
    if verdict.confidence is Confidence.HIGH:
        return "confidently wrong"
    return "unknown" if verdict.cause is Cause.UNKNOWN else "wrong"


def noisy(value: Any, draw: random.Random) -> Any:
    """Return data with every number that is no count multiplied by a random factor."""
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


def lacking(evidence: Evidence) -> Iterable[Evidence]:
    """Yield the evidence with one part left out."""
    parts = ("gpus", "host", "steps", "loading", "counters", "setup", "profile", "experiments")
    for part in parts:
        if getattr(evidence, part) is not None:
            yield evidence.model_copy(update={part: None})


def line(name: str, found: "Counter[str]") -> str:
    """Return the shares of outcomes as text."""
    total = max(1, sum(found.values()))
    parts = ("right", "unknown", "wrong", "confidently wrong")
    shares = "  ".join(f"{found[part] / total:>6.1%} {part}" for part in parts)
    return f"{name:44} {total:5}  {shares}"


def left_out(rows: list[Situation], groups: dict[str, set[str]]) -> dict[str, "Counter[str]"]:
    """Return the outcomes of each group by rules that another situation speaks for as well."""
    support, by_id = speaking(rows), {row.id: row for row in rows}
    found = {}
    for name, own in groups.items():
        rules = without(own, support)
        verdicts = ((by_id[each], judged_with(rules, by_id[each].evidence)) for each in own)
        found[name] = Counter(outcome(row, verdict) for row, verdict in verdicts)
    return found


def groups_of(rows: Iterable[Situation]) -> dict[str, set[str]]:
    """Return the situations by cause and finer cause."""
    found: dict[str, set[str]] = defaultdict(set)
    for row in rows:
        found[f"{row.cause} ({row.sub_cause})" if row.sub_cause else row.cause].add(row.id)
    return dict(found)


def main() -> None:
    rows = seen()
    print("By rules that situations of other groups speak for as well:")
    by_group = left_out(rows, groups_of(rows))
    for name, found in sorted(by_group.items()):
        print(line(name, found))
    print(line("all, each group left out", sum(by_group.values(), Counter())))
    one_by_one = left_out(rows, {row.id: {row.id} for row in rows})
    print(line("all, each situation left out", sum(one_by_one.values(), Counter())))
    draw = random.Random(1)
    print(line("as they are", Counter(outcome(r, decide.judge(r.evidence).first) for r in rows)))
    verdicts = [
        outcome(row, decide.judge(shaken(row.evidence, draw)).first)
        for row in rows
        for _ in range(DRAWS)
    ]
    print(line(f"readings off by {NOISE:.0%}", Counter(verdicts)))
    lost = [
        outcome(row, decide.judge(each).first) for row in rows for each in lacking(row.evidence)
    ]
    print(line("one part of the record absent", Counter(lost)))


if __name__ == "__main__":
    main()
