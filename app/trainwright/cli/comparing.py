"""Plans side by side: what fits, how fast, and whether the difference can be told at all."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trainwright.cli.answer import Answer, Exit
from trainwright.explain import Quantity
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts
from trainwright.plan.report import Report, as_json
from trainwright.plan.schema import Plan

if TYPE_CHECKING:
    from trainwright.cli.screen import Cell, Lines, Screen


@dataclass(frozen=True, slots=True)
class Answered:
    """A plan and its report."""

    plan: Plan
    facts: Facts
    report: Report

    @property
    def gpus(self) -> str:
        """The GPUs, as the heading of a column."""
        return self.facts.machine.named


def compared(plans: tuple[Answered, ...], verdict: Callable[[Report], Message]) -> Answer:
    """Return the answer to several plans: their reports, or their key figures in columns."""

    def show(screen: "Screen") -> None:
        headings: list[Cell | Lines] = ["", *((one.plan.name, one.gpus) for one in plans)]
        screen.table(_rows(plans, screen, verdict), headings=headings)
        for sentence in _order(plans):
            screen.line(sentence)
        screen.line()
        screen.say("cli.estimate.legend", "dim")

    documents = [{"name": one.plan.name, "gpus": one.gpus, **as_json(one.report)} for one in plans]
    good = all(one.report.fits and one.report.runs for one in plans)
    return Answer({"plans": documents}, show, Exit.DONE if good else Exit.NO)


_Figure = Callable[[Report], Quantity | None]

_FIGURES: tuple[_Figure, ...] = (
    lambda report: report.memory.device_used_p95,
    lambda report: report.memory.device_total,
    lambda report: report.time.step_seconds,
    lambda report: report.time.samples_per_second,
    lambda report: report.time.tokens_per_second,
    lambda report: report.time.epoch_seconds,
    lambda report: report.time.run_seconds,
    lambda report: report.time.serving.first_token if report.time.serving else None,
    lambda report: report.time.serving.per_request if report.time.serving else None,
)
"""What both are compared by, in the order of the table."""


def _rows(
    plans: tuple[Answered, ...], screen: "Screen", verdict: Callable[[Report], Message]
) -> Iterator[tuple[Message | str, ...]]:
    yield Message.of("cli.compare.verdict"), *(verdict(one.report) for one in plans)
    yield Message.of("cli.compare.support"), *(_support(one.report) for one in plans)
    for figure in _FIGURES:
        found = [figure(one.report) for one in plans]
        for name in dict.fromkeys(one.name for one in found if one is not None):
            yield name, *(_cell(one if one and one.name == name else None, screen) for one in found)
    yield Message.of("cli.estimate.bottleneck"), *(_bottleneck(one.report) for one in plans)


def _bottleneck(report: Report) -> Message:
    name = report.time.bottleneck
    return Message.of(f"cli.bottleneck.{name}" if name is not None else "time.not-predicted")


def _support(report: Report) -> Message | str:
    return report.support.because if report.support is not None else ""


def _cell(figure: Quantity | None, screen: "Screen") -> str:
    if figure is None:
        return "–"
    interval = screen.interval(figure)
    return f"{screen.text(figure)} ({interval})" if interval else screen.text(figure)


def _order(plans: tuple[Answered, ...]) -> Iterator[Message]:
    """Yield how each plan stands to the first, where their rates can be compared."""
    first = plans[0]
    for other in plans[1:]:
        yield _against(first, other)


def _against(first: Answered, other: Answered) -> Message:
    one, two = _rate(first.report), _rate(other.report)
    values = {"first": first.plan.name, "other": other.plan.name}
    for side in (first, other):
        if side.report.time.refusal is not None:
            return Message.of("cli.compare.unpredicted", plan=side.plan.name)
    if one is None or two is None or not _alike(first.plan, other.plan):
        return Message.of("cli.compare.apples", **values)
    if one.interval is None or two.interval is None:
        return Message.of("cli.compare.bound", **values)
    ratio = two.value / one.value
    apart = two.interval.low > one.interval.high or one.interval.low > two.interval.high
    id = "faster" if ratio >= 1 else "slower"
    factor = max(ratio, 1 / ratio)
    return Message.of(f"cli.compare.{id}{'' if apart else '-perhaps'}", factor=factor, **values)


def _alike(one: Plan, two: Plan) -> bool:
    """Whether a second of either plan does the same work: one model, both serving or neither."""
    serve = [plan.workload.task == "infer" for plan in (one, two)]
    return one.model == two.model and serve[0] is serve[1]


def _rate(report: Report) -> Quantity | None:
    """Return what a plan gets done in a second: tokens where it has any."""
    return report.time.tokens_per_second or report.time.samples_per_second
