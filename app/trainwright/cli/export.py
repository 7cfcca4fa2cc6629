"""``trainwright export``: files that run a plan."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from trainwright.cli import advising, options, planning
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.parsing import Command, NamedPath, option
from trainwright.cli.planning import PlanSource
from trainwright.cli.terminal import Terminal
from trainwright.export import Reasons, files, target, write
from trainwright.export.serving import refusal
from trainwright.messages import Message, render
from trainwright.plan import sentences
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.report import Verdict
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen


@click.command(cls=Command, help="cli.export.summary")
@planning.plan_argument
@option("--to", "name", required=True, metavar="TARGET", help="cli.option.to")
@option(
    "-o",
    "--out",
    required=True,
    type=NamedPath(),
    metavar="DIR",
    help="cli.option.out-folder",
)
@option("--advised", is_flag=True, help="cli.option.advised")
@option("--overwrite", is_flag=True, help="cli.option.overwrite")
@options.tracing
@options.common
@click.pass_obj
def command(
    terminal: Terminal, source: PlanSource, name: str, out: Path, advised: bool, overwrite: bool
) -> Answer:
    """Write the files; only ``--advised`` may have to trace first."""
    chosen = target(name)
    plan = planning.load(source)
    found = _advised(plan, terminal) if advised else _as_asked(plan)
    if found is None:
        return Answer({"target": name, "folder": None, "files": []}, _say_nothing_fits, Exit.NO)
    settings, reasons, warning = found
    texts = files(name, plan, settings, reasons, terminal.language)
    written = [path.relative_to(out) for path in write(texts, out, overwrite=overwrite)]
    lost = chosen.not_expressible(plan, settings)

    def show(screen: "Screen") -> None:
        screen.say("cli.export.written", path=str(out), count=len(written))
        screen.bullets(str(path) for path in written)
        if warning is not None:
            screen.line()
            screen.line(warning, "bold yellow")
        if lost:
            screen.line()
            screen.say("cli.export.lost", "bold")
            screen.bullets(lost)

    document: dict[str, Any] = {
        "target": name,
        "folder": str(out),
        "files": [path.as_posix() for path in written],
        "made_for": dict(chosen.made_for),
        "settings": settings.model_dump(mode="json"),
        "warning": render(warning, "en") if warning is not None else None,
        "not_expressible": [render(message, "en") for message in lost],
    }
    return Answer(document, show)


Chosen = tuple[FullSettings, Reasons, Message | None]
"""Settings, why they are so, and what to know before the run is started."""


def _as_asked(plan: Plan) -> Chosen:
    """Return the plan's own settings, with what keeps them from running where that is known."""
    found = resolve(plan)
    if not isinstance(found, Facts):  # a trace must come first
        return found.settings, {}, None
    report = evaluate(plan, found)
    reasons = refusal(report)
    warning = sentences.verdict(report) if report.verdict is Verdict.NO else None
    return found.settings, reasons, next(iter(reasons.values()), warning)


def _advised(plan: Plan, terminal: Terminal) -> Chosen | None:
    """Return the first choice of the search with its reasons; None where nothing fits."""
    advice = advising.advised(plan, terminal, top=1)
    if not advice.choices:
        return None
    (best,) = advice.choices
    reasons = {reason.setting.rpartition(".")[2]: reason.because for reason in best.reasons}
    return best.settings, reasons, None


def _say_nothing_fits(screen: "Screen") -> None:
    screen.line(Message.of("cli.export.nothing-fits"), "bold red")
