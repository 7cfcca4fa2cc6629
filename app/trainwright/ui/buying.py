"""The question to the planner as the screen asks it: budgets in steps, and wishes."""

from bisect import bisect_left
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

from trainwright.plan.schema import Plan
from trainwright.prices import Currency

if TYPE_CHECKING:
    from trainwright.build import Request

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


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person set beside the plan."""

    used: bool = False
    quiet: bool = False
    gpus: int = 0
    """Exactly so many cards; 0: as many as serve best."""
    form: str = ""
    """Of the board; empty: any."""
    circuit: str = ""
    """Of the room; empty: the usual one of the currency's country."""


def budget_of(plan: Plan) -> tuple[int, Currency] | None:
    """Return the plan's budget; None where it has none."""
    text = plan.limits.budget
    if text is None:
        return None
    currency: Currency = "KRW" if text.endswith("KRW") else "USD"
    return round(float(text[:-3])), currency


def nearest_step(amount: float, currency: Currency) -> int:
    """Return the slider's stop for an amount."""
    return min(bisect_left(STEPS[currency], amount), len(STEPS[currency]) - 1)


def request(plan: Plan, amount: float, currency: Currency, asked: Asked) -> "Request":
    """Return the question in the planner's terms; what the plan's machine owns costs nothing."""
    from trainwright.build import Money, Owned, Request, Wishes
    from trainwright.ui.columns import kind_of
    from trainwright.ui.inspection import records_of

    counts = {record.id: count for record, count in records_of(plan.machine)}
    owned = tuple(
        Owned(kind_of(record), record.id, counts[record.id])
        for record, _ in records_of(plan.machine)
        if record.id in plan.machine.owned
    )
    wishes = Wishes(
        used=asked.used,
        quiet=asked.quiet,
        gpus=asked.gpus or None,
        form=asked.form or None,  # type: ignore[arg-type]
        power_w=plan.limits.power_w,
        circuit=asked.circuit or None,  # type: ignore[arg-type]
        owned=owned,
    )
    return Request(plan=plan, budget=Money(amount, currency), wishes=wishes)
