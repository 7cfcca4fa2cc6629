"""From a plan to advice, with what must be traced first."""

from trainwright.advise import Advice, advise, worth_tracing
from trainwright.cli.planning import facts, traced
from trainwright.cli.terminal import Terminal
from trainwright.plan.schema import Plan


def advised(plan: Plan, terminal: Terminal, *, top: int) -> Advice:
    """Search the free settings; trace the sharded step, or another task's, where those may fit.

    Raises:
        UserError: as ``facts`` does.
    """
    found = facts(plan, terminal)
    advice = advise(plan, found, top=top)
    wanted = tuple(worth_tracing(plan, advice))
    for pending in wanted:
        traced(pending, plan.name, terminal)
    return advise(plan, found, top=top) if wanted else advice
