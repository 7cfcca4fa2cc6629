"""What the core says to a plan, as every screen sees it."""

from dataclasses import dataclass

from trainwright.estimate.time.roofpoints import Roofs
from trainwright.plan.evaluate import Facts, Pending
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.ui.core import Core


@dataclass(frozen=True, slots=True)
class Answer:
    """A report, or what must be traced first."""

    plan: Plan
    facts: Facts | None = None
    report: Report | None = None
    roofs: Roofs | None = None
    pending: Pending | None = None


def answer(core: Core, plan: Plan, facts: Facts | None = None) -> Answer:
    """Return what the core says; runs off the window's thread."""
    found = facts or core.resolve(plan)
    if isinstance(found, Pending):
        return Answer(plan, pending=found)
    report = core.evaluate(plan, found)
    return Answer(plan, found, report, core.operators(plan, found))
