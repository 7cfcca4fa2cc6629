"""Compare: the open plan and up to three others in one table."""

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import QPoint
from PySide6.QtGui import QResizeEvent, QShowEvent
from PySide6.QtWidgets import QHBoxLayout, QMenu, QVBoxLayout, QWidget

from trainwright.explain import Quantity, Unit
from trainwright.messages import Message, UserError
from trainwright.plan import comparing, file
from trainwright.plan.comparing import Answered, Row
from trainwright.plan.schema import Plan
from trainwright.ui import asking, tokens
from trainwright.ui.answer import answer
from trainwright.ui.core import Core
from trainwright.ui.figures import Figure, bare, figure, span
from trainwright.ui.i18n import say, tr
from trainwright.ui.names import plan_name
from trainwright.ui.preferences import Preferences
from trainwright.ui.session import Session
from trainwright.ui.tasks import Latest
from trainwright.ui.widgets.base import Label, Scroll, Surface, clear
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.table import PAD, Cell, Heading, RowTable

_AROUND, _LOWEST = 230, 300
"""Height of what stands above and below the table, and the least of the table."""
MOST = 4
"""Plans in the table; more columns are narrower than their figures in a small window."""


class CompareScreen(Scroll):
    """Shows answers that hold for the plans as they stand, and none before."""

    def __init__(self, session: Session, preferences: Preferences) -> None:
        body = QWidget()
        super().__init__(body)
        self._session, self._preferences = session, preferences
        self._others: tuple[Answered, ...] = ()
        self._asked: tuple[Plan, ...] = ()
        self.table: RowTable | None = None
        self._asking = Latest(self)
        self._asking.done.connect(self._answered)
        self._asking.failed.connect(session.noticed.emit)
        column = QVBoxLayout(body)
        column.setContentsMargins(tokens.L, tokens.L, tokens.L, tokens.L)
        column.setSpacing(tokens.M)
        column.addLayout(self._head())
        self._added = QHBoxLayout()
        column.addLayout(self._added)
        self._card = Surface(padding=(tokens.S, tokens.S, tokens.S, tokens.S))
        column.addWidget(self._card)
        self._says = Label("", colour="text2", wrap=True)
        column.addWidget(self._says)
        self._legend = Label(Message.of("ui.compare.legend"), px=tokens.LABEL, colour="text3",
                             wrap=True)  # fmt: skip
        column.addWidget(self._legend)
        column.addStretch(1)
        session.reported.connect(self.refresh)
        session.edited.connect(self.refresh)

    def _head(self) -> QHBoxLayout:
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        line.addWidget(Label(Message.of("ui.place.compare"), px=tokens.FIGURE, weight=600), 1)
        self.add = Button(Message.of("ui.compare.add"), "secondary", "plus")
        self.add.clicked.connect(lambda: self._pop_up(self._sources(), self.add))
        self.keep = Button(Message.of("ui.compare.keep"), "secondary", "push-pin",
                           tip=Message.of("ui.compare.keep.tip"))  # fmt: skip
        self.keep.clicked.connect(self._keep_open_plan)
        self.copy = Button(Message.of("ui.compare.copy"), "secondary", "copy")
        self.copy.clicked.connect(self._offer_copies)
        for button in (self.keep, self.add, self.copy):
            line.addWidget(button)
        return line

    def _offer_copies(self) -> None:
        if self.table is not None:
            self._pop_up(self.table.copies(), self.copy)

    def _pop_up(self, menu: QMenu, below: QWidget) -> None:
        menu.popup(below.mapToGlobal(QPoint(0, below.height())))

    def _sources(self) -> QMenu:
        """Return the menu of plans to add: files opened lately, examples, any file."""
        menu = QMenu(self)
        recent = [path for path in self._preferences.recent if path.name.endswith(file.SUFFIX)]
        for title, paths in (("ui.start.recent", recent),
                             ("ui.start.examples", self._session.core.examples())):  # fmt: skip
            if paths:
                menu.addSection(tr(title))
            for path in paths:
                name = path.name.removesuffix(file.SUFFIX).replace("&", "&&")
                menu.addAction(name, partial(self.add_file, path))
        menu.addSeparator()
        menu.addAction(tr("ui.compare.file"), self._ask_for_file)
        return menu

    def _ask_for_file(self) -> None:
        path = asking.plan_to_compare(self)
        if path is not None:
            self.add_file(path)

    def add_file(self, path: Path) -> None:
        """Add a plan file to the table."""
        try:
            self._add(_named(file.read(path)))
        except UserError as error:
            self._session.noticed.emit(error.message)

    def _keep_open_plan(self) -> None:
        plan = self._session.plan
        if plan is not None:
            name = tr("ui.compare.kept", name=plan_name(plan), number=len(self._asked) + 1)
            self._add(plan.model_copy(update={"name": name}))

    def _add(self, plan: Plan) -> None:
        self._session.compared = (*self._session.compared, plan)[: MOST - 1]
        self.refresh()

    def remove(self, place: int) -> None:
        """Take a plan that was added out of the table."""
        kept = list(self._session.compared)
        del kept[place]
        self._session.compared = tuple(kept)
        self.refresh()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.refresh()

    def refresh(self) -> None:
        """Ask for what is not answered yet, and show the rest."""
        if not self.isVisible():
            return
        wanted = self._session.compared
        if wanted != self._asked:
            self._asked, self._others = wanted, ()
            if wanted:
                core = self._session.core
                self._asking.submit(lambda: [_answered(core, plan) for plan in wanted])
            else:
                self._asking.forget()
        self._show_added()
        self._show_table()

    def _answered(self, found: list[Answered | Message]) -> None:
        self._others = tuple(one for one in found if isinstance(one, Answered))
        for why in found:
            if isinstance(why, Message):
                self._session.noticed.emit(why)
        self._show_table()

    def _show_added(self) -> None:
        clear(self._added)
        for place, plan in enumerate(self._asked):
            button = Button(plan_name(plan), "ghost", "x", small=True,
                            tip=Message.of("ui.compare.remove", name=plan_name(plan)))  # fmt: skip
            button.clicked.connect(partial(self.remove, place))
            self._added.addWidget(button)
        self._added.addStretch(1)
        room = len(self._asked) < MOST - 1
        self.add.setEnabled(room)
        self.keep.setEnabled(room)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.table is not None:
            self.table.take_room(self._room())

    def _room(self) -> int:
        """Return the height for the table: its heads and its scroll bar stay on the screen."""
        return max(_LOWEST, self.viewport().height() - _AROUND)

    def _show_table(self) -> None:
        session = self._session
        plans = self._others
        if session.plan and session.facts and session.report and not session.provisional:
            plans = (Answered(_named(session.plan), session.facts, session.report), *plans)
        several = len(plans) > 1 and len(plans) > len(self._others)
        self.copy.setEnabled(several)
        self._card.setVisible(several)
        self._legend.setVisible(several)
        clear(self._card.column)
        self.table = None
        if not several:
            self._says.tell(Message.of(f"ui.compare.{'answering' if self._asked else 'empty'}"))
            return
        rows = tuple(_rows(plans))
        headings = [Heading("" if not place else plan_name(plans[place - 1].plan),
                            max(_width(_cells(row)[place]) for row in rows), stretch=place > 0)
                    for place in range(len(plans) + 1)]  # fmt: skip
        self.table = RowTable(Message.of("ui.place.compare"), headings, self._room())
        self.table.show_rows(rows, _cells)
        self._card.column.addWidget(self.table)
        self._says.tell("\n".join(say(sentence) for sentence in comparing.order(plans)))


