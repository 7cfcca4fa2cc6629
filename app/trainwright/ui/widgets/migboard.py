"""The board on which a GPU is cut: its units as a strip, and the profiles to put there.

Strip and profiles share one ruler, so that a place in a row stands below the same place above.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QPoint, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QApplication, QSizePolicy, QWidget

from trainwright.catalog import GpuRecord
from trainwright.explain import Kind
from trainwright.messages import Message
from trainwright.messages.units import gib
from trainwright.mig import board
from trainwright.mig.board import Sketch
from trainwright.mig.layout import Instance, occupied
from trainwright.ui import tokens
from trainwright.ui.i18n import language, say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Painted

LEFT, RIGHT = 268, 28
"""Beside the ruler: names and figures; a card's padding and the scroll bar below."""
_DIMENSION, _BLOCKS, _BLOCK, _RULER, _BAR, _HEIGHT = 62, 78, 88, 172, 208, 240
"""From the strip's top: the dimension line, the instances and their height, the units' numbers,
the bar of processors, and its end."""
ROW = 30
_FILLS = ("weights", "input", "act", "optim", "work", "data")


def fill(sketch: Sketch, profile: str) -> str:
    """Return a profile's colour: the same on the whole board, variants alike."""
    plain = [each.name for each in sketch.table.profiles if each.plain]
    base = profile.partition("+")[0].partition("-")[0]
    at = plain.index(base) if base in plain else 0
    return _FILLS[(len(plain) - 1 - at) % len(_FILLS)]


@dataclass(frozen=True, slots=True)
class Ruler:
    """Where units lie, in pixels of a widget that begins at the strip's left edge."""

    left: float
    width: float
    units: int

    def x(self, unit: float) -> float:
        """Return where a unit begins."""
        return self.left + unit * self.width / self.units

    def unit(self, x: float) -> float:
        """Return the unit at a place."""
        return (x - self.left) * self.units / self.width if self.width else 0.0


class Piece(QAbstractButton):
    """Something that is clicked, or dragged onto the strip."""

    dragged = Signal(QPoint)
    """Where the pointer is, on the screen."""
    dropped = Signal(QPoint)
    left = Signal()
    """The drag ended elsewhere or was given up."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._pressed: QPoint | None = None
        self.pressed_at = QPoint()
        """Where it was taken, from its upper left corner."""
        self.dragging = False
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.OpenHandCursor)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        if event.button() == Qt.MouseButton.LeftButton:
            self._pressed = event.globalPosition().toPoint()
            self.pressed_at = event.position().toPoint()

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self._pressed is None:
            super().mouseMoveEvent(event)
            return
        here = event.globalPosition().toPoint()
        far = (here - self._pressed).manhattanLength() >= QApplication.startDragDistance()
        if self.dragging or far:
            self.dragging = True
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self.dragged.emit(here)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        dragging = self.dragging
        self._stop()
        if not dragging:
            super().mouseReleaseEvent(event)
            return
        self.setDown(False)
        self.dropped.emit(event.globalPosition().toPoint())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.dragging:
            self._stop()
            self.setDown(False)
            self.left.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.click()
        else:
            super().keyPressEvent(event)

    def _stop(self) -> None:
        self._pressed, self.dragging = None, False
        self.setCursor(Qt.CursorShape.OpenHandCursor)


class Block(Piece):
    """An instance on the strip: dragged or moved by the arrow keys, removed by Delete."""

    stepped = Signal(int)
    removed = Signal()

    def __init__(self, parent: QWidget, instance: Instance) -> None:
        super().__init__(parent)
        self.instance = instance
        self._lines: tuple[str, ...] = ()
        self._fill = "weights"

    def describe(self, fill: str, lines: Sequence[str]) -> None:
        """Show the profile and what the instance has."""
        self._fill, self._lines = fill, tuple(lines)
        spoken = tr("ui.mig.instance", profile=self.instance.profile, start=self.instance.start)
        self.setAccessibleName(", ".join((spoken, *lines[1:])))
        self.setAccessibleDescription(tr("ui.mig.instance.keys"))
        self.setToolTip("\n".join((spoken, *lines[1:])))
        self.update()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.stepped.emit(-1 if event.key() == Qt.Key.Key_Left else 1)
        elif event.key() in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            self.removed.emit()
        else:
            super().keyPressEvent(event)

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            d.box(0, 0, w, h, self._fill)
            ink = tokens.ink(self._fill)
            room, top = w - 12, 7.0
            for number, line in enumerate(self._lines):
                weight = 600 if number == 0 else 500
                for part in _broken(line, room, weight):
                    if top + 16 > h or tokens.width(part, tokens.MICRO, weight) > room:
                        break  # the tooltip has all of it
                    d.write(7, top, room, 16, part, px=tokens.MICRO, weight=weight, colour=ink)
                    top += 16
            if self.hasFocus():
                d.box(0, 0, w, h, None, "surface", width=2)
                d.box(2, 2, w - 4, h - 4, None, "text", radius=4, width=2)


def _broken(line: str, room: float, weight: int) -> list[str]:
    """Return a line in pieces that fit: at spaces, and profiles before their memory."""
    if tokens.width(line, tokens.MICRO, weight) <= room:
        return [line]
    for mark in ("+", ".", "-"):
        head, found, tail = line.partition(mark)
        if found and " " not in line:
            return [head, *_broken(found + tail, room, weight)]
    return tokens.wrapped(line, room, tokens.MICRO, weight)


class Ghost(Painted):
    """What would lie there if it were dropped now."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent=parent)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.legal, self.text = True, ""
        self.hide()

    def draw(self, d: Drawing, w: int, h: int) -> None:
        edge = "fits" if self.legal else "no"
        ground = tokens.colour("fitsWash" if self.legal else "noWash", 0.92)
        d.box(0, 0, w, h, ground, edge, width=2, dashed=True)
        d.icon("check-circle-fill" if self.legal else "x-circle-fill", w / 2 - 9, h / 2 - 24, 18,
               edge)  # fmt: skip
        if tokens.width(self.text, tokens.MICRO, 600) <= w - 4:
            d.write(2, h / 2, w - 4, 18, self.text, px=tokens.MICRO, weight=600, colour=edge,
                    align="centre")  # fmt: skip


