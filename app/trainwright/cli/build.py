"""``trainwright build``: which computer to buy for a plan's workload and some money."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from trainwright.build import Builds, Candidate, Request, money, search, wished, wishing
from trainwright.build.answer import Done, Part
from trainwright.build.lists import FORMATS
from trainwright.build.money import amount
from trainwright.build.report import as_json, cost_of, run_as_json
from trainwright.build.wished import cloud_rate, energy_rates, wishes_of
from trainwright.catalog.part_records import FormFactor
from trainwright.cli import options, planning
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.parsing import Command, Fraction, option
from trainwright.cli.planning import PlanSource
from trainwright.cli.progress import ProgressLine
from trainwright.cli.terminal import Terminal
from trainwright.explain import Quantity
from trainwright.machine.build import Check, CircuitName
from trainwright.messages import Message, UserError, render
from trainwright.messages.units import number
from trainwright.plan import file
from trainwright.prices import Currency, Price, Total

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen

Rent = Callable[[Candidate], float | None]
"""What an hour of a like computer costs in a cloud; None where nobody says."""
SILENT_S = 2.0
"""Seconds that a search may take without a word; assumed."""


@click.command("build", cls=Command, help="cli.build.summary")
@planning.plan_argument
@option("--budget", metavar="3000USD", help="cli.build.budget")
@option("--top", type=click.IntRange(min=1), default=5, metavar="N", help="cli.option.top")
@option("--used/--no-used", default=None, help="cli.build.used")
@option("--plan", "others", multiple=True, metavar="PLAN", help="cli.build.plan")
@option("--own", "own", multiple=True, metavar="PART", help="cli.build.own")
@option("--only", "only", multiple=True, metavar="PART", help="cli.build.only")
@option("--without", "without", multiple=True, metavar="PART", help="cli.build.without")
@option("--form", type=click.Choice(get_args(FormFactor)), help="cli.build.form")
@option("--quiet/--no-quiet", default=None, help="cli.build.quiet")
@option(
    "--power", "power_w", type=Fraction(min=1, max=10_000_000), metavar="W", help="cli.build.power"
)
@option("--gpus", type=click.IntRange(min=1, max=8), metavar="N", help="cli.build.gpus")
@option("--circuit", type=click.Choice(get_args(CircuitName)), help="cli.build.circuit")
@option("--expired/--no-expired", default=None, help="cli.build.expired")
@option("--kwh", type=Fraction(min=0, max=10), metavar="USD", help="cli.build.kwh")
@option("--household", type=Fraction(min=0, max=100_000), metavar="KWH", help="cli.build.household")
@option("--cloud", type=Fraction(min=0, max=1_000_000_000), metavar="RATE", help="cli.build.cloud")
@option(
    *("--cloud-gpu", "cloud_gpu"),
    type=Fraction(min=0, max=1_000_000_000),
    metavar="RATE",
    help="cli.build.cloud-gpu",
)
@option("--to", "form_of", type=click.Choice(tuple(FORMATS)), help="cli.build.to")
@options.out_file("cli.option.out-plan")
@options.tracing
@options.common
@click.pass_obj
def command(
    terminal: Terminal,
    /,
    source: PlanSource,
    budget: str | None,
    top: int,
    form_of: str | None,
    out: Path | None,
    own: tuple[str, ...],
    only: tuple[str, ...],
    without: tuple[str, ...],
    others: tuple[str, ...],
    kwh: float | None,
    household: float | None,
    cloud: float | None,
    cloud_gpu: float | None,
    **wishes: Any,
) -> Answer:
    """Search, rank, and write the plan on the first computer where that is asked for."""
    plan = planning.load(source)
    amount = budget or plan.limits.budget
    limit = money(amount) if amount else None
    also = wished.others(plan, others)
    request = Request(
        plan, limit, wishes_of(plan, own, only, without, **wishes), top=top, also=also
    )
    check_wishes(request)
    for work in also:
        planning.check_consent(work.plan.model, source.allow_code)
    for wanted in (plan, *(work.plan for work in also)):
        if not wanted.machine.local:
            planning.facts(wanted, terminal)  # so that the model is traced, with progress
    found = found_for(request, terminal)
    said = {"usd_per_kwh": kwh, "household_kwh": household}
    known = energy_rates(plan.limits.rates)
    known |= {name: value for name, value in said.items() if value is not None}

    def rent(one: Candidate) -> float | None:
        """Return what an hour of a like computer costs in a cloud."""
        gpus = one.build.gpu_count
        if cloud is None and cloud_gpu is None:
            return cloud_rate(plan.limits.rates, one.total.currency, gpus)
        return cloud if cloud_gpu is None else cloud_gpu * gpus

    if out is not None and found.builds:
        file.write(found.builds[0].plan, out)
    document = as_json(found)
    for one, data in zip(found.builds, document["builds"], strict=True):
        data["run"] = run_as_json(cost_of(one, **known), rent(one), one.total.expected or 0.0)

    def show(screen: "Screen") -> None:
        best = found.builds[0] if found.builds else found.cheapest
        if form_of is not None and best is not None:
            for line in FORMATS[form_of](best).splitlines():
                screen.whole_line(line)
            return
        show_builds(screen, found, known, rent)

    return Answer(document, show, Exit.DONE if found.builds else Exit.NO)


def found_for(request: Request, terminal: Terminal) -> Builds:
    """Return the answer to a request; a terminal shows what is looked at once it takes longer."""
    title = terminal.say("cli.build.searching", name=request.plan.name)
    with ProgressLine(terminal, title, after=SILENT_S) as line:
        return search(
            request,
            trace=lambda wanted: planning.facts(wanted, terminal),
            watch=lambda share, what: line.update(share, render(what, terminal.language)),
        )


def check_wishes(request: Request) -> None:
    """Refuse wishes that contradict one another before anything is traced or searched.

    Raises:
        UserError: naming both, and the plan's key where it has a part in it.
    """
    try:
        wishing.agree(request)
    except UserError as error:
        if not request.plan.limits.model_fields_set & {"wishes", "power_w"}:
            raise
        raise UserError.of("cli.build.wishes", problem=error.message) from None


def show_builds(screen: "Screen", found: Builds, rates: dict[str, float], rent: Rent) -> None:
    """Print the ranked computers, and the first one in full."""
    if not found.builds:
        show_none(screen, found)
        return
    screen.say("cli.build.best", "bold", considered=found.considered)
    beyond = [] if found.cheapest is None else [_row(screen, "+", found.cheapest)]
    screen.table(
        [_row(screen, str(rank), one) for rank, one in enumerate(found.builds, 1)] + beyond,
        headings=["", *map(Message.of, _HEADINGS)],
        numbers=(0, 2, 3, 4, 5),
    )
    show_candidate(screen, found.builds[0], rates, rent(found.builds[0]))
    _notes(screen, found)


_HEADINGS = (
    "cli.build.cards",
    "cli.build.time",
    "cli.build.price",
    "cli.build.watts",
    "cli.build.unchecked",
)


def _row(screen: "Screen", rank: str, one: Candidate) -> tuple[Any, ...]:
    gpu = one.build.gpus[0]
    time = one.run or one.rate or Message.of("time.not-predicted")
    span = (screen.interval(time),) if isinstance(time, Quantity) else ()
    watts, unknown = number(one.wall_watts), str(len(one.unknown))
    price, bracket, interval = screen.text(amount_of(one.total)).partition(" (")
    cards = used_or_new(one.parts[0], f"{gpu.count} × {one.parts[0].name}")
    if gpu.power_limit_w is not None:
        cards = Message.of("planner.limited", cards=cards, limit=gpu.power_limit_w)
    prices = (price, f"({interval}") if bracket else price
    return rank, cards, (time, *span), prices, watts, unknown


def _done(screen: "Screen", done: Done) -> tuple[Any, ...]:
    """Return the time of a workload's run, or its rate, and how often it is done."""
    figure = done.report.time.run_seconds or done.rate or Message.of("time.not-predicted")
    span = (screen.interval(figure),) if isinstance(figure, Quantity) else ()
    often = f"{done.times:g}" if done.run is not None else Message.of("planner.fits")
    return (figure, *span), often


