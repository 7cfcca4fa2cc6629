"""``trainwright verify``: runs real steps here; predicted against measured; calibrates."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainwright.advise.advice import Relaxation
from trainwright.advise.nearest import nearest
from trainwright.cli import options, planning
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.parsing import Command, Fraction, option
from trainwright.cli.planning import PlanSource
from trainwright.cli.progress import ProgressLine
from trainwright.cli.terminal import Terminal
from trainwright.estimate import correction
from trainwright.explain import Kind, Quantity, Unit
from trainwright.messages import Message, UserError, render
from trainwright.messages.units import signed
from trainwright.plan import file, verifying
from trainwright.plan.evaluate import look_again
from trainwright.plan.trial import SECONDS, STEPS, Limits, look, prepared
from trainwright.plan.verified import (
    Outcome,
    Row,
    as_json,
    counted,
    loader_notes,
    memory_notes,
    verdict,
)
from trainwright.plan.verified import keep as keep_correction

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen

_SHOWN = 10
"""Operators that are printed."""


@click.command(cls=Command, help="cli.verify.summary")
@click.argument("plan", metavar="PLAN", required=False)
@option("--set", "overrides", multiple=True, metavar="KEY=VALUE", help="cli.option.set")
@option("--allow-code", is_flag=True, help="cli.option.allow-code")
@option(
    "--steps",
    type=click.IntRange(min=1, max=10_000),
    default=STEPS,
    metavar="N",
    help="cli.verify.steps",
)
@option("--device", "on", type=click.Choice(["auto", "cpu", "cuda"]), default="auto",
        metavar="auto|cpu|cuda", help="cli.verify.device")  # fmt: skip
@option("--seconds", type=Fraction(min=1), default=SECONDS, metavar="S",
        help="cli.verify.seconds")  # fmt: skip
@option("--memory", "memory_gib", type=Fraction(min=1), metavar="GIB",
        help="cli.verify.memory")  # fmt: skip
@option("--profile", "folder", metavar="DIR", help="cli.verify.profile")
@option("--keep", is_flag=True, help="cli.verify.keep")
@option("--forget", is_flag=True, help="cli.verify.forget")
@options.tracing
@options.common
@click.pass_obj
def command(
    terminal: Terminal,
    plan: str | None,
    overrides: tuple[str, ...],
    allow_code: bool,
    steps: int,
    on: str,
    seconds: float,
    memory_gib: float | None,
    folder: str | None,
    keep: bool,
    forget: bool,
) -> Answer:
    """Run the step, compare, and keep what the person wants kept."""
    if forget:
        return _forgotten()
    if plan is None:
        raise UserError.of("cli.missing", name="PLAN", command="trainwright verify")
    limits = Limits(seconds, round(memory_gib * 2**30) if memory_gib is not None else None)
    with file.naming(plan), verifying.destination(folder) as goal:
        document = planning.load(PlanSource(plan, overrides, allow_code))
        with ProgressLine(terminal, terminal.say("verify.running", name=document.name)) as line:

            def told(share: float, stage: str) -> None:
                line.update(share, terminal.say(stage))

            here = look(on)
            trial = prepared(document, here, on_progress=told)
            outcome = verifying.run(
                trial,
                steps=steps,
                limits=limits,
                folder=str(goal) if goal else None,
                profile_steps=verifying.PROFILED if goal else None,
                on_progress=told,
            )
        kept = keep and keep_correction(outcome)
        fitting = nearest(outcome)
    return _answer(outcome, kept, fitting, folder)


def _forgotten() -> Answer:
    count = correction.forget()
    look_again()
    said = Message.of("verify.forgotten", number=count, file=str(correction.path()))
    return Answer({"forgotten": count}, lambda screen: screen.line(said))


def _answer(
    outcome: Outcome, kept: bool, fitting: tuple[Relaxation, ...], folder: str | None
) -> Answer:
    said = verdict(outcome)
    document: dict[str, Any] = as_json(outcome) | {
        "verdict": render(said, "en"),
        "notes": [render(note, "en") for note in outcome.trial.notes],
        "kept": kept,
        "nearest": [
            {
                "change": render(one.change, "en"),
                "settings": one.plan.settings.model_dump(mode="json", exclude_none=True),
            }
            for one in fitting
        ],
    }

    def show(screen: "Screen") -> None:
        _show(screen, outcome, said, fitting, kept)
        if outcome.measured is not None and outcome.measured.profile and folder is not None:
            _show_profile(screen, dict(outcome.measured.profile), folder)

    return Answer(document, show, Exit.DONE if outcome.holds else Exit.NO)


def _show(
    screen: "Screen",
    outcome: Outcome,
    said: Message,
    fitting: tuple[Relaxation, ...],
    kept: bool,
) -> None:
    trial = outcome.trial
    where = Message.of(
        f"verify.where.{trial.here.device}", name=trial.here.name or "CPU", torch=trial.here.torch
    )
    screen.line(f"{trial.plan.name} · {screen.text(where)}", "bold")
    screen.line()
    mark, style = ("✓", "bold green") if outcome.holds else ("✗", "bold red")
    screen.line(f"{mark} {screen.text(said)}", style)
    if outcome.rows:
        screen.line()
        names = ("figure", "predicted", "measured", "difference", "interval", "inside")
        screen.table(
            [_cells(screen, row) for row in outcome.rows],
            headings=[Message.of(f"verify.column.{name}") for name in names],
            numbers=(1, 2, 3),
        )
    if outcome.measured is not None:
        _show_counts(screen, outcome)
    if fitting:
        screen.say("verify.nearest", "bold")
        screen.bullets(one.change for one in fitting)
    screen.bullets(trial.notes)
    screen.line()
    if kept:
        screen.say("verify.kept", file=str(correction.path()))
    elif outcome.measured is not None:
        screen.say("verify.keep-offer", "dim")


def _cells(screen: "Screen", row: Row) -> tuple[str | Message | Quantity, ...]:
    absent = row.because or "–"
    inside = {None: "–", True: "✓", False: "✗"}[row.inside]
    return (
        Message.of(f"verify.row.{row.name}"),
        row.predicted if row.predicted is not None else absent,
        row.measured if row.measured is not None else absent,
        signed(row.difference) if row.difference is not None else "",
        screen.interval(row.predicted) if row.predicted is not None else "",
        inside,
    )


def _show_counts(screen: "Screen", outcome: Outcome) -> None:
    measured = outcome.measured
    assert measured is not None
    screen.line(counted(outcome, measured))
    for message in (*memory_notes(measured), *loader_notes(measured)):
        screen.line(message)


def _show_profile(screen: "Screen", profile: dict[str, Any], folder: str) -> None:
    screen.line()
    rows = [
        (row["name"], screen.count(row["calls"]), _seconds(row["seconds"]), _share(row["share"]))
        for row in profile["operators"][:_SHOWN]
    ]
    names = ("operator", "calls", "time", "share")
    screen.table(
        rows,
        headings=[Message.of(f"verify.column.{name}") for name in names],
        title=Message.of("verify.profile", steps=profile["steps"]),
        numbers=(1, 2, 3),
    )
    screen.say("verify.idle", share=profile["idle"])
    screen.say("verify.trace", file=str(Path(folder) / profile["trace"]))
    screen.say("verify.nsys")
    screen.indented(verifying.NSYS)


def _seconds(value: float) -> Quantity:
    return Quantity(Message.of("time.step"), value, Unit.SECONDS, Kind.MEASURED)


def _share(value: float) -> Quantity:
    return Quantity(Message.of("time.of-peak"), value, Unit.RATIO, Kind.MEASURED)
