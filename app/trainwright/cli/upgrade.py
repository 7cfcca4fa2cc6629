"""``trainwright upgrade``: what to change of a plan's machine, or of this computer."""

from typing import TYPE_CHECKING

import click

from trainwright.build import Request, money
from trainwright.build.money import amount
from trainwright.build.owning import owned
from trainwright.build.report import upgrades_as_json
from trainwright.build.upgrades import Upgrade, Upgrades, added, upgrades
from trainwright.build.wished import wishes_of
from trainwright.cli import options, planning
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.build import amount_of, check_wishes, show_checks
from trainwright.cli.parsing import Command, option
from trainwright.cli.planning import PlanSource
from trainwright.cli.terminal import Terminal
from trainwright.messages import Message

if TYPE_CHECKING:
    from trainwright.cli.screen import Cell, Screen


@click.command("upgrade", cls=Command, help="cli.upgrade.summary")
@planning.plan_argument
@option("--budget", metavar="500000KRW", help="cli.build.budget")
@option("--top", type=click.IntRange(min=1), default=5, metavar="N", help="cli.option.top")
@option("--used/--no-used", default=None, help="cli.build.used")
@option("--add", "parts", multiple=True, metavar="PART", help="cli.upgrade.add")
@option("--sell", is_flag=True, help="cli.upgrade.sell")
@options.tracing
@options.common
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    source: PlanSource,
    budget: str | None,
    top: int,
    used: bool | None,
    sell: bool,
    parts: tuple[str, ...],
) -> Answer:
    """Try changes of the machine, and rank those that pay."""
    plan = planning.load(source)
    amount = budget or plan.limits.budget
    limit = money(amount) if amount else None
    request = Request(plan, limit, wishes_of(plan, used=used), top=top)
    check_wishes(request)
    wanted = owned(parts)
    planning.facts(plan, terminal)
    found = added(request, wanted, sell=sell) if wanted else upgrades(request, sell=sell)

    def show(screen: "Screen") -> None:
        show_upgrades(screen, found, asked=bool(wanted))

    # "Do nothing" is an answer where the work runs already; where it does not fit, it is a no.
    done = bool(found.upgrades) or (found.before is not None and not wanted)
    return Answer(upgrades_as_json(found), show, Exit.DONE if done else Exit.NO)


_HEADINGS = ("cli.upgrade.buy", "cli.build.price", "cli.upgrade.speed", "cli.build.time")


def show_upgrades(screen: "Screen", found: Upgrades, *, asked: bool) -> None:
    """Print the changes, the first one in full, and why there are no others.

    ``asked``: they are what a person asked about, and no others were looked at.
    """
    if found.upgrades:
        screen.say("cli.upgrade.added" if asked else "cli.upgrade.best", "bold")
        screen.table(
            [_row(rank, one) for rank, one in enumerate(found.upgrades, start=1)],
            headings=["", *map(Message.of, _HEADINGS)],
            numbers=(0, 2, 3, 4),
        )
        _show_first(screen, found.upgrades[0])
    elif asked:
        screen.say("cli.upgrade.not-added", "bold")
    else:
        screen.say("cli.upgrade.nothing" if found.before else "cli.upgrade.cannot", "bold")
    if found.declined:
        screen.line()
        if not asked:
            screen.say("cli.upgrade.declined", "bold")
        screen.bullets(one.message for one in found.declined)
    if found.notes:
        screen.line()
        screen.say("cli.estimate.notes", "bold")
        screen.bullets(found.notes)


def _row(rank: int, one: Upgrade) -> "tuple[Cell, ...]":
    time = one.report.time
    fits = Message.of("cli.upgrade.fits")
    gain = fits if one.gain is None else Message.of("cli.upgrade.gain", gain=one.gain)
    rate = time.tokens_per_second if one.report.serving else time.samples_per_second
    how_long = time.run_seconds or rate or Message.of("time.not-predicted")
    return str(rank), one.change, amount_of(one.total), gain, how_long


def _show_first(screen: "Screen", one: Upgrade) -> None:
    for said in (one.idle, one.replaced):
        if said is not None:
            screen.line(said)
    if one.along:
        kinds = [Message.of(f"catalog.kind-{kind}") for kind in one.along]
        screen.say("cli.upgrade.along", kinds=kinds)
    if one.freed and one.resale is None:
        names = [f"{part.count} × {part.name}" for part in one.freed]
        screen.say("cli.upgrade.freed", parts=names)
    if one.resale is not None and one.resale.low:
        resale = amount(one.resale.currency, one.resale.low)
        screen.say("cli.upgrade.resale", amount=resale)
    show_checks(screen, one.checks)
