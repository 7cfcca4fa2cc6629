"""Of computers that are about as fast, the one whose price is best spent comes first."""

from collections.abc import Sequence
from dataclasses import replace

from trainwright.build.answer import Candidate
from trainwright.build.doubt import counted, latest
from trainwright.build.money import amount
from trainwright.messages import Message

NEAR = 0.05
"""Longer time that nobody notices, as for the next step of money; assumed."""
IDLE = 0.25
"""Longer time for which cards that are there already are not left idle; assumed, as ``FAIR``."""


def thrifty(ranked: Sequence[Candidate]) -> list[Candidate]:
    """Return the same, but first the one of the least price times time that is about as fast.

    About as fast: neither its expected time nor its upper end is longer than the first one's by
    ``NEAR``, or by ``IDLE`` where it is built of owned cards that the first one leaves idle. It
    says what the faster one costs more.
    """
    if not ranked:
        return []
    first = ranked[0]
    best = min((one for one in ranked if _about_as_fast(one, first)), key=_spent)
    if best is first or _cost(best) >= _cost(first):
        return list(ranked)
    cards = first.build.gpus[0]
    said = Message.of(
        "planner.thrift-owned" if _owns(best) and not _owns(first) else "planner.thrift",
        gpu=cards.record.name,
        count=first.build.gpu_count,
        gain=counted(best) / counted(first) - 1,
        more=amount(first.total.currency, _cost(first) - _cost(best)),
        near=NEAR,
    )
    leader = replace(best, thrift=said, doubt=first.doubt)
    return [leader, replace(first, doubt=None), *(one for one in ranked[1:] if one is not best)]


def _about_as_fast(one: Candidate, first: Candidate) -> bool:
    near = IDLE if _owns(one) and not _owns(first) else NEAR
    return all(rank(one) < rank(first) * (1 + near) for rank in (counted, latest)) or one is first


def _owns(one: Candidate) -> bool:
    """Return whether cards that are there already do the work."""
    return any(part.kind == "gpu" and part.owned for part in one.parts)


def _spent(one: Candidate) -> float:
    return _cost(one) * counted(one)


def _cost(one: Candidate) -> float:
    return one.total.expected or 0.0
