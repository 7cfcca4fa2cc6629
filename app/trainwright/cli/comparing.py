"""Plans side by side: what fits, how fast, and whether the difference can be told at all."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trainwright.cli.answer import Answer, Exit
from trainwright.explain import Quantity
from trainwright.messages import Message
from trainwright.plan.comparing import Answered, figure_rows, order
from trainwright.plan.comparing import Cell as Compared
from trainwright.plan.report import Report, as_json
from trainwright.plan.sentences import verdict

if TYPE_CHECKING:
    from trainwright.cli.screen import Cell, Lines, Screen


def compared(plans: tuple[Answered, ...]) -> Answer:
    """Return the answer to several plans: their reports, or their key figures in columns."""

    def show(screen: "Screen") -> None:
        headings: list[Cell | Lines] = ["", *((one.plan.name, one.gpus) for one in plans)]
        rows = [(row.name, *(_cell(cell, screen) for cell in row.cells))
                for row in figure_rows(plans)]  # fmt: skip
        screen.table([*_sentences(plans), *rows], headings=headings)
        for sentence in order(plans):
            screen.line(sentence)
        screen.line()
        screen.say("cli.estimate.legend", "dim")

    documents = [{"name": one.plan.name, "gpus": one.gpus, **as_json(one.report)} for one in plans]
    good = all(one.report.fits and one.report.runs for one in plans)
    return Answer({"plans": documents}, show, Exit.DONE if good else Exit.NO)


def _sentences(plans: tuple[Answered, ...]) -> Iterator["tuple[Cell, ...]"]:
    yield Message.of("cli.compare.verdict"), *(verdict(one.report) for one in plans)
    yield Message.of("cli.compare.support"), *(_support(one.report) for one in plans)


def _support(report: Report) -> Message | str:
    return report.support.because if report.support is not None else ""


def _cell(cell: Compared, screen: "Screen") -> "Cell":
    if cell is None:
        return "–"
    if not isinstance(cell, Quantity):
        return cell
    interval = screen.interval(cell)
    return f"{screen.text(cell)} ({interval})" if interval else screen.text(cell)
