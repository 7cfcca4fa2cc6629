"""Plans that an answer turns to when nothing else does the work: traced then, where someone can."""

from collections.abc import Callable, Iterator

from trainwright.build.offers import Market
from trainwright.build.speeds import Cards, Speeds, shares
from trainwright.messages import UserError
from trainwright.plan.evaluate import Pending, resolve
from trainwright.plan.schema import Plan

Trace = Callable[[Plan], object]
"""Traces a plan's model, so that its profile is at hand from then on."""


def at_hand(plan: Plan, trace: Trace | None) -> bool:
    """Return whether a plan needs no trace: it is traced now where someone does that.

    A plan that is refused has nothing to wait for.
    """
    if not _waits(plan):
        return True
    if trace is None:
        return False
    try:
        trace(plan)
    except UserError:
        return False
    return not _waits(plan)


def _waits(plan: Plan) -> bool:
    try:
        return isinstance(resolve(plan), Pending)
    except UserError:
        return False


def shared_out(speeds: Speeds, market: Market) -> Iterator[Plan]:
    """Yield the plan with its weights shared over two cards, where that is not at hand."""
    large = [record for record in market.cards() if shares(record)]
    plan = speeds.sharded(Cards(large[0], 2)) if large else None
    if plan is not None and not at_hand(plan, None):
        yield plan
