"""The profiles that a GPU can be cut into, each with its places below the strip's."""

from PySide6.QtCore import QPoint, QRectF
from PySide6.QtGui import QMouseEvent, QPaintEvent
from PySide6.QtWidgets import QSizePolicy

from trainwright.catalog import GpuRecord
from trainwright.messages.units import gib
from trainwright.mig import board
from trainwright.mig.board import Sketch
from trainwright.ui import tokens
from trainwright.ui.i18n import language, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Painted
from trainwright.ui.widgets.migpieces import Piece, Ruler
from trainwright.ui.widgets.migstrips import Strips

ROW = 30


class ProfileRow(Piece):
    """A profile of the palette: what it has, how many still fit, and where it may begin."""

    def __init__(self, strip: Strips, gpu: GpuRecord, sketch: Sketch, profile: str) -> None:
        super().__init__()
        self._strip, self._sketch, self.profile = strip, sketch, profile
        found = board.share(gpu, sketch.table, profile)
        wave = found.memory_wave
        self._memory = f"{wave}{found.memory_bytes / (1 << 30):.4g}"
        sms = found.processors
        self._sms = f"{found.processors_wave}{sms}" if sms is not None else "?"
        self._spoken_memory = f"{wave}{gib(found.memory_bytes, language())}"
        self.setFixedHeight(ROW)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.clicked_at: int | None = None
        """The start of the place that was clicked; None: anywhere else on the row."""
        self.show_sketch(sketch)
        self.dragged.connect(lambda at: strip.drag(self.profile, at))
        self.dropped.connect(lambda _at: strip.drop(self.profile))
        self.left.connect(strip.give_up)

    def show_sketch(self, sketch: Sketch) -> None:
        """Show where the profile may begin beside other instances."""
        self._sketch = sketch
        self.still = board.still(sketch, self.profile)
        self._open = board.starts(sketch, self.profile)
        values = {"memory": self._spoken_memory, "sms": self._sms, "number": self.still}
        self.setAccessibleName(tr("ui.mig.row", profile=self.profile, **values))
        places = ", ".join(map(str, self._open))
        self.setToolTip(plain_tip(tr("ui.mig.row.places", starts=places) if places else ""))
        self.update()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        unit = self._ruler.unit(event.position().x())
        size = self._sketch.table.profile(self.profile).size or 1
        self.clicked_at = next((at for at in self._open if at <= unit < at + size), None)
        super().mouseReleaseEvent(event)
        self.clicked_at = None

    @property
    def _ruler(self) -> Ruler:
        """The strip's ruler, from this widget's left edge."""
        ruler = self._strip.ruler
        shift = self.mapToGlobal(QPoint()).x() - self._strip.mapToGlobal(QPoint()).x()
        return Ruler(ruler.left - shift, ruler.width, ruler.units)

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h, able = self.width(), self.height(), self.still > 0
        ink = "text" if able else "text3"
        with Drawing(self) as d:
            if self.underMouse():
                d.box(0, 0, w, h - 1, "sunken", radius=tokens.CHIP)
            d.icon("dots-six-vertical", 2, (h - 16) / 2, 16, "text3")
            name, memory, sms, still = HEADS
            d.write(name[0], 0, name[1], h - 1, self.profile, px=tokens.LABEL,
                    weight=600 if able else 400, colour=ink)  # fmt: skip
            for (x, wide), text in (
                (memory, self._memory),
                (sms, self._sms),
                (still, "?" if self._sketch.table.units is None else str(self.still)),
            ):
                d.write(x, 0, wide, h - 1, text, px=tokens.LABEL, colour=ink, align="right")
            if self._sketch.table.units is not None:
                self._places(d)
            d.rule(0, h - 1, w, h - 1)
            if self.hasFocus():
                d.focus_ring(w, h - 1, tokens.CHIP)

    def _places(self, d: Drawing) -> None:
        ruler, size = self._ruler, self._sketch.table.profile(self.profile).size or 1
        for start in self._sketch.table.profile(self.profile).starts:
            x = ruler.x(start) + 2
            wide = ruler.x(start + size) - x - 2
            if start in self._open:
                d.box(x, 6, wide, ROW - 13, "fitsWash", "fitsFill", radius=tokens.CHIP)
                text = tr("ui.mig.place-at", start=start)
                if tokens.width(text, tokens.MICRO, 600) > wide - 6:
                    text = str(start)
                d.write(x, 6, wide, ROW - 13, text, px=tokens.MICRO, weight=600, colour="fits",
                        align="centre")  # fmt: skip
            else:
                d.box(x, 6, wide, ROW - 13, "sunken", "line", radius=tokens.CHIP)
                d.hatch(QRectF(x + 1, 7, wide - 2, ROW - 15), "line2")


HEADS = ((22, 100), (124, 50), (178, 36), (216, 28))
"""(left, width) of a row's columns: name, memory, processors, how many still fit."""


class RowHeads(Painted):
    """What the columns of the palette are."""

    def __init__(self) -> None:
        super().__init__(tr("ui.mig.palette"), height=22)

    def draw(self, d: Drawing, w: int, h: int) -> None:
        for number, (key, (x, wide)) in enumerate(
            zip(("profile", "memory", "sms", "fits"), HEADS, strict=True)
        ):
            d.write(x, 0, wide, h, tr(f"ui.mig.head.{key}"), px=tokens.MICRO, weight=600,
                    colour="text2", align="left" if number == 0 else "right")  # fmt: skip
        d.rule(0, h - 1, w, h - 1, "line2")
