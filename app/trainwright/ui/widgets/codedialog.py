"""The question before a file with code becomes the plan's model: what it takes, and consent."""

from pathlib import Path
from typing import cast

from PySide6.QtCore import Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QDialog, QGridLayout, QHBoxLayout, QVBoxLayout, QWidget

from trainwright.messages import Message
from trainwright.ui import tokens
from trainwright.ui.i18n import tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Heading, Label
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Combo, Segmented, Stepper
from trainwright.ui.yourcode import Code, Takes, factories

USUAL = {"images": 224, "tokens": 1024, "neither": 1}
"""Proposed pixels a side and tokens; assumed."""
FEWEST = {"images": 8, "tokens": 1, "neither": 1}
"""Least that a plan takes (``Inputs``)."""


class CodeDialog(QDialog):
    """Asks for factory and inputs of a file; accepting it is the consent to run its code."""

    def __init__(self, parent: QWidget, file: Path) -> None:
        super().__init__(parent)
        self._file = file
        self.setWindowTitle(tr("ui.code.title"))
        self.setAccessibleName(tr("ui.code.title"))
        self.setMinimumWidth(480)
        column = QVBoxLayout(self)
        column.setContentsMargins(tokens.XL, tokens.L, tokens.XL, tokens.L)
        column.setSpacing(tokens.M)
        column.addWidget(Heading(tr("ui.code.title")))
        column.addWidget(Label(str(file), px=tokens.LABEL, mono=True, wrap=True))
        self._grid = QGridLayout()
        self._grid.setHorizontalSpacing(tokens.L)
        self._grid.setVerticalSpacing(tokens.M)
        self._grid.setColumnStretch(1, 1)
        column.addLayout(self._grid)
        self.factory: Combo | None = None
        if file.suffix == ".py":
            names = [(name, name) for name in factories(file)] or [("build", "build")]
            self.factory = Combo(names, names[0][0], name=Message.of("ui.code.factory"))
            self._add(0, "ui.code.factory", self.factory)
        kinds = [(kind, tr(f"ui.code.takes.{kind}")) for kind in USUAL]
        self.takes = Segmented(kinds, "images", name=Message.of("ui.code.takes"))
        self.takes.chosen.connect(self._propose)
        self._add(1, "ui.code.takes", self.takes)
        self.amount = Stepper(USUAL["images"], name=Message.of("ui.code.size"), high=16_384)
        self._amount_label = self._add(2, "ui.code.size", self.amount)
        self._propose("images")
        column.addWidget(Label(tr("ui.code.consent"), wrap=True, colour="text2"))
        line = QHBoxLayout()
        line.addStretch(1)
        self.cancel = Button(tr("ui.code.cancel"))
        self.cancel.clicked.connect(self.reject)
        self.run = Button(tr("ui.code.run"), "primary")
        self.run.clicked.connect(self.accept)
        line.addWidget(self.cancel)
        line.addWidget(self.run)
        column.addLayout(line)
        self.cancel.setFocus()  # consent is given on purpose

    def _add(self, row: int, text: str, control: QWidget) -> Label:
        label = Label(tr(text), colour="text2")
        label.setBuddy(control)
        self._grid.addWidget(label, row, 0)
        self._grid.addWidget(control, row, 1, Qt.AlignmentFlag.AlignLeft)
        return label

    def _propose(self, kind: str) -> None:
        self._taken = cast(Takes, kind)
        self.amount.setRange(FEWEST[kind], 16_384 if kind == "images" else 10_000_000)
        self.amount.show_value(USUAL[kind])
        for widget in (self.amount, self._amount_label):
            widget.setVisible(kind != "neither")

    @property
    def code(self) -> Code:
        """What was answered."""
        factory = self.factory.currentData() if self.factory is not None else ""
        return Code(self._file, str(factory), self._taken, self.amount.value())

    def paintEvent(self, _event: QPaintEvent) -> None:
        with Drawing(self) as d:
            d.fillRect(self.rect(), tokens.colour("surface"))
