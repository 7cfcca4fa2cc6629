"""Cards of what files say: what was taken from each, and where a step's time goes."""

from collections.abc import Sequence

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from trainwright.diagnose.budget import Budget
from trainwright.diagnose.predicted import Comparison
from trainwright.diagnose.readers.files import FileRead
from trainwright.messages import Message
from trainwright.ui import tokens
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Heading, Label, Painted, Surface, clear

_BAR = 14


class BudgetCard(Surface):
    """Each use of the step's time with its share, as bars that add up to the step."""

    def __init__(self, budget: Budget) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.L, tokens.L))
        title = "diagnose.budget" if budget.of_step else "diagnose.budget-whole"
        self.column.addWidget(Heading(Message.of(title, seconds=budget.seconds)))
        grid = QGridLayout()
        grid.setHorizontalSpacing(tokens.L)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(3, 1)
        for line, each in enumerate(budget.shares):
            share = each.seconds / budget.seconds
            words = (
                Message.of(f"diagnose.use.{each.use}"),
                Message.of("diagnose.budget.seconds", seconds=each.seconds),
                Message.of("diagnose.budget.share", share=share),
            )
            for column, text in enumerate(words):
                weight = 600 if column == 2 else 400
                grid.addWidget(Label(text, px=tokens.LABEL, weight=weight), line, column)
            grid.addWidget(_Share(share), line, 3)
        self.column.addLayout(grid)
        self.column.addWidget(Label(budget.source, px=tokens.LABEL, colour="text3", wrap=True))


class _Share(Painted):
    """A share as a part of the column's width; the figure stands to its left."""

    def __init__(self, share: float) -> None:
        super().__init__(height=_BAR)
        self._share = share

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.box(0, 1, max(2.0, w * self._share), h - 2, "accent", radius=3)


class PredictedCard(Surface):
    """Each part of the measured step, with what the open plan predicts for it."""

    def __init__(self) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.L, tokens.L))
        self.column.addWidget(Heading(Message.of("diagnose.predicted")))
        self._inside = QVBoxLayout()
        self.column.addLayout(self._inside)

    def show_comparison(self, comparison: Comparison | None) -> None:
        """Show another comparison; nothing where the plan predicts nothing to compare."""
        clear(self._inside)
        self.setVisible(comparison is not None and bool(comparison.parts))
        if comparison is None or not comparison.parts:
            return
        inside = QWidget()
        lines, grid = QVBoxLayout(inside), QGridLayout()
        lines.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(tokens.L)
        grid.setVerticalSpacing(6)
        grid.setColumnStretch(4, 1)
        for column, name in enumerate(("part", "measured", "predicted", "times")):
            heading = Message.of(f"diagnose.heading.{name}")
            grid.addWidget(Label(heading, px=tokens.MICRO, colour="text3"), 0, column)
        for line, each in enumerate(comparison.parts, start=1):
            for column, text in enumerate((each.name, *each.shown)):
                weight = 600 if each.part == "step" else 400
                grid.addWidget(Label(text, px=tokens.LABEL, weight=weight), line, column)
        lines.addLayout(grid)
        for note in comparison.notes:
            lines.addWidget(Label(note, px=tokens.LABEL, colour="text3", wrap=True))
        self._inside.addWidget(inside)


class FilesCard(Surface):
    """What was taken from each file, and what is not in it."""

    def __init__(self, files: Sequence[FileRead]) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.L, tokens.L))
        self.column.addWidget(Heading(Message.of("diagnose.files")))
        for file in files:
            title = Message.of("diagnose.file-line", file=file.name, formats=file.formats)
            name = Label(title, px=tokens.LABEL, weight=500, wrap=True)
            name.setTextFormat(Qt.TextFormat.PlainText)
            self.column.addWidget(name)
            for took in file.took:
                self.column.addWidget(Label(took, px=tokens.LABEL, colour="text2", wrap=True))
            for missed in file.missed:
                gap = Message.of("diagnose.file-missing", what=missed)
                self.column.addWidget(Label(gap, px=tokens.LABEL, colour="text3", wrap=True))
