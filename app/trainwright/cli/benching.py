"""``trainwright probe --bench``: measure this computer, saying before what that takes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import click

from trainwright.cli.answer import Answer, Exit
from trainwright.cli.parsing import Fraction, NamedPath, option
from trainwright.cli.progress import ProgressLine
from trainwright.cli.terminal import Terminal
from trainwright.messages import Message, UserError, render
from trainwright.probe.benchmark import SECONDS, Choices, Name, Outcome
from trainwright.profile import interpreter

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen
    from trainwright.explain import Quantity

NAMES: tuple[Name, ...] = get_args(Name)
OPTIONS = ("folder", "size", "seconds", "writes", "method", "force")
"""Those that say how to measure."""
MIB = 1 << 20


def bench_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of benchmarks; the command hands them on to ``chosen``."""
    for declared in reversed(
        (
            option("--bench", metavar="disk,cpu,gpu,link", help="cli.option.bench"),
            option("--folder", type=NamedPath(), help="cli.option.bench-folder"),
            option(
                "--size", type=click.IntRange(min=64), metavar="MIB", help="cli.option.bench-size"
            ),
            option(
                "--seconds",
                type=Fraction(min=0, min_open=True),
                default=SECONDS,
                metavar="S",
                help="cli.option.bench-seconds",
            ),
            option("--writes", is_flag=True, help="cli.option.bench-writes"),
            option(
                "--method",
                type=click.Choice(("auto", "own", "fio")),
                default="auto",
                help="cli.option.bench-method",
            ),
            option("--force", is_flag=True, help="cli.option.bench-force"),
        )
    ):
        function = declared(function)
    return function


def without_bench(context: click.Context) -> None:
    """Refuse the options that say how to measure where nothing is to be measured.

    Raises:
        UserError: names the options.
    """
    given = click.core.ParameterSource.COMMANDLINE
    names = [name for name in OPTIONS if context.get_parameter_source(name) is given]
    if names:
        raise UserError.of("bench.without", options=[f"--{name}" for name in names])


def chosen(
    bench: str,
    *,
    folder: Path | None,
    size: int | None,
    seconds: float,
    writes: bool,
    method: Literal["auto", "own", "fio"],
    force: bool,
) -> tuple[tuple[Name, ...], Choices]:
    """Return the benchmarks that a person names, and what they chose.

    Raises:
        UserError: there is no such benchmark, or the drive is to be measured nowhere.
    """
    words = [word.strip() for word in bench.split(",") if word.strip()]
    unknown = [word for word in words if word not in NAMES]
    if not words:
        raise UserError.of("bench.none-named", known=list(NAMES))
    if unknown:
        raise UserError.of("bench.no-such", name=unknown, known=list(NAMES))
    if "disk" in words and folder is None:
        raise UserError.of("bench.which-folder")
    return tuple(name for name in NAMES if name in words), Choices(
        folder=folder,
        size=None if size is None else size * MIB,
        seconds=seconds,
        writes=writes,
        method=method,
        interpreter=interpreter.chosen(),
        force=force,
    )


def answer(terminal: Terminal, names: Sequence[Name], choices: Choices) -> Answer:
    """Run benchmarks one after the other; one that cannot run does not stop the others.

    Raises:
        UserError: none could run, or it was cancelled.
    """
    outcomes: dict[Name, Outcome | Message] = {}
    for name in names:
        try:
            outcomes[name] = _run(terminal, name, choices)
        except UserError as error:
            if len(names) == 1 or error.message.id == "worker.cancelled":
                raise
            outcomes[name] = error.message
    failed = any(isinstance(outcome, Message) for outcome in outcomes.values())
    return Answer(
        {"benchmarks": {name: _document(outcome) for name, outcome in outcomes.items()}},
        lambda screen: _show(screen, outcomes),
        Exit.NO if failed else Exit.DONE,
    )


def _run(terminal: Terminal, name: Name, choices: Choices) -> Outcome:
    from trainwright.probe import benchmarks  # loads the drivers' libraries

    cost = benchmarks.cost(name, choices)
    hindered = benchmarks.hindrance(name, choices)
    if hindered is not None:
        raise UserError.of("bench.or-force", why=hindered)
    takes = benchmarks.said(name, cost, choices)
    terminal.complain(Message.of("bench.takes", name=Message.of(f"bench.name.{name}"), takes=takes))
    title = terminal.say(f"bench.name.{name}")
    with ProgressLine(terminal, title) as line:
        return benchmarks.run(name, choices, lambda share, id: line.update(share, terminal.say(id)))


def _document(outcome: Outcome | Message) -> dict[str, Any]:
    from trainwright.probe import measurements

    if isinstance(outcome, Message):
        return {"error": render(outcome, "en"), "measurements": [], "notes": []}
    return {
        "measurements": measurements.as_json(outcome.measurements),
        "notes": [render(note, "en") for note in outcome.notes],
    }


def _show(screen: "Screen", outcomes: dict[Name, Outcome | Message]) -> None:
    from trainwright.probe import measured

    def row(one: Any) -> tuple["str | Message | Quantity", ...]:
        value = measured.quantity(one)
        marks = ", ".join(screen.text(mark) for mark in measured.flags(one))
        return value.name, value, screen.interval(value), one.on, marks

    for name, outcome in outcomes.items():
        if isinstance(outcome, Message):
            screen.say(f"bench.name.{name}", "bold")
            screen.line(outcome)
            continue
        screen.table(
            [row(one) for one in outcome.measurements],
            headings=[
                Message.of(f"bench.column.{column}")
                for column in ("what", "value", "span", "on", "marks")
            ],
            title=Message.of(f"bench.name.{name}"),
            numbers=(1, 2),
        )
        screen.bullets(outcome.notes)
    found = [one for each in outcomes.values() if not isinstance(each, Message)
             for one in each.measurements]  # fmt: skip
    screen.say("bench.kept" if any(map(measured.counts, found)) else "bench.kept-aside")
