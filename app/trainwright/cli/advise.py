"""``trainwright advise``: the best values of the settings that a plan leaves free."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from trainwright.advise import (
    Advice,
    Choice,
    Relaxation,
    make_it_fit,
    what_becomes,
    with_whole_batch,
)
from trainwright.advise.report import as_json
from trainwright.cli import advising, options, planning
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.estimateview import STYLES, show_support
from trainwright.cli.parsing import Command, option
from trainwright.cli.planning import PlanSource
from trainwright.cli.terminal import Terminal
from trainwright.messages import Message, render
from trainwright.plan import file
from trainwright.plan.schema import Plan
from trainwright.plan.sentences import verdict
from trainwright.workload.meaning import meaningful

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen


@click.command(cls=Command, help="cli.advise.summary")
@planning.plan_argument
@option("--top", type=click.IntRange(min=1), default=5, metavar="N", help="cli.option.top")
@options.out_file("cli.option.out-plan")
@options.tracing
@options.common
@click.pass_obj
def command(terminal: Terminal, source: PlanSource, top: int, out: Path | None) -> Answer:
    """Search, rank, and write the plan with the first choice where that is asked for."""
    plan, rounding = with_whole_batch(planning.load(source))
    advice = advising.advised(plan, terminal, top=top)
    saved = out if advice.choices else None
    if saved is not None:
        file.write(make_it_fit(plan, advice), saved)

    def show(screen: "Screen") -> None:
        for note in advice.first_notes:
            screen.line(note, "yellow")
            screen.line()
        if advice.choices:
            show_choices(screen, plan, advice)
        else:
            show_ways_out(screen, plan, advice)
        notes = (*rounding, *advice.other_notes)
        if notes:
            screen.line()
            screen.say("cli.estimate.notes", "bold")
            screen.bullets(notes)
        if saved is not None:
            screen.line()
            screen.say("cli.advise.saved", path=str(saved))

    document = as_json(advice)
    document["notes"] = [render(note, "en") for note in rounding] + document["notes"]
    good = bool(advice.choices) and advice.choices[0].estimate.runs
    return Answer(document, show, Exit.DONE if good else Exit.NO)


def show_choices(screen: "Screen", plan: Plan, advice: Advice) -> None:
    """Print the ranked choices, and why the first one is as it is."""
    unknown = Message.of("time.not-predicted")
    timed = advice.choices[0].estimate.time.refusal is None
    heading = "cli.advise.best" if timed else "cli.advise.by-memory"
    screen.say(heading, "bold", name=plan.name, considered=advice.considered)
    varying = _varying(plan, advice.choices)
    step = "step" if plan.workload.trains else "round"
    headings = (f"cli.advise.{step}", "cli.advise.rate", "cli.advise.p95")
    screen.table(
        [
            (
                str(rank),
                choice.estimate.time.step_seconds or unknown,
                choice.estimate.time.samples_per_second or unknown,
                choice.estimate.memory.device_used_p95,
                *(screen.value(getattr(choice.settings, name)) for name in varying),
            )
            for rank, choice in enumerate(advice.choices, start=1)
        ],
        headings=["", *map(Message.of, headings), *varying],
        numbers=(0, 1, 2, 3),
    )
    best = advice.choices[0]
    screen.line(verdict(best.estimate), STYLES[best.estimate.verdict])
    show_support(screen, best.estimate)
    if best.effect:
        screen.line(what_becomes(best.effect, trains=plan.workload.trains), "yellow")
    screen.line()
    screen.say("cli.advise.why", "bold")
    for reason in best.reasons:
        screen.line(f"{reason.setting} = {screen.value(reason.value)}", "bold")
        screen.indented(reason.because)
        if reason.flips is not None:
            screen.indented(reason.flips)
        screen.indented(Message.of("cli.advise.source", source=reason.source), "dim")


def show_ways_out(screen: "Screen", plan: Plan, advice: Advice) -> None:
    """Print that nothing fits, and the smallest changes after which something does."""
    screen.say("cli.advise.nothing-fits", "bold red", name=plan.name)
    if advice.short_by_bytes:
        screen.say("cli.advise.short-by", short=advice.short_by_bytes)
    if advice.nothing_fits:
        screen.line()
        screen.say("cli.advise.ways-out", "bold")
    for way in advice.nothing_fits:
        screen.line()
        screen.line(way.change, "bold")
        screen.indented(_cost(way))
        if way.caution is not None:
            screen.indented(way.caution)
        for key, value in way.changes.items():
            screen.indented(f"{key} = {screen.value(value)}")


def _cost(way: Relaxation) -> Message:
    """Return what a way out does to the training, and how fast it is."""
    trains = way.plan.workload.trains
    effect = what_becomes(way.effect, trains=trains)
    speed = way.estimate.time.samples_per_second if way.estimate is not None else None
    rate = Message.of("time.not-predicted") if speed is None else speed.value
    end = ".untimed" if speed is None else "" if trains else ".served"
    return Message.of(f"cli.advise.way{end}", effect=effect, rate=rate)


def _varying(plan: Plan, choices: tuple[Choice, ...]) -> list[str]:
    """Return the settings in which the choices differ; the usual ones where none do."""
    dumps = [meaningful(choice.settings, plan.workload) for choice in choices]
    names = [name for name in dumps[0] if len({dump[name] for dump in dumps}) > 1]
    usual = ("precision", "micro_batch", "accumulation", "checkpointing")
    return names or [name for name in usual if name in dumps[0]]
