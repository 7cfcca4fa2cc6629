"""A report as people read it: verdict, memory, time, checks, notes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trainwright.advise.whatif import NEXT_TO_NOTHING, WhatIf
from trainwright.estimate.input.inputs import Pipeline
from trainwright.estimate.time.roofpoints import RoofPoint, Roofs
from trainwright.explain import Kind, Quantity, Unit
from trainwright.messages import Message
from trainwright.messages.units import gib, percent
from trainwright.plan.evaluate import Facts
from trainwright.plan.judging import OPEN
from trainwright.plan.report import Report, Verdict
from trainwright.plan.schema import Plan
from trainwright.plan.sentences import (
    bottleneck,
    memory_totals,
    pipeline_rows,
    scaling_rows,
    times,
    unpredicted_notes,
    verdict,
)
from trainwright.plan.serving_rows import serving_rows
from trainwright.workload.meaning import meaningful

if TYPE_CHECKING:
    from trainwright.cli.screen import Screen

STYLES = {
    Verdict.FITS: "bold green",
    Verdict.TIGHT: "bold yellow",
    Verdict.QUEUES: "bold yellow",
    Verdict.SPILLS: "bold yellow",
    Verdict.NO: "bold red",
    Verdict.CANNOT_CHECK: "bold",
}
MARKS = {
    Verdict.FITS: "✓",
    Verdict.TIGHT: "△",
    Verdict.QUEUES: "△",
    Verdict.SPILLS: "△",
    Verdict.NO: "✗",
    Verdict.CANNOT_CHECK: "?",
}

_SLOWEST = 15
"""Operators that are printed."""


def show_support(screen: "Screen", report: Report) -> None:
    """Print that PyTorch or the engine does not run there, where that is so."""
    if not report.runs and report.support is not None:
        screen.line(f"✗ {screen.text(report.support.because)}", STYLES[Verdict.NO])


def show_report(screen: "Screen", plan: Plan, facts: Facts, report: Report) -> None:
    """Print a report: verdict, settings, memory, time, notes."""
    memory, time = report.memory, report.time
    gpus = facts.machine.named
    screen.line(f"{plan.name} · {gpus}", "bold")
    screen.line()
    screen.line(f"{MARKS[report.verdict]} {screen.text(verdict(report))}", STYLES[report.verdict])
    show_support(screen, report)
    for note in (note for note in report.notes if note.id == OPEN):
        screen.line(note)
    screen.line()
    screen.table(
        [(term.name, term, _share(term, memory.allocated_peak)) for term in memory.terms]
        + [(total.name, total, "") for total in memory_totals(report)],
        title=Message.of("cli.estimate.memory"),
        numbers=(1, 2),
    )
    if report.stages:
        stages = [(stage.name, stage) for stage in report.stages]
        screen.table(stages, title=Message.of("cli.estimate.stages"), numbers=(1,))
    if time.refusal is not None:
        screen.say("cli.estimate.time", "bold")
        screen.indented(time.refusal)
        screen.line()
    else:
        screen.table(
            [(each.name, each, screen.interval(each)) for each in times(report)]
            + [
                (Message.of("cli.estimate.bottleneck"), bottleneck(report), ""),
            ],
            title=Message.of(
                f"cli.estimate.time{'-unfit' if report.verdict is Verdict.NO else ''}"
            ),
        )
    if facts.machine.gpu_count > 1 and time.scaling:
        _show_scaling(screen, report)
    if time.pipeline is not None:
        _show_pipeline(screen, time.pipeline)
    if report.serving is not None:
        rows = serving_rows(report.serving, time.serving)
        screen.table(rows, title=Message.of("cli.estimate.serving"))
    screen.table(
        [(name, screen.value(value)) for name, value in _settings(plan, report)],
        title=Message.of("cli.estimate.settings"),
    )
    _show_checks(screen, report)
    if notes := [note for note in unpredicted_notes(report) if note.id != OPEN]:
        screen.say("cli.estimate.notes", "bold")
        screen.bullets(notes)
    screen.line()
    screen.say("cli.estimate.legend", "dim")


def show_derivations(screen: "Screen", report: Report) -> None:
    """Print where the figures come from."""
    screen.derivation(report.memory.derivation)
    screen.derivation(report.memory.device_used_p95)
    screen.derivation(report.memory.device_total)
    if report.time.step_seconds is not None:
        screen.derivation(report.time.step_seconds)
    for _, rate in report.time.pipeline.stages if report.time.pipeline else ():
        if rate is not None:
            screen.derivation(rate)
    for point in report.time.scaling[-1:]:
        screen.derivation(point.efficiency)


CHECK_MARKS = {"error": "✗", "unknown": "?", "warning": "△"}
"""Of the verdicts that are printed; notes and what is right are counted."""


def _show_checks(screen: "Screen", report: Report) -> None:
    """Print what of the machine's parts does not go together, cannot be checked, or is tight."""
    if not report.checks:
        return
    screen.say("cli.estimate.checks", "bold")
    for check in report.checks:
        if check.verdict not in CHECK_MARKS:
            continue
        parts = [check.message, *([check.remedy] if check.remedy is not None else [])]
        mark, title = CHECK_MARKS[check.verdict], screen.text(check.title)
        screen.line(f"  {mark} {title} ({check.rule})")
        screen.indented(" ".join(screen.text(part) for part in parts))
    right, notes = (sum(c.verdict == v for c in report.checks) for v in ("ok", "note"))
    screen.indented(Message.of("cli.estimate.checks-rest", right=right, notes=notes))
    screen.line()


