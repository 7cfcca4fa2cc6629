"""Computers against one another: which none beats, and what a dearer one has in another's place."""

import math
from collections.abc import Iterator, Sequence

from trainwright.build.answer import Candidate
from trainwright.build.choosing import Outcome
from trainwright.build.money import amount
from trainwright.build.run import Run
from trainwright.messages import Message
from trainwright.prices import Currency


def undominated(outcomes: list[Outcome]) -> list[Outcome]:
    """Return those that none beats in time, price and watts together, in their rank."""
    ordered = sorted(outcomes, key=lambda one: (one.counted, one.cost, one.unknown, one.watts))
    kept: list[Outcome] = []
    for one in ordered:
        if not any(_beats(other, one) for other in kept):
            kept.append(one)
    return kept


def _beats(one: Outcome, other: Outcome) -> bool:
    if one.unknown and not other.unknown:  # what cannot be checked rules nothing out that passes
        return False
    return one.seconds <= other.seconds and one.cost <= other.cost and one.watts <= other.watts


def tardy(
    run: Run, builds: Sequence[Candidate], ladder: Sequence[Outcome], currency: Currency
) -> Iterator[Message]:
    """Yield what there is to say of a deadline that no computer within the budget keeps."""
    if run.steps is None:
        yield Message.of("planner.note.deadline-unknown", deadline=run.deadline)
        return
    seconds = min(one.seconds or math.inf for one in builds)
    yield Message.of("planner.note.late", deadline=run.deadline, seconds=seconds)
    timely = [one for one in ladder if run.in_time(one.seconds)]
    if timely:
        least = min(timely, key=lambda one: one.cost)
        name, count = least.cards.record.name, least.cards.count
        price = amount(currency, least.cost)
        yield Message.of("planner.note.in-time", gpu=name, count=count, price=price)


def change(before: Outcome, after: Outcome) -> Message:
    """Return what the dearer computer has in place of something."""
    old, new = before.cards, after.cards
    if old.key == new.key:
        return Message.of("planner.step.around", parts=_differing(before, after))
    return Message.of(
        "planner.step.cards",
        old=old.record.name,
        new=new.record.name,
        old_count=old.count,
        new_count=new.count,
    )


def _differing(before: Outcome, after: Outcome) -> list[str]:
    pairs = [
        (before.build.cpu, after.build.cpu),
        (before.build.board, after.build.board),
        (before.build.psu, after.build.psu),
    ]
    return [new.name for old, new in pairs if new is not None and (old is None or old.id != new.id)]
