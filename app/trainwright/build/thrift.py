"""Of computers that are about as fast, the one whose price is best spent comes first."""

from collections.abc import Sequence
from dataclasses import replace

from trainwright.build.answer import Candidate
from trainwright.build.doubt import GUESSED, counted, latest
from trainwright.build.money import amount
from trainwright.messages import Message

NEAR = 0.05
"""Longer time that nobody notices, as for the next step of money; assumed."""
IDLE = 0.25
"""Longer time for which cards that are there already are not left idle; assumed, as ``FAIR``."""
FEWER = 0.15
"""Longer time for which fewer cards are taken, where each has as much memory: what fits on one card
needs neither a second slot nor a script for several. Source: Tim Dettmers, "Which GPU(s) to get for
deep learning", asks for few and large cards; the share is assumed."""


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


def simpler(ranked: Sequence[Candidate]) -> list[Candidate]:
    """Return the same, but first one of fewer cards, each as large, that is about as fast.

    About as fast: as above by ``FEWER``, and no dearer by more. It says what it gives up. Owned
    cards stay together.
    """
    if not ranked or _owns(ranked[0]):
        return list(ranked)
    first, cards = ranked[0], ranked[0].build.gpus[0]
    fewer = [one for one in ranked if _is_simpler(one, first)]
    if not fewer:
        return list(ranked)
    best = min(fewer, key=counted)
    said = Message.of(
        "planner.simpler",
        gpu=cards.record.name,
        count=first.build.gpu_count,
        gain=counted(best) / counted(first) - 1,
        near=FEWER,
    )
    guessed = first.doubt is not None and first.doubt.id.startswith(GUESSED)
    leader = replace(best, thrift=said, doubt=first.doubt if guessed else best.doubt)
    plain = replace(first, doubt=None, thrift=None)
    return [leader, plain, *(one for one in ranked[1:] if one is not best)]


def _is_simpler(one: Candidate, first: Candidate) -> bool:
    memory = [each.build.gpus[0].record.memory_bytes.value for each in (one, first)]
    return (
        one.build.gpu_count < first.build.gpu_count
        and memory[0] >= memory[1]
        and _cost(one) < _cost(first) * (1 + FEWER)
        and all(rank(one) < rank(first) * (1 + FEWER) for rank in (counted, latest))
    )


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
