"""From a plan to advice, with what must be traced first."""

from trainwright.advise import Advice, advise_and_trace
from trainwright.cli.planning import facts, traced
from trainwright.cli.terminal import Terminal
from trainwright.plan.schema import Plan


def advised(plan: Plan, terminal: Terminal, *, top: int) -> Advice:
    """Search the free settings; trace other steps where those may fit.

    Raises:
        UserError: as ``facts`` does.
    """
    found = facts(plan, terminal)
    return advise_and_trace(
        plan, found, lambda pending: traced(pending, plan.name, terminal), top=top
    )
