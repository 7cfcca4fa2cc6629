"""``trainwright estimate``: memory and time of a plan as it stands."""

from typing import TYPE_CHECKING, Any

import click

from trainwright.cli import options, planning
from trainwright.cli.answer import Answer, Exit
from trainwright.cli.parsing import Command, option
from trainwright.cli.planning import PlanSource
from trainwright.cli.terminal import Terminal
from trainwright.explain import Kind, Quantity, Unit
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts, evaluate, with_limits
from trainwright.plan.report import Report, Verdict, as_json
from trainwright.plan.schema import Plan
from trainwright.plan.serving_rows import serving_rows
from trainwright.workload.defaults import meaningful

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen

STYLES = {
    Verdict.FITS: "bold green",
    Verdict.TIGHT: "bold yellow",
    Verdict.SPILLS: "bold yellow",
    Verdict.NO: "bold red",
    Verdict.CANNOT_CHECK: "bold",
}
MARKS = {
    Verdict.FITS: "✓",
    Verdict.TIGHT: "△",
    Verdict.SPILLS: "△",
    Verdict.NO: "✗",
    Verdict.CANNOT_CHECK: "?",
}


@click.command(cls=Command, help="cli.estimate.summary")
@planning.plan_argument
@option("--explain", is_flag=True, help="cli.option.explain")
@options.tracing
@options.common
@click.pass_obj
def command(terminal: Terminal, source: PlanSource, explain: bool) -> Answer:
    """Evaluate the plan."""
    plan = planning.load(source)
    facts = planning.facts(plan, terminal, one_point=True)
    report = with_limits(plan, facts, evaluate(plan, facts))

    def show(screen: "Screen") -> None:
        show_report(screen, plan, facts, report)
        if explain:
            screen.derivation(report.memory.derivation)
            screen.derivation(report.memory.device_used_p95)
            screen.derivation(report.time.step_seconds)

    document: dict[str, Any] = as_json(report)
    return Answer(document, show, Exit.DONE if report.fits else Exit.NO)


def show_report(screen: "Screen", plan: Plan, facts: Facts, report: Report) -> None:
    """Print a report: verdict, settings, memory, time, notes."""
    memory, time = report.memory, report.time
    gpus = " + ".join(f"{gpu.count} × {gpu.record.name}" for gpu in facts.machine.gpus)
    screen.line(f"{plan.name} · {gpus}", "bold")
    screen.line()
    screen.line(f"{MARKS[report.verdict]} {screen.text(verdict(report))}", STYLES[report.verdict])
    screen.line()
    screen.table(
        [(term.name, term, _share(term, memory.allocated_peak)) for term in memory.terms]
        + [(total.name, total, "") for total in _totals(report)],
        title=Message.of("cli.estimate.memory"),
        numbers=(1, 2),
    )
    figures = (time.step_seconds, time.samples_per_second, time.tokens_per_second, time.run_seconds)
    screen.table(
        [(each.name, each, screen.interval(each)) for each in figures if each is not None]
        + [
            (Message.of("cli.estimate.bottleneck"), _bottleneck(report), ""),
        ],
        title=Message.of("cli.estimate.time"),
    )
    if report.serving is not None:
        rows = serving_rows(report.serving, time.serving)
        screen.table(rows, title=Message.of("cli.estimate.serving"))
    screen.table(
        [(name, screen.value(value)) for name, value in _settings(plan, report)],
        title=Message.of("cli.estimate.settings"),
    )
    if report.notes:
        screen.say("cli.estimate.notes", "bold")
        screen.bullets(report.notes)
    screen.line()
    screen.say("cli.estimate.legend", "dim")


def verdict(report: Report) -> Message:
    """Return the verdict as a sentence with its figures."""
    memory = report.memory
    if memory.host is not None and memory.host.value > (report.host_total or float("inf")):
        return Message.of("cli.verdict.no-host", need=memory.host.value, has=report.host_total)
    left = memory.device_total.value - memory.device_used_p95.value
    over = "-over" if report.verdict is Verdict.TIGHT and left < 0 else ""
    return Message.of(
        f"cli.verdict.{report.verdict.value}{over}",
        used=memory.device_used.value,
        p95=memory.device_used_p95.value,
        total=memory.device_total.value,
        left=abs(left),
    )


def _totals(report: Report) -> tuple[Quantity, ...]:
    memory = report.memory
    return (
        memory.allocated_peak,
        memory.reserved_peak,
        memory.device_used,
        memory.device_used_p95,
        memory.device_total,
        *([memory.host] if memory.host is not None else []),
    )


def _share(part: Quantity, whole: Quantity) -> Quantity | str:
    if not whole.value:
        return ""
    return Quantity(part.name, part.value / whole.value, Unit.RATIO, Kind.YOURS)


def _bottleneck(report: Report) -> Message:
    return Message.of(f"cli.bottleneck.{report.time.bottleneck}")


def _settings(plan: Plan, report: Report) -> list[tuple[str, object]]:
    settings = meaningful(report.settings, plan.workload)
    return [(name, value) for name, value in settings.items() if value is not None]
