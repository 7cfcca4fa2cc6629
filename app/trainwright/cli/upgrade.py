"""``trainwright upgrade``: what to change of a plan's machine, or of this computer."""

from typing import TYPE_CHECKING

import click

from trainwright.build import Request, money
from trainwright.build.report import upgrades_as_json
from trainwright.build.upgrades import upgrades
from trainwright.build.wished import wishes_of
from trainwright.cli import options, planning
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.build import amount_of, check_wishes
from trainwright.cli.parsing import Command, option
from trainwright.cli.planning import PlanSource
from trainwright.cli.terminal import Terminal
from trainwright.messages import Message

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen


@click.command("upgrade", cls=Command, help="cli.upgrade.summary")
@planning.plan_argument
@option("--budget", metavar="500000KRW", help="cli.build.budget")
@option("--top", type=click.IntRange(min=1), default=5, metavar="N", help="cli.option.top")
@option("--used/--no-used", default=None, help="cli.build.used")
@options.tracing
@options.common
@click.pass_obj
def command(
    terminal: Terminal, source: PlanSource, budget: str | None, top: int, used: bool | None
) -> Answer:
    """Try changes of the machine, and rank those that pay."""
    plan = planning.load(source)
    amount = budget or plan.limits.budget
    limit = money(amount) if amount else None
    request = Request(plan, limit, wishes_of(plan, used=used), top=top)
    check_wishes(request)
    planning.facts(plan, terminal)
    found = upgrades(request)

    def show(screen: "Screen") -> None:
        if not found.upgrades:
            screen.say("cli.upgrade.nothing" if found.before else "cli.upgrade.cannot", "bold")
            return
        screen.say("cli.upgrade.best", "bold")
        screen.table(
            [
                (
                    str(rank),
                    one.change,
                    amount_of(one.total),
                    Message.of("cli.upgrade.fits")
                    if one.gain is None
                    else Message.of("cli.upgrade.gain", gain=one.gain),
                    one.report.time.run_seconds
                    or one.report.time.samples_per_second
                    or Message.of("time.not-predicted"),
                )
                for rank, one in enumerate(found.upgrades, start=1)
            ],
            headings=["", *map(Message.of, _HEADINGS)],
            numbers=(0, 2, 3, 4),
        )
        said = [c for c in found.upgrades[0].checks if c.verdict in ("warning", "unknown")]
        if said:
            screen.say("cli.build.checks", "bold")
            screen.bullets(
                Message.of(
                    f"cli.build.check.{check.verdict}", rule=check.rule, because=check.message
                )
                for check in said
            )

    # "Do nothing" is an answer where the work runs already; where it does not fit, it is a no.
    done = bool(found.upgrades) or found.before is not None
    return Answer(upgrades_as_json(found), show, Exit.DONE if done else Exit.NO)


_HEADINGS = ("cli.upgrade.buy", "cli.build.price", "cli.upgrade.speed", "cli.build.time")