class Strip(Painted):
    """The GPU's units with its instances; tells what a person wants, and changes nothing."""

    wanted = Signal(str, int)
    """(profile, start): one more."""
    moved = Signal(object, int)
    removed = Signal(object)
    said = Signal(object)
    """Why something is not possible; None: nothing is wrong."""

    def __init__(self) -> None:
        super().__init__(tr("ui.mig.strip"), height=_HEIGHT)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._sketch: Sketch | None = None
        self._gpu: GpuRecord | None = None
        self._largest: Instance | None = None
        self.blocks: list[Block] = []
        self._ghost = Ghost(self)
        self._dropping: tuple[int, Message | None] | None = None

    def minimumSizeHint(self) -> QSize:
        return QSize(LEFT + RIGHT + 480, _HEIGHT)

    @property
    def ruler(self) -> Ruler:
        """Where units lie."""
        units = self._sketch.table.units if self._sketch else None
        return Ruler(LEFT, max(1, self.width() - LEFT - RIGHT), units or 1)

    # What is shown

    def show_sketch(self, gpu: GpuRecord, sketch: Sketch, chosen: Instance | None = None) -> None:
        """Show other instances; ``chosen`` takes the focus."""
        self._gpu, self._sketch = gpu, sketch
        self._largest = board.largest(sketch)
        held = next((block.instance for block in self.blocks if block.hasFocus()), None)
        if held is not None:
            self.setFocus()  # it stays on the board when the instance goes
        for block in self.blocks:
            block.hide()
            block.deleteLater()
        self.blocks = [self._block(instance) for instance in sketch.layout]
        self._place()
        for block in self.blocks:
            if block.instance == (chosen or held):
                block.setFocus()
        texts = (*(block.accessibleName() for block in self.blocks), *self.in_view())
        self.setAccessibleDescription("; ".join(texts))
        self.update()

    def _block(self, instance: Instance) -> Block:
        assert self._sketch is not None
        block = Block(self, instance)
        job = self._sketch.drawn.jobs.get(instance)
        lines = [instance.profile, *([job] if job else []), *self._figures(instance.profile)]
        block.describe(fill(self._sketch, instance.profile), lines)
        block.dragged.connect(partial(self._carry, block))
        block.dropped.connect(partial(self._move_to, block))
        block.left.connect(self.give_up)
        block.stepped.connect(partial(self._step, instance))
        block.removed.connect(partial(self.removed.emit, instance))
        block.show()
        return block

    def _figures(self, profile: str) -> tuple[str, ...]:
        """Return memory and processors of an instance, a wave before what is inferred."""
        assert self._sketch is not None
        assert self._gpu is not None
        found = board.share(self._gpu, self._sketch.table, profile)
        wave = "~" if found.inferred else ""
        sms = () if found.processors is None else (f"{wave}{found.processors} SMs",)
        return (f"{wave}{gib(found.memory_bytes)}", *sms)

    def in_view(self) -> tuple[str, ...]:
        """Return what is always said: the largest still placeable, and idle processors."""
        if self._sketch is None or self._gpu is None or self._sketch.table.units is None:
            return ()
        found, left = self._largest, board.idle(self._gpu, self._sketch)
        most = tr("ui.mig.full")
        if found is not None:
            most = tr("ui.mig.largest", profile=found.profile, start=found.start)
        if left is None:
            return (most,)
        wave = "~" if left.inferred else ""
        return (most, tr("ui.mig.idle", idle=f"{wave}{left.processors}", total=left.total))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        for block in self.blocks:
            block.setGeometry(*self._box(block.instance.profile, block.instance.start or 0))

    def _box(self, profile: str, start: int) -> tuple[int, int, int, int]:
        assert self._sketch is not None
        ruler, size = self.ruler, self._sketch.table.profile(profile).size or 1
        x = round(ruler.x(start)) + 2
        return x, _BLOCKS, round(ruler.x(start + size)) - x - 2, _BLOCK

    # What a person does

    def _step(self, instance: Instance, way: int) -> None:
        assert self._sketch is not None
        start = board.next_start(self._sketch, instance, way)
        if start is None:
            key = "ui.mig.no-step.right" if way > 0 else "ui.mig.no-step.left"
            self.said.emit(Message.of(key, profile=instance.profile))
            return
        self.moved.emit(instance, start)

    def drag(self, profile: str, at: QPoint) -> None:
        """Show where a profile from elsewhere would land."""
        self._over(profile, at, None)

    def drop(self, profile: str) -> None:
        """Take a profile where it was dragged last."""
        target, self._dropping = self._dropping, None
        self.give_up(quiet=target is not None and target[1] is not None)
        if target is not None and target[1] is None:
            self.wanted.emit(profile, target[0])

    def give_up(self, *, quiet: bool = False) -> None:
        """End a drag without doing anything; the reason stays when ``quiet``."""
        self._dropping = None
        self._ghost.hide()
        self._place()
        if not quiet:
            self.said.emit(None)

    def _over(self, profile: str, at: QPoint, block: Block | None) -> None:
        sketch = self._sketch
        if sketch is None or sketch.table.units is None:
            return
        here = self.mapFromGlobal(at)
        if not self.rect().adjusted(0, -24, 0, 24).contains(here):
            self.give_up()
            return
        ruler, size = self.ruler, sketch.table.profile(profile).size or 1
        held = size / 2 if block is None else ruler.unit(block.pressed_at.x() + LEFT)
        moving = block.instance if block is not None else None
        start, reason = board.nearest(sketch, profile, ruler.unit(here.x()) - held, moving=moving)
        self._dropping = (start, reason)
        self._ghost.legal, self._ghost.text = reason is None, profile
        self._ghost.setGeometry(*self._box(profile, start))
        self._ghost.show()
        self._ghost.raise_()
        self._ghost.update()
        self.said.emit(reason)

    def _carry(self, block: Block, at: QPoint) -> None:
        self._over(block.instance.profile, at, block)

    def _move_to(self, block: Block, _at: QPoint) -> None:
        target = self._dropping
        self.give_up(quiet=target is not None and target[1] is not None)
        if target is not None and target[1] is None:
            self.moved.emit(block.instance, target[0])

    # Drawing

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.box(0, 0, w, h, "print", radius=tokens.CARD)
        sketch = self._sketch
        if sketch is None or self._gpu is None:
            return
        self._title(d, sketch, w)
        if sketch.table.units is None:
            reason = say(Message.of("mig.placements-unknown", gpu=sketch.table.name))
            for number, line in enumerate(tokens.wrapped(reason, w - 36, tokens.BODY)):
                d.write(18, 80 + 20 * number, w - 36, 20, line, colour="printLine")
            return
        self._free(d, sketch)
        self._units(d, sketch)
        self._processors(d, sketch)
        self._names(d, sketch)

    def _title(self, d: Drawing, sketch: Sketch, w: int) -> None:
        assert self._gpu is not None
        used = d.write(18, 10, w - 36, 22, self._gpu.name, px=tokens.SECTION, weight=600,
                       colour="printLine")  # fmt: skip
        if sketch.table.units is None:
            return
        shape = tr("ui.mig.shape", units=sketch.table.units, slices=sketch.table.slices)
        how = tr(f"ui.mig.places.{sketch.table.placements}")
        x = 18 + used + 12
        used = tokens.width(shape, tokens.LABEL)
        wide = tokens.width(how, tokens.LABEL) + 20
        if x + used + wide + 30 < w:
            d.write(x, 11, used + 2, 22, shape, px=tokens.LABEL, colour="printDim")
        kind = Kind.QUOTED if sketch.table.placements == "published" else Kind.ESTIMATED
        d.mark(w - 18 - wide, 22, kind, "printDim")
        d.write(w - 18 - wide + 18, 11, wide, 22, how, px=tokens.LABEL, colour="printDim")

    def _free(self, d: Drawing, sketch: Sketch) -> None:
        """Draw units without an instance, and the largest instance that still has a place."""
        ruler, taken = self.ruler, occupied(sketch.table, sketch.layout)
        units = sketch.table.units or 0
        found = self._largest
        covered = occupied(sketch.table, [found]) if found is not None else 0
        for unit in range(units):
            if not (taken | covered) >> unit & 1:
                x = ruler.x(unit) + 2
                wide = ruler.x(unit + 1) - x - 2
                d.box(x, _BLOCKS, wide, _BLOCK, None, "printDim", dashed=True)
                text = tr("ui.mig.free")
                if tokens.width(text, tokens.MICRO) < wide - 4:
                    d.write(x, _BLOCKS, wide, _BLOCK, text, px=tokens.MICRO, colour="printDim",
                            align="centre")  # fmt: skip
        if found is None:
            return
        x, y, wide, high = self._box(found.profile, found.start or 0)
        ink = "#7FE3BE"
        d.box(x, y, wide, high, tokens.colour("#2DB283", 0.2), ink, dashed=True, width=1.5)
        lines = (found.profile, *self._figures(found.profile))
        top = y + high / 2 - 8 * len(lines)
        for number, line in enumerate(lines):
            if tokens.width(line, tokens.MICRO, 600) < wide - 4:
                d.write(x, top + 16 * number, wide, 16, line, px=tokens.MICRO,
                        weight=500 if number else 600, colour=ink, align="centre")  # fmt: skip
        d.dimension(x, x + wide - 1, _DIMENSION, tr("ui.mig.largest.short"), ink, behind="print")

    def _units(self, d: Drawing, sketch: Sketch) -> None:
        ruler, units = self.ruler, sketch.table.units or 0
        d.rule(ruler.x(0), _RULER, ruler.x(units), _RULER, "printLine")
        for unit in range(units + 1):
            d.rule(ruler.x(unit), _RULER, ruler.x(unit), _RULER + 6, "printLine")
            if unit < units:
                x = ruler.x(unit)
                d.write(x, _RULER + 5, ruler.x(unit + 1) - x, 18, str(unit), px=tokens.MICRO,
                        weight=600, colour="printLine", align="centre")  # fmt: skip

    def _processors(self, d: Drawing, sketch: Sketch) -> None:
        """Draw whose the processors are; what is nobody's is hatched."""
        assert self._gpu is not None
        left = board.idle(self._gpu, sketch)
        if left is None:
            return
        ruler = self.ruler
        x, per = ruler.left, ruler.width / left.total
        for instance in sketch.layout:
            part = board.share(self._gpu, sketch.table, instance.profile)
            wide = (part.processors or 0) * per
            d.box(x, _BAR, max(1.0, wide - 1), 14, fill(sketch, instance.profile), radius=2)
            x += wide
        end = ruler.left + ruler.width
        if end - x > 1:
            d.box(x, _BAR, end - x, 14, None, "printDim", radius=2, dashed=True)
            d.hatch(QRectF(x + 1, _BAR + 1, end - x - 2, 12), "printGrid")

    def _names(self, d: Drawing, sketch: Sketch) -> None:
        """Write what the rows are, and the figures that are always in view."""
        taken = occupied(sketch.table, sketch.layout).bit_count()
        room, units = LEFT - 18 - 14, sketch.table.units or 0
        d.write(18, _BLOCKS + 2, room, 20, tr("ui.mig.instances"), weight=600, colour="printLine")
        placed = tr("ui.mig.placed", number=len(sketch.layout), taken=taken, units=units)
        most, *idle = self.in_view()
        top = float(_BLOCKS + 24)
        for text, ink in ((placed, "printDim"), (most, "#7FE3BE")):
            for line in tokens.wrapped(text, room, tokens.LABEL)[:3]:
                d.write(18, top, room, 17, line, px=tokens.LABEL, colour=ink)
                top += 17
        d.write(18, _RULER + 2, room, 18, tr("ui.mig.unit"), px=tokens.LABEL, colour="printDim")
        for text in idle:
            d.write(18, _BAR - 2, room, 18, text, px=tokens.LABEL, weight=600, colour="printLine")


class ProfileRow(Piece):
    """A profile of the palette: what it has, how many still fit, and where it may begin."""

    def __init__(self, strip: Strip, gpu: GpuRecord, sketch: Sketch, profile: str) -> None:
        super().__init__()
        self._strip, self._sketch, self.profile = strip, sketch, profile
        found = board.share(gpu, sketch.table, profile)
        wave = "~" if found.inferred else ""
        self._memory = f"{wave}{found.memory_bytes / (1 << 30):.4g}"
        self._sms = f"{wave}{found.processors}" if found.processors is not None else "?"
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
        self.setToolTip(tr("ui.mig.row.places", starts=places) if places else "")
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
