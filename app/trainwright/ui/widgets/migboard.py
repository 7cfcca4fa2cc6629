"""The board on which a GPU is cut: its units as a strip, and the profiles to put there.

Strip and profiles share one ruler, so that a place in a row stands below the same place above.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from PySide6.QtCore import QPoint, QRect, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFocusEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QSizePolicy

from trainwright.catalog import GpuRecord
from trainwright.explain import Kind
from trainwright.messages import Message
from trainwright.messages.units import gib
from trainwright.mig import board
from trainwright.mig.board import Sketch
from trainwright.mig.layout import Instance, occupied
from trainwright.ui import tokens
from trainwright.ui.i18n import say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Painted
from trainwright.ui.widgets.migpieces import Block, Ghost, Ruler, fill

_KINDS = {"published": Kind.QUOTED, "read": Kind.MEASURED}
LEFT, RIGHT = 268, 28
"""Beside the ruler: names and figures; a card's padding and the scroll bar below."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Where things lie, from the strip's top."""

    dimension: int | None
    """The line above the largest instance that still fits; None: there is no room for it."""
    blocks: int
    block: int
    """Height of the instances."""
    ruler: int
    """The units' numbers."""
    bar: int
    """The processors."""
    height: int


ALONE = Rows(62, 78, 88, 172, 208, 240)
BESIDE = Rows(None, 36, 72, 112, 140, 166)
"""Of one among several GPUs."""


