"""Whether the fastest computer is known to be so, or another one is the surer choice."""

import math
from collections.abc import Sequence
from dataclasses import replace

from trainwright.build.answer import Candidate
from trainwright.estimate.support import measured
from trainwright.messages import Message

GUESSED = "planner.guessed"
"""How the ids begin of why a faster computer is ranked by its upper end."""
WORTH = 1.1
"""Factor by which another's upper end must be lower to be worth a sentence; assumed."""


def counted(one: Candidate) -> float:
    """Return the seconds that rank a computer.

    They are the expected ones, and the upper end of their interval where times of the maker's
    GPUs rest on data sheets alone, or layers are split over PCIe, of which no published run was
    compared: a guess leads only where even a bad one would.
    """
    known = measured(one.build.gpus[0].record) and not _splits_over_slots(one)
    return (one.seconds or math.inf) if known else latest(one)


def _splits_over_slots(one: Candidate) -> bool:
    serving = one.report.serving
    split = serving.served.tensor if serving is not None else None
    return split is not None and split.link is not None and not split.link.of_gpus


def doubted(ranked: Sequence[Candidate]) -> list[Candidate]:
    """Return the same in the order of ``counted``, but the surest first where it may be as fast.

    The first one says which other is expected to be faster.

    As fast: the times differ by less than their 90 % intervals together, whose errors are taken
    as independent and normal in the logarithm, as those of steps are. Surer: its upper end is
    lower.
    """
    if not ranked:
        return []
    first, *others = ranked
    rivals = [one for one in others if _as_fast(first, one)]
    surest = min(rivals, key=latest, default=first)
    if latest(surest) * WORTH > latest(first):
        return [_guessed(first, others), *others]
    said = Message.of(
        "planner.surer",
        **_named("first", first),
        **_named("other", surest),
        first_seconds=latest(first),
        other_seconds=latest(surest),
    )
    return [replace(surest, doubt=said), *(one for one in ranked if one is not surest)]


def checked(
    builds: Sequence[Candidate], systems: Sequence[Candidate]
) -> tuple[tuple[Candidate, ...], tuple[Message, ...]]:
    """Return the computers that pass all rules before those that cannot be checked, and a note.

    Complete computers have no parts to check. They come behind the builds that pass.
    """
    passing = [one for one in builds if not one.unknown]
    unsure = [one for one in builds if one.unknown]
    sure = (*passing, *systems)
    said = [
        Message.of(
            "planner.note.unchecked",
            gpu=one.build.gpus[0].record.name,
            count=one.build.gpu_count,
            rules=[check.title for check in one.unknown],
        )
        for one in unsure[:1]
        if sure and counted(one) < counted(sure[0])
    ]
    return (*sure, *unsure), tuple(said)


def _guessed(first: Candidate, others: Sequence[Candidate]) -> Candidate:
    """Return the first, which says what would be before it if its time were sure."""
    faster = min(others, key=lambda one: one.seconds or math.inf, default=first)
    if (faster.seconds or math.inf) >= (first.seconds or math.inf):
        return first
    said = Message.of(
        f"{GUESSED}-split" if _splits_over_slots(faster) else GUESSED,
        **_named("other", faster),
        maker=faster.build.gpus[0].record.vendor,
        seconds=faster.seconds,
        latest=latest(faster),
    )
    return replace(first, doubt=said)


def _as_fast(first: Candidate, other: Candidate) -> bool:
    one, two = first.time, other.time
    if one is None or two is None or one.interval is None or two.interval is None:
        return False
    spread = math.hypot(
        math.log(one.interval.high / one.value), math.log(two.interval.high / two.value)
    )
    return math.log(two.value / one.value) <= spread


def latest(one: Candidate) -> float:
    """Return the upper end of the time, which 95 of 100 keep."""
    time = one.time
    return math.inf if time is None else time.interval.high if time.interval else time.value


def _named(role: str, one: Candidate) -> dict[str, object]:
    cards = one.build.gpus[0]
    return {role: cards.record.name, f"{role}_count": one.build.gpu_count}