def amount_of(total: Total) -> Message:
    """Return a total in words: what is expected, its interval, and what has no price."""
    if total.expected is None:
        return Message.of("planner.total.unpriced", missing=len(total.unpriced))
    ending = "-more" if total.unpriced else ""
    return Message.of(
        f"planner.total.{total.currency.lower()}{ending}",
        amount=round(total.expected),
        low=round(total.low or 0),
        high=round(total.high or 0),
        missing=len(total.unpriced),
    )


def used_or_new(part: Part, name: str) -> Message | str:
    """Return a part's name, marked where a used one is to be bought."""
    return Message.of("planner.used", part=name) if part.used else name


def kind_of(price: Price) -> Message:
    """Return how a price is known, and whether it buys a used part."""
    kind = Message.of(f"planner.kind.{price.kind}")
    if not price.second_hand or price.kind == "used":
        return kind
    return Message.of("planner.kind.second-hand", kind=kind)


def show_candidate(
    screen: "Screen", one: Candidate, rates: dict[str, float], cloud: float | None
) -> None:
    """Print one computer: parts, prices, what limits, what more money buys, and every finding."""
    screen.line()
    currency = one.total.currency
    screen.table(
        [
            (
                Message.of(f"catalog.kind-{part.kind}"),
                used_or_new(part, part.name),
                str(part.count),
                _priced(part, currency),
                kind_of(part.price) if part.price else "",
                str(part.price.observed or "") if part.price else "",
            )
            for part in one.parts
        ],
        numbers=(2, 3),
    )
    screen.line(Message.of("cli.build.total", total=amount_of(one.total)), "bold")
    _show_reasons(screen, one)
    if one.others:
        screen.table(
            [(done.plan.name, *_done(screen, done)) for done in one.works],
            headings=["", *map(Message.of, ("cli.build.each", "cli.build.runs"))],
            numbers=(1, 2),
        )
    screen.line(one.bottleneck)
    for said in (one.doubt, one.thrift):
        if said is not None:
            screen.line(said)
    if one.next_step is not None:
        step = one.next_step
        more, price = amount(currency, step.more), amount(currency, step.price)
        id = "cli.build.next" if step.worth else "cli.build.next-poor"
        screen.say(id, more=more, price=price, change=step.change, gain=step.gain)
    cost = cost_of(one, **rates)
    if cost is not None:
        energy = amount(currency, cost.energy, 2 if currency == "USD" else None)
        id = "cli.build.all-runs" if one.others else "cli.build.run"
        screen.say(id, kwh=cost.kwh, energy=energy, watts=one.wall_watts)
        if cloud is not None:
            hours = run_as_json(cost, cloud, one.total.expected or 0.0)["break_even_hours"]
            id = "cli.build.break-even" if hours is not None else "cli.build.cloud-cheaper"
            screen.say(id, seconds=(hours or 0.0) * 3600)
    show_checks(screen, one.checks)


