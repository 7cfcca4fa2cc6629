"""Plans side by side: their key figures in rows, what differs, and which is best."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from trainwright.explain import Quantity
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.plan.sentences import about, bottleneck, settings_of
from trainwright.workload import Workload

Cell = Quantity | Message | str | None
"""What stands in a row for a plan; None where it has no such figure."""
_SAME = 1.005
"""Ratio of speeds below which neither is called faster; assumed: both read alike."""


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


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that plans are compared by, with a cell for each plan."""

    name: Message | str
    cells: tuple[Cell, ...]
    best: int | None = None
    """The plan with the best figure; None where no order makes sense, or all are alike."""
    sure: bool = False
    """Whether the interval of the best figure is clear of all others."""

    @property
    def differs(self) -> bool:
        """Whether not all plans have the same here."""
        return any(_compared(cell) != _compared(self.cells[0]) for cell in self.cells)


def _compared(cell: Cell) -> object:
    return (cell.value, cell.unit) if isinstance(cell, Quantity) else cell


_Figure = Callable[[Report], Quantity | None]
_Length = Callable[[Workload], object]


def _first_token(report: Report) -> Quantity | None:
    return report.time.serving.first_token if report.time.serving is not None else None


def _per_request(report: Report) -> Quantity | None:
    return report.time.serving.per_request if report.time.serving is not None else None


_FIGURES: tuple[tuple[_Figure, int, _Length], ...] = (
    (lambda report: report.memory.device_used_p95, -1, lambda _: None),
    (lambda report: report.memory.device_total, 0, lambda _: None),
    (lambda report: report.time.step_seconds, 0, lambda _: None),
    (lambda report: report.time.samples_per_second, 1, lambda _: None),
    (lambda report: report.time.tokens_per_second, 1, lambda _: None),
    (lambda report: report.time.epoch_seconds, -1, lambda work: work.samples),
    (lambda report: report.time.run_seconds, -1, lambda work: (work.samples, work.epochs)),
    (_first_token, -1, lambda _: None),
    (_per_request, 1, lambda _: None),
)
"""What plans are compared by, whether more (1) or less (-1) is better, and what must be the same
for that. A step has no order: plans may differ in the samples of one."""


def figure_rows(plans: Sequence[Answered]) -> Iterator[Row]:
    """Yield the figures of all plans, and what limits them."""
    for figure, better, length in _FIGURES:
        found = [figure(one.report) for one in plans]
        for name in dict.fromkeys(one.name for one in found if one is not None):
            cells = tuple(one if one and one.name == name else None for one in found)
            yield _ranked(name, cells, better if _same(plans, length) else 0, plans)
    limits = tuple(bottleneck(one.report) for one in plans)
    yield Row(Message.of("cli.estimate.bottleneck"), limits)


def setting_rows(plans: Sequence[Answered]) -> tuple[Row, ...]:
    """Return model, task, length and all settings; those that differ come first."""
    subjects = [dict(zip(_SUBJECTS, _subject(one), strict=True)) for one in plans]
    rows = [Row(Message.of(f"ui.key.{key}"), tuple(each[key] for each in subjects))
            for key in _SUBJECTS]  # fmt: skip
    settings = [{key: (name, value) for key, name, value in settings_of(one.plan, one.report)}
                for one in plans]  # fmt: skip
    for key in dict.fromkeys(key for each in settings for key in each):
        found = [each.get(key) for each in settings]
        name = next(pair[0] for pair in found if pair is not None)
        rows.append(Row(name, tuple(pair[1] if pair is not None else None for pair in found)))
    return tuple(sorted(rows, key=lambda row: not row.differs))


_SUBJECTS = ("model", "task", "sequence_length", "effective_batch", "gpu")


def _subject(one: Answered) -> tuple[Cell, ...]:
    model, task, *_, gpus = about(one.plan, one.facts)
    length, batch = one.facts.inputs.sequence_length, one.plan.workload.effective_batch
    return model, task, str(length) if length else None, str(batch) if batch else None, gpus


def _same(plans: Sequence[Answered], length: _Length) -> bool:
    """Whether all plans do the same work, as long."""
    work = [(one.facts.inputs.sequence_length, length(one.plan.workload)) for one in plans]
    return all(alike(plans[0].plan, one.plan) for one in plans) and len(set(work)) == 1


def _ranked(name: Message, cells: tuple[Cell, ...], better: int, plans: Sequence[Answered]) -> Row:
    """Return a row with its best figure, among plans that fit and run; 0 stands for no order."""
    scored = sorted(
        ((better * cell.value, at, cell) for at, cell in enumerate(cells)
         if isinstance(cell, Quantity) and plans[at].report.fits and plans[at].report.runs),
        key=lambda each: -each[0],
    )  # fmt: skip
    if not better or len(scored) < 2 or scored[0][0] == scored[1][0]:
        return Row(name, cells)
    _, at, best = scored[0]
    return Row(name, cells, at, all(apart(best, other) for _, _, other in scored[1:]))


def apart(one: Quantity, two: Quantity) -> bool:
    """Whether the intervals of two figures do not touch; False where either has none."""
    if one.interval is None or two.interval is None:
        return False
    return two.interval.low > one.interval.high or one.interval.low > two.interval.high


def order(plans: Sequence[Answered]) -> Iterator[Message]:
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
    if one is None or two is None or not alike(first.plan, other.plan):
        return Message.of("cli.compare.apples", **values)
    if one.interval is None or two.interval is None:
        return Message.of("cli.compare.bound", **values)
    ratio = two.value / one.value
    id = "faster" if ratio >= 1 else "slower"
    factor = max(ratio, 1 / ratio)
    if factor < _SAME:
        return Message.of("cli.compare.same", **values)
    return Message.of(
        f"cli.compare.{id}{'' if apart(one, two) else '-perhaps'}", factor=factor, **values
    )


def alike(one: Plan, two: Plan) -> bool:
    """Whether a second of either plan does the same work: one model, both serving or neither."""
    serve = [plan.workload.task == "infer" for plan in (one, two)]
    return one.model == two.model and serve[0] is serve[1]


def _rate(report: Report) -> Quantity | None:
    """Return what a plan gets done in a second: tokens where it has any."""
    return report.time.tokens_per_second or report.time.samples_per_second
