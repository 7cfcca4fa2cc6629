"""All GPUs that are cut, a strip each: what is dragged goes to the one below the pointer."""

from collections.abc import Callable, Sequence
from functools import partial

from PySide6.QtCore import QPoint, Signal
from PySide6.QtWidgets import QSizePolicy, QVBoxLayout, QWidget

from trainwright.catalog import GpuRecord
from trainwright.messages import Message
from trainwright.mig import board
from trainwright.mig.board import Sketch
from trainwright.mig.boards import Boards, Place
from trainwright.mig.layout import Instance
from trainwright.ui import tokens
from trainwright.ui.widgets.base import Scroll, clear
from trainwright.ui.widgets.migboard import ALONE, BESIDE, Strip
from trainwright.ui.widgets.migpieces import Block, Ruler

IN_VIEW = 2
"""GPUs that are seen at once; of more the others are scrolled to."""


class Strips(QWidget):
    """The strips; tell what a person wants, and change nothing."""

    wanted = Signal(int, str, int)
    """(GPU, profile, start): one more."""
    carried = Signal(object, int, int)
    """(place, GPU, start): an instance goes elsewhere."""
    crossed = Signal(object, int)
    """(place, GPU): an instance goes to another GPU, wherever it leaves most."""
    removed = Signal(object)
    said = Signal(object)
    """Why something is not possible; None: nothing is wrong."""
    chosen = Signal(int)

    def __init__(self) -> None:
        super().__init__()
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.all: list[Strip] = []
        self.active = 0
        self._boards = Boards(())
        self._under: Strip | None = None
        body = QWidget()
        self._column = QVBoxLayout(body)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(tokens.S)
        self._column.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(Scroll(body))

    # What is shown

    def show_boards(
        self,
        gpu: GpuRecord,
        boards: Boards,
        active: int,
        labels: Sequence[str],
        chosen: Place | None = None,
    ) -> None:
        """Show what is drawn for each GPU; ``chosen`` takes the focus."""
        if len(self.all) != len(boards.sketches):
            self._lay_out(len(boards.sketches))
        self._boards = boards
        for number, (strip, sketch) in enumerate(zip(self.all, boards.sketches, strict=True)):
            here = chosen.instance if chosen is not None and chosen.gpu == number else None
            strip.show_sketch(gpu, sketch, here, labels[number])
        self.activate(active)

    def activate(self, number: int) -> None:
        """Mark the GPU that a clicked profile goes to; alone it needs no mark."""
        self.active = number
        for other, strip in enumerate(self.all):
            strip.show_active(len(self.all) > 1 and other == number)

    def _lay_out(self, count: int) -> None:
        self._under = None
        clear(self._column)
        rows = ALONE if count == 1 else BESIDE
        self.all = [Strip(rows) for _ in range(count)]
        for number, strip in enumerate(self.all):
            self._column.addWidget(strip)
            strip.said.connect(self.said)
            strip.carried.connect(partial(self._carry, strip))
            strip.let_go.connect(partial(self._let_go, number))
            strip.given_up.connect(self.give_up)
            strip.stepped.connect(partial(self._step, number))
            strip.crossed.connect(partial(self._cross, number))
            strip.removed.connect(partial(self._remove, number))
            strip.chosen.connect(partial(self.chosen.emit, number))
        self._column.addStretch(1)
        seen = min(count, IN_VIEW)
        self.setFixedHeight(seen * rows.height + (seen - 1) * tokens.S)

    @property
    def strip(self) -> Strip:
        """The one that a clicked profile goes to."""
        return self.all[self.active]

    @property
    def ruler(self) -> Ruler:
        """Where units lie; alike on all of them."""
        return self.strip.ruler

    # What is dragged onto them

    def drag(self, profile: str, at: QPoint) -> None:
        """Show where a profile would land."""
        strip = self._at(at)
        if strip is not None:
            strip.drag(profile, at)

    def drop(self, profile: str) -> None:
        """Take a profile where it was dragged last."""
        strip, self._under = self._under, None
        start = strip.take() if strip is not None else None
        if strip is not None and start is not None:
            self.wanted.emit(self.all.index(strip), profile, start)

    def give_up(self) -> None:
        """End a drag without doing anything."""
        self._under = None
        for strip in self.all:
            strip.give_up()

    def carry_job(
        self, name: str, at: QPoint, refusal: Callable[[Instance], Message | None]
    ) -> None:
        """Show the instance that a job would run on if it were dropped now, or why it cannot."""
        strip = self._at(at)
        if strip is not None:
            strip.carry_job(name, at, refusal)

    def drop_job(self) -> Place | None:
        """Return the instance that a job was dropped on; None where it cannot run there."""
        strip, self._under = self._under, None
        instance = strip.drop_job() if strip is not None else None
        return None if strip is None or instance is None else Place(
            self.all.index(strip), instance)  # fmt: skip

    def _at(self, at: QPoint) -> Strip | None:
        """Return the strip below the pointer; the one that it left forgets the drag."""
        strip = next((each for each in self.all if each.holds(at)), None)
        if strip is not self._under and self._under is not None:
            self._under.give_up()
        self._under = strip
        return strip

    # Instances

    def _carry(self, own: Strip, block: Block, at: QPoint) -> None:
        strip = self._at(at)
        if strip is not None:
            strip.over(block.instance.profile, at, block, own=strip is own)

    def _let_go(self, number: int, block: Block) -> None:
        strip, self._under = self._under, None
        start = strip.take() if strip is not None else None
        if strip is not None and start is not None:
            self.carried.emit(Place(number, block.instance), self.all.index(strip), start)

    def _step(self, number: int, instance: Instance, way: int) -> None:
        start = board.next_start(self._sketch(number), instance, way)
        if start is None:
            key = "ui.mig.no-step.right" if way > 0 else "ui.mig.no-step.left"
            self.said.emit(Message.of(key, profile=instance.profile))
            return
        self.carried.emit(Place(number, instance), number, start)

    def _cross(self, number: int, instance: Instance, way: int) -> None:
        if 0 <= number + way < len(self.all):
            self.crossed.emit(Place(number, instance), number + way)

    def _remove(self, number: int, instance: Instance) -> None:
        self.removed.emit(Place(number, instance))

    def _sketch(self, number: int) -> Sketch:
        return self._boards.sketches[number]