# Long: Qt's events, gestures and parts of one drawing.
class Strip(Painted):
    """One GPU's units with its instances; tells what a person wants, and changes nothing."""

    carried = Signal(object, QPoint)
    """(block, place on the screen): an instance is dragged."""
    let_go = Signal(object)
    given_up = Signal()
    stepped = Signal(object, int)
    """(instance, way): to the next place at the right (1) or at the left (-1)."""
    crossed = Signal(object, int)
    """(instance, way): to the GPU below (1) or above (-1)."""
    removed = Signal(object)
    said = Signal(object)
    """Why something is not possible; None: nothing is wrong."""
    chosen = Signal()
    """It was clicked, or it or one of its instances has the focus."""

    def __init__(self, rows: Rows = ALONE) -> None:
        super().__init__(tr("ui.mig.strip"), height=rows.height)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._rows = rows
        self._label = ""
        self._active = False
        if rows is not ALONE:
            self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._sketch: Sketch | None = None
        self._gpu: GpuRecord | None = None
        self._largest: Instance | None = None
        self.blocks: list[Block] = []
        self._ghost = Ghost(self)
        self._dropping: tuple[int, Message | None] | None = None
        self._onto: tuple[Instance, Message | None] | None = None

    def minimumSizeHint(self) -> QSize:
        return QSize(LEFT + RIGHT + 480, self._rows.height)

    @property
    def ruler(self) -> Ruler:
        """Where units lie."""
        units = self._sketch.table.units if self._sketch else None
        return Ruler(LEFT, max(1, self.width() - LEFT - RIGHT), units or 1)

    # What is shown

    def show_active(self, active: bool) -> None:
        """Mark the GPU that a clicked profile goes to."""
        if active != self._active:
            self._active = active
            self.update()

    def show_sketch(
        self, gpu: GpuRecord, sketch: Sketch, chosen: Instance | None = None, label: str = ""
    ) -> None:
        """Show other instances; ``chosen`` takes the focus; ``label`` tells the GPU from others."""
        self._gpu, self._sketch, self._label = gpu, sketch, label
        self.setAccessibleName(", ".join(filter(None, (label, tr("ui.mig.strip")))))
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
        block.dragged.connect(partial(self.carried.emit, block))
        block.dropped.connect(partial(self._let_go, block))
        block.left.connect(self.given_up)
        block.stepped.connect(partial(self.stepped.emit, instance))
        block.crossed.connect(partial(self.crossed.emit, instance))
        block.removed.connect(partial(self.removed.emit, instance))
        block.focused.connect(self.chosen)
        block.show()
        return block

    def _figures(self, profile: str) -> tuple[str, ...]:
        """Return memory and processors of an instance, a wave before what is inferred."""
        assert self._sketch is not None
        assert self._gpu is not None
        found = board.share(self._gpu, self._sketch.table, profile)
        count = found.processors
        sms = () if count is None else (f"{found.processors_wave}{count} SMs",)
        return (f"{found.memory_wave}{gib(found.memory_bytes)}", *sms)

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
        rows = self._rows
        return x, rows.blocks, round(ruler.x(start + size)) - x - 2, rows.block

    # What a person does

    def mousePressEvent(self, event: QMouseEvent) -> None:
        super().mousePressEvent(event)
        self.chosen.emit()

    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.chosen.emit()

    def holds(self, at: QPoint) -> bool:
        """Return whether a place on the screen is the strip's, or close to it."""
        margin = 24 if self._rows is ALONE else 0
        return self.rect().adjusted(0, -margin, 0, margin).contains(self.mapFromGlobal(at))

    def over(self, profile: str, at: QPoint, block: Block, *, own: bool = False) -> None:
        """Show where an instance would land that is dragged to a place on the screen.

        ``block`` is what the pointer holds where it is an instance; ``own``: one of this GPU's.
        """
        self._over(profile, at, block.pressed_at.x(), block.instance if own else None)

    def drag(self, profile: str, at: QPoint) -> None:
        """Show where a profile from elsewhere would land."""
        self._over(profile, at, None, None)

    def take(self) -> int | None:
        """End a drag; return the unit at which it ended, None where it has no place there."""
        target, self._dropping = self._dropping, None
        legal = target is not None and target[1] is None
        self.give_up(quiet=target is not None and not legal)
        return target[0] if target is not None and legal else None

    def give_up(self, *, quiet: bool = False) -> None:
        """End a drag without doing anything; the reason stays when ``quiet``."""
        self._dropping = self._onto = None
        self._ghost.hide()
        self._place()
        if not quiet:
            self.said.emit(None)

    def _over(self, profile: str, at: QPoint, held_at: int | None, moving: Instance | None) -> None:
        sketch = self._sketch
        if sketch is None or sketch.table.units is None:
            return
        here = self.mapFromGlobal(at)
        ruler, size = self.ruler, sketch.table.profile(profile).size or 1
        held = size / 2 if held_at is None else ruler.unit(held_at + LEFT)
        start, reason = board.nearest(sketch, profile, ruler.unit(here.x()) - held, moving=moving)
        self._dropping = (start, reason)
        self._show_ghost(profile, reason, QRect(*self._box(profile, start)))
        self.said.emit(reason)

    def _let_go(self, block: Block, _at: QPoint) -> None:
        self.let_go.emit(block)

    def carry_job(
        self, name: str, at: QPoint, refusal: Callable[[Instance], Message | None]
    ) -> None:
        """Show the instance that a job would run on if it were dropped now, or why it cannot."""
        here = self.mapFromGlobal(at)
        block = next((each for each in self.blocks if each.geometry().contains(here)), None)
        if block is None:
            self.give_up()
            return
        reason = refusal(block.instance)
        self._onto = (block.instance, reason)
        self._show_ghost(name, reason, block.geometry())
        self.said.emit(reason)

    def drop_job(self) -> Instance | None:
        """Return the instance that a job was dropped on; None where it cannot run there."""
        target = self._onto
        self.give_up(quiet=target is not None and target[1] is not None)
        return target[0] if target is not None and target[1] is None else None

    def _show_ghost(self, text: str, reason: Message | None, where: QRect) -> None:
        self._ghost.legal, self._ghost.text = reason is None, text
        self._ghost.setGeometry(where)
        self._ghost.show()
        self._ghost.raise_()
        self._ghost.update()

    # Drawing

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.box(0, 0, w, h, "print", radius=tokens.CARD)
        sketch = self._sketch
        if sketch is None or self._gpu is None:
            return
        if self._active:
            d.box(1, 1, w - 2, h - 2, None, "printLine", radius=tokens.CARD, width=2)
        self._title(d, sketch, w)
        if sketch.table.units is None:
            reason = say(Message.of("mig.placements-unknown", gpu=sketch.table.name))
            for number, line in enumerate(tokens.wrapped(reason, w - 36, tokens.BODY)):
                d.write(
                    18, self._rows.blocks + 2 + 20 * number, w - 36, 20, line, colour="printLine"
                )
            return
        self._free(d, sketch)
        self._units(d, sketch)
        self._processors(d, sketch)
        self._names(d, sketch)

    def _title(self, d: Drawing, sketch: Sketch, w: int) -> None:
        assert self._gpu is not None
        name = f"{self._label}: {self._gpu.name}" if self._label else self._gpu.name
        used = d.write(18, 10, w - 36, 22, name, px=tokens.SECTION, weight=600,
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
        kind = _KINDS.get(sketch.table.placements, Kind.ESTIMATED)
        d.mark(w - 18 - wide, 22, kind, "printDim")
        d.write(w - 18 - wide + 18, 11, wide, 22, how, px=tokens.LABEL, colour="printDim")

    def _free(self, d: Drawing, sketch: Sketch) -> None:
        """Draw units without an instance, and the largest instance that still has a place."""
        ruler, taken, rows = self.ruler, occupied(sketch.table, sketch.layout), self._rows
        units = sketch.table.units or 0
        found = self._largest
        covered = occupied(sketch.table, [found]) if found is not None else 0
        for unit in range(units):
            if not (taken | covered) >> unit & 1:
                x = ruler.x(unit) + 2
                wide = ruler.x(unit + 1) - x - 2
                d.box(x, rows.blocks, wide, rows.block, None, "printDim", dashed=True)
                text = tr("ui.mig.free")
                if tokens.width(text, tokens.MICRO) < wide - 4:
                    d.write(x, rows.blocks, wide, rows.block, text, px=tokens.MICRO,
                            colour="printDim", align="centre")  # fmt: skip
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
        if self._rows.dimension is not None:
            short = tr("ui.mig.largest.short")
            d.dimension(x, x + wide - 1, self._rows.dimension, short, ink, behind="print")

    def _units(self, d: Drawing, sketch: Sketch) -> None:
        ruler, units, y = self.ruler, sketch.table.units or 0, self._rows.ruler
        d.rule(ruler.x(0), y, ruler.x(units), y, "printLine")
        for unit in range(units + 1):
            d.rule(ruler.x(unit), y, ruler.x(unit), y + 6, "printLine")
            if unit < units:
                x = ruler.x(unit)
                d.write(x, y + 5, ruler.x(unit + 1) - x, 18, str(unit), px=tokens.MICRO,
                        weight=600, colour="printLine", align="centre")  # fmt: skip

    def _processors(self, d: Drawing, sketch: Sketch) -> None:
        """Draw whose the processors are; what is nobody's is hatched."""
        assert self._gpu is not None
        left = board.idle(self._gpu, sketch)
        if left is None:
            return
        ruler = self.ruler
        x, per, y = ruler.left, ruler.width / left.total, self._rows.bar
        for instance in sketch.layout:
            part = board.share(self._gpu, sketch.table, instance.profile)
            wide = (part.processors or 0) * per
            d.box(x, y, max(1.0, wide - 1), 14, fill(sketch, instance.profile), radius=2)
            x += wide
        end = ruler.left + ruler.width
        if end - x > 1:
            d.box(x, y, end - x, 14, None, "printDim", radius=2, dashed=True)
            d.hatch(QRectF(x + 1, y + 1, end - x - 2, 12), "printGrid")

    def _names(self, d: Drawing, sketch: Sketch) -> None:
        """Write what the rows are, and the figures that are always in view."""
        taken, rows = occupied(sketch.table, sketch.layout).bit_count(), self._rows
        room, units = LEFT - 18 - 14, sketch.table.units or 0
        top = float(rows.blocks + 2)
        if rows is ALONE:
            d.write(18, top, room, 20, tr("ui.mig.instances"), weight=600, colour="printLine")
            top += 22
        placed = tr("ui.mig.placed", number=len(sketch.layout), taken=taken, units=units)
        most, *idle = self.in_view()
        for text, ink in ((placed, "printDim"), (most, "#7FE3BE")):
            for line in tokens.wrapped(text, room, tokens.LABEL)[:3]:
                d.write(18, top, room, 17, line, px=tokens.LABEL, colour=ink)
                top += 17
        unit = tr("ui.mig.unit")
        d.write(18, rows.ruler + 2, room, 18, unit, px=tokens.LABEL, colour="printDim")
        for text in idle:
            d.write(18, rows.bar - 2, room, 18, text, px=tokens.LABEL, weight=600,
                    colour="printLine")  # fmt: skip
