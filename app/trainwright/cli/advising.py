"""From a plan to advice, with what must be traced first."""

from trainwright.advise import Advice, advise, sharding, would_shard
from trainwright.cli.planning import facts
from trainwright.cli.terminal import Terminal
from trainwright.plan.schema import Plan


def advised(plan: Plan, terminal: Terminal, *, top: int) -> Advice:
    """Search the free settings; trace the sharded step where only that may fit.

    Raises:
        UserError: as ``facts`` does.
    """
    found = facts(plan, terminal)
    advice = advise(plan, found, top=top)
    shared = sharding(plan)
    if shared is None or not would_shard(advice):
        return advice
    facts(shared, terminal)
    return advise(plan, found, top=top)
