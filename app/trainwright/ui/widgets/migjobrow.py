"""A job that is dragged onto an instance, with the one that it has."""

from dataclasses import dataclass

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QPaintEvent
from PySide6.QtWidgets import QSizePolicy

from trainwright.mig.boards import Place
from trainwright.ui import tokens
from trainwright.ui.i18n import tr
from trainwright.ui.paint import Drawing
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.migpieces import Piece

ROW = 30


@dataclass(frozen=True, slots=True)
class Placed:
    """A job as its row shows it."""

    name: str
    needs: str
    at: Place | None
    shown: str
    """The place in words; empty where it has none."""
    done: str


class JobRow(Piece):
    """Name, need, instance and time; a click finds an instance for it."""

    def __init__(self, job: Placed) -> None:
        super().__init__()
        self.job = job
        self.setFixedHeight(ROW)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    def minimumSizeHint(self) -> QSize:
        return QSize(400, ROW)

    @property
    def where(self) -> str:
        """Which instance it has, in words."""
        return self.job.shown if self.job.at is not None else tr("ui.mig.job.none")

    def show_job(self, job: Placed) -> None:
        """Show the job's instance as it is now."""
        self.job = job
        self.setAccessibleName(", ".join((job.name, job.needs, self.where)))
        self.setToolTip(plain_tip(f"{job.name}\n{tr('ui.mig.job.tip')}"))
        self.setAccessibleDescription(tr("ui.mig.job.tip"))
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h, job = self.width(), self.height(), self.job
        where, done = 22 + (w - 22) * 0.5, w - 100
        with Drawing(self) as d:
            if self.underMouse():
                d.box(0, 0, w, h - 1, "sunken", radius=tokens.CHIP)
            d.icon("dots-six-vertical", 2, (h - 16) / 2, 16, "text3")
            name = tokens.metrics(tokens.LABEL, 600).elidedText(
                job.name, Qt.TextElideMode.ElideRight, where - 22 - 90 - 16
            )
            d.write(22, 0, where - 22 - 90, h - 1, name, px=tokens.LABEL, weight=600)
            d.write(where - 100, 0, 80, h - 1, job.needs, px=tokens.LABEL, align="right")
            there = job.at is not None
            d.icon("check-circle-fill" if there else "x-circle-fill", where, (h - 15) / 2, 14,
                   "fitsFill" if there else "noFill")  # fmt: skip
            d.write(where + 20, 0, done - where - 20, h - 1, self.where, px=tokens.LABEL,
                    colour="text" if there else "no")  # fmt: skip
            d.write(done, 0, w - done - 4, h - 1, job.done, px=tokens.LABEL, align="right")
            d.rule(0, h - 1, w, h - 1)
            if self.hasFocus():
                d.focus_ring(w, h - 1, tokens.CHIP)