def _show_reasons(screen: "Screen", one: Candidate) -> None:
    """Print why each part is this one, a line for each kind."""
    why = {part.kind: part.why for part in one.parts if part.why is not None}
    if not why:
        return
    screen.line()
    screen.say("cli.build.why", "bold")
    screen.table([(Message.of(f"catalog.kind-{kind}"), said) for kind, said in why.items()])
    if one.build.board is not None:
        screen.say("planner.why.cheapest")


def _priced(part: Part, currency: Currency) -> Message | str:
    """Return what a piece costs, said so where there are several, and how many are owned."""
    if part.owned >= part.count:
        return Message.of("planner.owned")
    if part.price is None:
        return Message.of("planner.unpriced")
    price: Message | str = amount(currency, part.price.expected)
    if part.count - part.owned > 1:
        price = Message.of("planner.each", price=price)
    return Message.of("planner.owned-some", price=price, owned=part.owned) if part.owned else price


def show_checks(screen: "Screen", checks: Iterable[Check]) -> None:
    """Print what rules warn of and what they cannot check."""
    said = [check for check in checks if check.verdict in ("warning", "unknown")]
    if said:
        screen.line()
        screen.say("cli.build.checks", "bold")
        screen.bullets(
            Message.of(
                f"cli.build.check.{check.verdict}",
                rule=check.title,
                because=check.message,
            )
            for check in said
        )


def show_none(screen: "Screen", found: Builds) -> None:
    """Print that the money is not enough, and the cheapest computer that does the work."""
    if found.cheapest is None:
        screen.say("cli.build.nothing", "bold red")
    else:
        total = amount_of(found.cheapest.total)
        screen.say("cli.build.none", "bold red", total=total)
        show_candidate(screen, found.cheapest, {}, None)
    _notes(screen, found)


def _notes(screen: "Screen", found: Builds) -> None:
    if found.notes:
        screen.line()
        screen.say("cli.estimate.notes", "bold")
        screen.bullets(found.notes)