def show_operators(screen: "Screen", roofs: Roofs) -> None:
    """Print the slowest operators with what they reach of the GPU's peak and bandwidth."""
    headings = ("operator", "stage", "share", "time", "runs", "of-peak", "of-bandwidth", "bound")
    screen.line()
    screen.table(
        [
            (
                point.short_name,
                Message.of(f"time.stage.{point.stage}"),
                _ratio(point.seconds / roofs.seconds),
                Quantity(Message.of("time.step"), point.seconds, Unit.SECONDS, Kind.ESTIMATED),
                screen.count(round(point.runs)),
                _of_peak(roofs, point),
                _ratio(point.traffic / roofs.bandwidth.value),
                Message.of(f"cli.bound.{point.bound}"),
            )
            for point in roofs.points[:_SLOWEST]
        ],
        headings=[Message.of(f"cli.ops.{name}") for name in headings],
        title=Message.of("cli.ops.title"),
        numbers=(2, 3, 4, 5, 6),
    )


def _of_peak(roofs: Roofs, point: RoofPoint) -> Quantity | str:
    peak = roofs.peaks.get(point.dtype)
    return _ratio(point.rate / peak.fact.value) if point.flops and peak is not None else ""


def _ratio(value: float) -> Quantity:
    return Quantity(Message.of("time.of-peak"), value, Unit.RATIO, Kind.YOURS)


def show_whatifs(screen: "Screen", found: Sequence[WhatIf]) -> None:
    """Print what other settings and parts would do."""
    if not found:
        screen.say("cli.what-if.nothing")
        return
    headings = ("change", "speed", "memory", "because")
    screen.line()
    screen.table(
        [(one.change, *_effect(one), one.because) for one in found],
        headings=[Message.of(f"cli.what-if.{name}") for name in headings],
        title=Message.of("cli.what-if.title"),
        numbers=(1, 2),
    )


def _effect(one: WhatIf) -> tuple[str | Message, str]:
    """Return the change of the speed, or why there is none, and that of the device use."""
    if one.memory_bytes is None:
        return Message.of("cli.what-if.untraced"), ""
    sign = "+" if one.memory_bytes >= 0 else "−"
    memory = (
        f"{sign}{gib(abs(one.memory_bytes))}" if abs(one.memory_bytes) >= NEXT_TO_NOTHING else ""
    )
    if not one.fits:
        return Message.of("cli.what-if.no"), memory
    if one.gain is None:
        return Message.of("time.not-predicted"), memory
    if one.same:
        return "±0 %", memory
    return f"{'+' if one.gain > 0 else '−'}{percent(abs(one.gain))}", memory


def _show_scaling(screen: "Screen", report: Report) -> None:
    """Print the rate of 1 to all GPUs, and how much of their number it is."""
    names = ("gpus", "batch", "rate", "efficiency")
    screen.table(
        [(*row, screen.interval(row[-1]), note) for row, note in scaling_rows(report)],
        headings=[*(Message.of(f"cli.scaling.{name}") for name in names), "", ""],
        title=Message.of("cli.estimate.scaling"),
        numbers=(0, 1, 2, 3),
    )


def _show_pipeline(screen: "Screen", pipeline: Pipeline) -> None:
    """Print what each stage of the input passes on, and what would help."""
    screen.table(
        [(name, value, screen.interval(value) if isinstance(value, Quantity) else "")
         for name, value in pipeline_rows(pipeline)],
        title=Message.of("cli.estimate.input"),
    )  # fmt: skip
    if pipeline.remedies:
        screen.say("cli.estimate.remedies", "bold")
        screen.bullets(message for _, message in pipeline.remedies)
        screen.line()


def _share(part: Quantity, whole: Quantity) -> Quantity | str:
    if not whole.value:
        return ""
    return Quantity(part.name, part.value / whole.value, Unit.RATIO, Kind.YOURS)


def _settings(plan: Plan, report: Report) -> list[tuple[str, object]]:
    settings = meaningful(report.settings, plan.workload)
    return [(name, value) for name, value in settings.items() if value is not None]
