"""Whether the fastest computer is known to be so, or another one is the surer choice."""

import math
from collections.abc import Sequence
from dataclasses import replace

from trainwright.build.answer import Candidate
from trainwright.messages import Message

WORTH = 1.1
"""Factor by which another's upper end must be lower to be worth a sentence; assumed."""


def doubted(ranked: Sequence[Candidate]) -> list[Candidate]:
    """Return the same, fastest first, but the surest before all where it may be as fast.

    It says which one is expected to be faster.

    As fast: the times differ by less than their 90 % intervals together, whose errors are taken
    as independent and normal in the logarithm, as those of steps are. Surer: its upper end is
    lower.
    """
    if not ranked:
        return []
    first, *others = ranked
    rivals = [one for one in others if _as_fast(first, one)]
    surest = min(rivals, key=_latest, default=first)
    if _latest(surest) * WORTH > _latest(first):
        return list(ranked)
    said = Message.of(
        "planner.surer",
        **_named("first", first),
        **_named("other", surest),
        first_seconds=_latest(first),
        other_seconds=_latest(surest),
    )
    return [replace(surest, doubt=said), *(one for one in ranked if one is not surest)]


def _as_fast(first: Candidate, other: Candidate) -> bool:
    one, two = first.time, other.time
    if one is None or two is None or one.interval is None or two.interval is None:
        return False
    spread = math.hypot(
        math.log(one.interval.high / one.value), math.log(two.interval.high / two.value)
    )
    return math.log(two.value / one.value) <= spread


def _latest(one: Candidate) -> float:
    """Return the upper end of the time, which 95 of 100 keep."""
    time = one.time
    return math.inf if time is None else time.interval.high if time.interval else time.value


def _named(role: str, one: Candidate) -> dict[str, object]:
    cards = one.build.gpus[0]
    return {role: cards.record.name, f"{role}_count": one.build.gpu_count}
