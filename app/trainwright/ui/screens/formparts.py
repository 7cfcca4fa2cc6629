"""What the form of Plan is made of beside plain rows: pairs, facts, the product of the batch."""

from typing import Any

from PySide6.QtWidgets import QVBoxLayout, QWidget

from trainwright.plan.schema import Plan
from trainwright.ui import tokens
from trainwright.ui.i18n import Text, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.screens.form import pair
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Painted
from trainwright.ui.widgets.controls import Decimal, Stepper
from trainwright.workload import FullSettings


class Pair(QWidget):
    """Two steppers in one row, shown and set together."""

    def __init__(self, first: Stepper, second: Stepper) -> None:
        super().__init__()
        self._parts = (first, second)
        holder = pair(first, second)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.addWidget(holder)

    def show_value(self, value: tuple[int, int], *, free: bool = False) -> None:
        """Show both values."""
        for part, one in zip(self._parts, value, strict=True):
            part.show_value(one, free=free)


class Words(Decimal):
    """Names in a line, parted by commas; emptied, there are none."""

    def __init__(self, *, name: Text, absent: Text) -> None:
        self._words: tuple[str, ...] = ()  # before: Qt sends events while it is made
        super().__init__(name=name, absent=absent)

    def show_value(self, value: Any, *, free: bool = False) -> None:
        """Show names without telling anybody."""
        if tuple(value) != self._words:
            self._words = tuple(value)
            self._write()

    def _written(self) -> str:
        return ", ".join(self._words)

    def _tell(self) -> None:
        words = tuple(word for word in self.text().replace(",", " ").split() if word)
        if words == self._words:
            self._write()
            return
        self._words = words
        self._write()
        self.chosen.emit(list(words))


class FactLine(Painted):
    """A quoted fact in small type below a control."""

    def __init__(self) -> None:
        super().__init__(height=15)
        self._text = ""

    def tell(self, text: str) -> None:
        """Show another fact; nothing hides the line."""
        if text == self._text and text:
            return
        self._text = text
        self.setAccessibleName(text)
        self.setToolTip(plain_tip(text))
        self.setVisible(bool(text))
        self.update()

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.icon("quotes-fill", 0, 0, 12, "accent")
        d.write(15, -1, w - 15, 15, self._text, px=tokens.MICRO, colour="text3")


class Equation(Painted):
    """How the batch comes about: micro-batch times steps times GPUs, or groups of such."""

    def __init__(self) -> None:
        super().__init__(height=26)
        self._text = ""

    def tell(self, plan: Plan, settings: FullSettings) -> None:
        """Show the product for these settings."""
        gpus = settings.ranks_of(gpu_count(plan)) if settings.several else 1
        product = settings.micro_batch * settings.accumulation * gpus
        ending = ".groups" if settings.together > 1 else ""
        self._text = tr(f"ui.form.equation{ending}", micro=settings.micro_batch,
                        steps=settings.accumulation, gpus=gpus, product=product)  # fmt: skip
        self.setAccessibleName(self._text)
        self.update()

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.box(0, 0, w, h, "sunken")
        d.write(0, 0, w, h, self._text, px=tokens.LABEL, weight=500, colour="text2",
                align="centre")  # fmt: skip


def gpu_count(plan: Plan) -> int:
    """Return how many GPUs the plan has; one where none is named."""
    return plan.machine.gpu_count or 1
