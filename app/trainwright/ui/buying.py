"""The question to the planner as the screen asks it: budgets in steps, the plan's wishes."""

from bisect import bisect_left
from itertools import chain
from typing import TYPE_CHECKING

from trainwright.messages import UserError
from trainwright.plan.schema import Plan
from trainwright.prices import Currency

if TYPE_CHECKING:
    from trainwright.build import Money, Request
    from trainwright.build.request import Work

PRESETS: dict[Currency, tuple[int, ...]] = {
    "KRW": (1_500_000, 3_000_000, 5_000_000, 10_000_000),
    "USD": (1_500, 3_000, 5_000, 10_000),
}
"""Budgets that one click sets."""


def _steps(unit: int) -> tuple[int, ...]:
    """Return the stops of the slider: fine where little money makes a difference."""
    fine = range(8 * unit, 50 * unit, unit)
    middle = range(50 * unit, 150 * unit, 5 * unit)
    coarse = range(150 * unit, 501 * unit, 25 * unit)
    return tuple(chain(fine, middle, coarse))


STEPS: dict[Currency, tuple[int, ...]] = {"KRW": _steps(100_000), "USD": _steps(100)}


def budget_of(plan: Plan) -> tuple[int, Currency] | None:
    """Return the plan's budget; None where it has none."""
    text = plan.limits.budget
    if text is None:
        return None
    currency: Currency = "KRW" if text.endswith("KRW") else "USD"
    return round(float(text[:-3])), currency


def amount_in(text: str, usual: Currency) -> "Money":
    """Return the amount that a text means; one without a currency is in the usual one.

    Raises:
        UserError: it is not an amount of money.
    """
    from trainwright.build import money

    try:
        return money(text)
    except UserError as error:
        if error.message.id != "planner.budget-no-currency":
            raise
    return money(f"{text} {usual}")


def nearest_step(amount: float, currency: Currency) -> int:
    """Return the slider's stop for an amount."""
    return min(bisect_left(STEPS[currency], amount), len(STEPS[currency]) - 1)


def request(plan: Plan, amount: float, currency: Currency) -> "Request":
    """Return the question in the planner's terms.

    Raises:
        UserError: the plan's wishes contradict one another, name a part that nobody knows, or
            another plan that cannot be read.
    """
    from trainwright.build import Money, Request, wishing
    from trainwright.build.wished import others, wishes_of

    also = others(plan)
    for work in also:
        _ready(work)
    asked = Request(plan, Money(amount, currency), wishes_of(plan), also=also)
    wishing.agree(asked)
    return asked


def _ready(work: "Work") -> None:
    """Refuse a plan that has to be opened first: its code needs consent, its model a trace.

    Raises:
        UserError: naming it.
    """
    from trainwright.plan.evaluate import Pending, resolve

    if work.plan.model.code is not None:
        raise UserError.of("pc.work.code", name=work.plan.name)
    if isinstance(resolve(work.plan), Pending):
        raise UserError.of("pc.work.untraced", name=work.plan.name)