def _named(plan: Plan) -> Plan:
    """Return the plan by the name that people read: sentences and headings use it."""
    return plan.model_copy(update={"name": plan_name(plan)})


def _answered(core: Core, plan: Plan) -> Answered | Message:
    """Return a plan with its report, or why there is none; runs off the window's thread."""
    try:
        found = answer(core, plan)
    except UserError as error:
        return Message.of("ui.compare.failed", name=plan.name, why=error.message)
    if found.facts is None or found.report is None:
        return Message.of("ui.compare.untraced", name=plan.name)
    return Answered(plan, found.facts, core.limits(plan, found.facts, found.report))


def _rows(plans: Sequence[Answered]) -> Iterator[Row]:
    verdicts = (Message.of(f"ui.verdict.{one.report.verdict.value}") for one in plans)
    yield Row(Message.of("cli.compare.verdict"), tuple(verdicts))
    if not all(one.report.runs for one in plans):
        runs = (one.report.support.because if one.report.support else None for one in plans)
        yield Row(Message.of("cli.compare.support"), tuple(runs))
    yield from comparing.figure_rows(plans)
    yield Row(Message.of("cli.estimate.settings"), ("",) * len(plans))
    yield from (row for row in comparing.setting_rows(plans) if any(row.cells))


def _width(cell: Cell) -> int:
    return int(tokens.width(cell.text, cell.px, cell.weight)) + 2 * PAD + 2


def _cells(row: Row) -> list[Cell]:
    strong = row.differs or not any(row.cells)
    name = Cell(say(row.name), "text" if strong else "text2", weight=600 if strong else 400)
    return [name, *(_cell(row, place) for place in range(len(row.cells)))]


def _cell(row: Row, place: int) -> Cell:
    text = _text(row.cells[place])
    if place != row.best:
        return Cell(text, "text" if row.differs else "text2")
    mark, ink = ("✓", "fits") if row.sure else ("○", "text")
    return Cell(f"{text} {mark}", ink, weight=600, spoken=tr("ui.compare.best", value=text))


def _text(value: comparing.Cell) -> str:
    if value is None:
        return "–"
    return _figure(value) if isinstance(value, Quantity) else say(value)


def _figure(quantity: Quantity) -> str:
    """Return a figure with its interval; the row's name says the unit of a rate."""
    shown = figure(quantity)
    if quantity.interval is None:
        return str(shown)
    low, high = quantity.interval.low, quantity.interval.high
    first, last = bare(low, quantity.unit), bare(high, quantity.unit)
    if not shown.unit or not first.unit == last.unit == shown.unit:
        return f"{shown} ({span(low, high, quantity.unit)})"
    unit = shown.unit if quantity.unit is Unit.BYTES else ""
    return str(Figure(f"{shown.value} ({first.value} – {last.value})", unit))
