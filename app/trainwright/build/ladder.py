"""Computers against one another: which none beats, and what a dearer one has in another's place."""

from trainwright.build.choosing import Outcome
from trainwright.messages import Message


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
