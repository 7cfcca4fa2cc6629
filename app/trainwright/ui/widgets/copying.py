"""Copy as text, Markdown, CSV or image: a context menu on everything that shows figures."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from trainwright.estimate.time.roofpoints import Roofs
from trainwright.explain import Quantity
from trainwright.plan.report import Report
from trainwright.quoting import csv_row, markdown, sheet_cell, visible
from trainwright.ui import addresses
from trainwright.ui.figures import figure
from trainwright.ui.i18n import say, tr
from trainwright.ui.rooftext import point_name, point_text

Rows = Sequence[Sequence[str]]
"""Cells in the order shown; of figures, (name, value) pairs."""


def offer_copies(
    widget: QWidget, rows: Callable[[], Rows], heads: Callable[[], Sequence[str]] = tuple
) -> Callable[[], QMenu]:
    """Give a widget the menu; it opens by the right button and by the menu key.

    Pairs of a name and a value need no heads. Returns what makes the menu, for a button.
    """

    def copy(form: Callable[[Rows, Sequence[str]], str]) -> None:
        QGuiApplication.clipboard().setText(form(rows(), heads()))

    def copy_image() -> None:
        QGuiApplication.clipboard().setPixmap(widget.grab())

    copies: dict[str, Callable[[], None]] = {
        name: partial(copy, form) for name, form in _FORMS.items()
    }

    def menu() -> QMenu:
        made = copy_menu(widget, copies | {"image": copy_image})
        made.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        return made

    def show(place: QPoint) -> None:
        menu().popup(widget.mapToGlobal(place))

    widget.setContextMenuPolicy(Qt.ContextMenuPolicy.CustomContextMenu)
    widget.customContextMenuRequested.connect(show)
    return menu


def copy_menu(widget: QWidget, copies: Mapping[str, Callable[[], None]]) -> QMenu:
    """Return a menu of the copies; made when it is asked for, it dies when it closes."""
    menu = QMenu(widget)
    for kind, copy in copies.items():
        menu.addAction(tr(f"ui.copy.{kind}"), copy)
    return menu


def as_text(rows: Rows, heads: Sequence[str] = ()) -> str:
    """Return rows as lines that paste into the columns of a spreadsheet."""
    lines = [heads, *rows] if heads else rows
    return "\n".join("\t".join(sheet_cell(visible(cell)) for cell in row) for row in lines)


def as_markdown(rows: Rows, heads: Sequence[str] = ()) -> str:
    """Return rows as a Markdown table, the last column at the right."""
    heads = heads or _pair()
    rule = ["---"] * (len(heads) - 1) + ["---:"]
    lines = (heads, rule, *([markdown(cell) for cell in row] for row in rows))
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def as_csv(rows: Rows, heads: Sequence[str] = ()) -> str:
    """Return rows as CSV with a line of heads."""
    return "".join(csv_row(map(visible, line)) for line in (heads or _pair(), *rows))


def _pair() -> Sequence[str]:
    return tr("ui.copy.what"), tr("ui.copy.value")


_FORMS = {"text": as_text, "markdown": as_markdown, "csv": as_csv}


def memory_rows(report: Report | None) -> Rows:
    """Return the verdict, what the device uses, and the terms of it."""
    if report is None:
        return ()
    memory = report.memory
    totals = (memory.device_used, memory.device_used_p95, memory.device_total, memory.free)
    verdict = tr(f"ui.verdict.{report.verdict.value}")
    return (
        (tr("ui.copy.verdict"), verdict),
        *_named(totals),
        *_named(addresses.segments(report)),
    )


def time_rows(report: Report | None) -> Rows:
    """Return rates, the time of a step, and its stages."""
    if report is None:
        return ()
    time = report.time
    rates = (time.samples_per_second, time.tokens_per_second, time.step_seconds)
    whole = (time.epoch_seconds, time.run_seconds)
    shown = [quantity for quantity in (*rates, *whole) if quantity is not None]
    return _named((*shown, *(stage.seconds for stage in time.stages)))


def operator_rows(roofs: Roofs | None) -> Rows:
    """Return the slowest operators with what they reach."""
    if roofs is None:
        return ()
    return [(point_name(point), point_text(roofs, point)) for point in roofs.points]


def _named(quantities: Sequence[Quantity]) -> Rows:
    return [(say(quantity.name), str(figure(quantity))) for quantity in quantities]
