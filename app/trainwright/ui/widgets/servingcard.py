"""The serving side of an answer: the cache, what fits at most, and what the engine takes."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout

from trainwright.messages import Message
from trainwright.plan.report import Report
from trainwright.plan.serving_rows import Row, serving_rows
from trainwright.ui import tokens
from trainwright.ui.i18n import say
from trainwright.ui.widgets.base import Heading, Label, Surface


class ServingCard(Surface):
    """Rows of what and how much; hidden where nothing is served."""

    def __init__(self) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.L, tokens.M), gap=6)
        self.column.addWidget(Heading(Message.of("ui.serving.heading")))
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(tokens.L)
        self._grid.setVerticalSpacing(3)
        self._grid.setColumnStretch(0, 1)
        self.column.addLayout(self._grid)
        self._said: tuple[tuple[str, str], ...] = ()

    def show_report(self, report: Report | None) -> None:
        """Show another report, or that there is none."""
        serving = report.serving if report is not None else None
        self.setVisible(serving is not None)
        rows: tuple[Row, ...] = ()
        if report is not None and serving is not None:
            rows = serving_rows(serving, report.time.serving)
        said = tuple((say(name), say(value)) for name, value in rows)
        if said == self._said:
            return
        self._said = said
        while (item := self._grid.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for row, (name, value) in enumerate(said):
            shown = Label(value, px=tokens.LABEL, weight=600)
            shown.setAccessibleName(f"{name}: {value}")
            self._grid.addWidget(Label(name, px=tokens.LABEL, colour="text2"), row, 0)
            self._grid.addWidget(shown, row, 1, Qt.AlignmentFlag.AlignRight)
