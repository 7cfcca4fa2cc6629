"""Slots and lanes: which card and which drive sits where, and with how many lanes."""

from dataclasses import dataclass

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QPainterPath, QPen

from trainwright.catalog.part_records import LaneSource
from trainwright.machine.build import Build
from trainwright.machine.placement import Placement
from trainwright.ui import tokens
from trainwright.ui.i18n import say, tr
from trainwright.ui.inspection import Inspection
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Painted

_HEAD, _ROW, _GAP, _PAD = 44, 46, 10, 18
_CHIP, _WIRES = 150, 130
"""Widths of the processor, and of the lanes beside it."""
_RIGHT = Qt.TextElideMode.ElideRight
_LEAST = 4
"""Rows that are drawn at least, so that an empty board is one."""


@dataclass(frozen=True, slots=True)
class Seat:
    """A slot or socket with what sits in it."""

    name: str
    what: str
    """Empty: it is free."""
    lanes: int | None
    generation: int | None
    source: LaneSource | None
    because: str = ""
    """Why it has less than it could take."""
    drive: bool = False

    @property
    def link(self) -> str:
        """Its lanes in words."""
        if self.lanes is None:
            return tr("pc.unknown")
        generation = tr("pc.lanes.generation", generation=self.generation or 0)
        return f"×{self.lanes}, {generation}" if self.generation else f"×{self.lanes}"


def seats(build: Build, placement: Placement) -> tuple[Seat, ...]:
    """Return where everything sits, cards first, then drives, then what is free."""
    found = [
        Seat(
            gpu.slot or tr("pc.lanes.no-slot"), gpu.record.name, gpu.lanes, gpu.generation,
            gpu.source, " ".join(map(say, gpu.because)),
        )
        for gpu in placement.gpus
    ]  # fmt: skip
    found += [
        Seat(
            (drive.socket or tr("pc.lanes.no-socket")).replace("sata", "SATA"), drive.record.name,
            drive.lanes, drive.generation, drive.source, " ".join(map(say, drive.because)), True,
        )
        for drive in placement.drives
    ]  # fmt: skip
    taken = {seat.name for seat in found}
    board = build.board
    if board is not None:
        found += [
            Seat(slot.id, "", slot.lanes, slot.generation, slot.source)
            for slot in board.slots
            if slot.id not in taken and slot.length == "x16"
        ]
        found += [
            Seat(m2.id, "", m2.lanes, m2.generation, m2.source, drive=True)
            for m2 in board.m2 or ()
            if m2.id not in taken
        ]
    return tuple(sorted(found, key=lambda seat: seat.source == "chipset"))


class LaneDrawing(Painted):
    """The board as a workshop drawing; its text alternative says the same."""

    def __init__(self) -> None:
        super().__init__(tr("pc.lanes.title"))
        self._seats: tuple[Seat, ...] = ()
        self._lost: tuple[str, ...] = ()
        self._inspection: Inspection | None = None

    def show_inspection(self, inspection: Inspection) -> None:
        """Show another machine."""
        self._inspection = inspection
        self._seats = seats(inspection.build, inspection.placement)[:12]
        self._lost = tuple(map(say, inspection.placement.lost))
        spoken = [f"{seat.name}: {seat.what or tr('pc.lanes.free')} {seat.link} {seat.because}"
                  for seat in self._seats]  # fmt: skip
        self.setAccessibleDescription("; ".join((*spoken, *self._lost)))
        self.setFixedHeight(self._height())
        self.updateGeometry()
        self.update()

    def _height(self) -> int:
        rows = max(_LEAST, len(self._seats))
        return _HEAD + rows * (_ROW + _GAP) + 8 + 18 * len(self._notes(self.width())) + _PAD

    def resizeEvent(self, event: object) -> None:
        super().resizeEvent(event)  # type: ignore[arg-type]
        if self._inspection is not None:
            self.setFixedHeight(self._height())

    def sizeHint(self) -> QSize:
        return QSize(460, self._height())

    def minimumSizeHint(self) -> QSize:
        return QSize(460, 200)

    def _notes(self, w: int) -> list[str]:
        """Return what stands below the drawing: what is lost, and what nobody knows."""
        said = list(dict.fromkeys(seat.because for seat in self._seats if seat.because))
        said += self._lost
        inspection = self._inspection
        if inspection is None or inspection.build.board is None:
            said = [tr("pc.lanes.no-board")]
        elif not inspection.placement.complete:
            said.append(tr("pc.lanes.incomplete", board=inspection.build.board.name))
        room = max(120, w - 2 * _PAD - 8)
        return [line for text in said for line in tokens.wrapped(text, room, tokens.LABEL)]

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.box(0, 0, w, h, "print", radius=tokens.CARD)
        self._grid(d, w, h)
        d.write(_PAD, 12, w - 2 * _PAD, 22, tr("pc.lanes.title"), px=tokens.SECTION, weight=600,
                colour="printLine")  # fmt: skip
        used = tokens.width(tr("pc.lanes.title"), tokens.SECTION, 600) + 16
        d.write(_PAD + used, 12, w - 2 * _PAD - used, 22, tr("pc.lanes.note"),
                px=tokens.LABEL, colour="printDim", align="right")  # fmt: skip
        inspection = self._inspection
        if inspection is None:
            return
        rows = max(_LEAST, len(self._seats))
        high = rows * (_ROW + _GAP) - _GAP
        self._chip(d, _HEAD, high)
        for number, seat in enumerate(self._seats):
            self._seat(d, seat, _HEAD + number * (_ROW + _GAP), w)
        y = _HEAD + rows * (_ROW + _GAP) + 4
        for number, text in enumerate(self._notes(w)):
            d.write(_PAD, y + 18 * number, w - 2 * _PAD, 18, text, px=tokens.LABEL,
                    colour="printDim")  # fmt: skip

    def _grid(self, d: Drawing, w: int, h: int) -> None:
        d.save()
        path = QPainterPath()
        path.addRoundedRect(QRectF(0, 0, w, h), tokens.CARD, tokens.CARD)
        d.setClipPath(path)
        for x in range(20, w, 20):
            d.rule(x, 0, x, h, "printGrid")
        for y in range(20, h, 20):
            d.rule(0, y, w, y, "printGrid")
        d.restore()

    def _chip(self, d: Drawing, top: float, high: float) -> None:
        """Draw processor and chipset, which the lanes come from."""
        inspection = self._inspection
        assert inspection is not None
        cpu, board = inspection.build.cpu, inspection.build.board
        split = self._split(high)
        name = cpu.name if cpu is not None else tr("pc.lanes.no-cpu")
        note = ""
        if cpu is not None and cpu.lanes_usable is not None:
            note = tr("pc.lanes.usable", lanes=cpu.lanes_usable)
        self._block(d, top, split, name, note, dashed=cpu is None)
        if split < high:
            chipset = (board.chipset or "") if board is not None else ""
            uplink = board.uplink if board is not None else None
            note = f"PCIe {uplink.generation}.0 ×{uplink.lanes}" if uplink else ""
            title = tr("pc.lanes.chipset-name", name=chipset)
            self._block(d, top + split + _GAP, high - split - _GAP, title, note, dashed=False)

    def _split(self, high: float) -> float:
        """Return how high the processor is drawn: beside what it feeds; the chipset is below."""
        fed = any(seat.source == "chipset" for seat in self._seats)
        if not fed:
            return high
        rows = max(_LEAST, len(self._seats))
        below = max(1, min(rows - 2, sum(seat.source == "chipset" for seat in self._seats)))
        return high - below * (_ROW + _GAP)

    def _block(
        self, d: Drawing, y: float, high: float, name: str, note: str, *, dashed: bool
    ) -> None:
        d.box(_PAD, y, _CHIP, high, "printFill", "printLine", radius=6, dashed=dashed)
        lines = tokens.wrapped(name, _CHIP - 20, tokens.LABEL, 600)[: max(1, int(high // 16) - 1)]
        middle = y + high / 2 - 8 * len(lines) - (8 if note else 0)
        for number, text in enumerate(lines):
            d.write(_PAD + 8, middle + 16 * number, _CHIP - 16, 16, text, px=tokens.LABEL,
                    weight=600, colour="printLine", align="centre")  # fmt: skip
        if note and high >= 44:
            d.write(_PAD + 4, middle + 16 * len(lines), _CHIP - 8, 16, note, px=tokens.MICRO,
                    colour="printDim", align="centre")  # fmt: skip

    def _seat(self, d: Drawing, seat: Seat, y: float, w: int) -> None:
        left = _PAD + _CHIP + _WIRES
        wide = w - left - _PAD
        middle = y + _ROW / 2
        self._lanes(d, seat, middle, left)
        free = not seat.what
        d.box(left, y, wide, _ROW, None if free else "printFill", "printLine",
              radius=6, dashed=free)  # fmt: skip
        icon = "hard-drive" if seat.drive else "cpu"
        d.icon(icon, left + 10, y + 7, 16, "printDim" if free else "printLine")
        title = seat.what or tr("pc.lanes.free")
        warn = bool(seat.because) and not free
        room = wide - 44 - (20 if warn else 0)
        title = tokens.metrics(tokens.BODY, 600).elidedText(title, _RIGHT, room)
        d.write(left + 34, y + 5, room, 18, title, weight=400 if free else 600,
                colour="printDim" if free else "printLine")  # fmt: skip
        d.write(left + 34, y + 24, wide - 40, 16, seat.name, px=tokens.MICRO, colour="printDim")
        if warn:
            d.icon("warning-fill", left + wide - 24, y + 7, 14, "#F4BE58")

    def _lanes(self, d: Drawing, seat: Seat, y: float, right: float) -> None:
        """Draw one line for each lane, and the link in words upon them."""
        x = _PAD + _CHIP
        if seat.drive and seat.source is None and seat.lanes is None:
            return  # on a SATA port, or nowhere
        ink = tokens.colour("printLine", 0.75 if seat.what else 0.3)
        if seat.lanes is None:
            pen = QPen(ink, 1)
            pen.setDashPattern([4, 3])
            d.setPen(pen)
            d.drawLine(int(x), int(y), int(right), int(y))
        else:
            step = min(2.0, 26 / max(1, seat.lanes))
            for number in range(seat.lanes):
                at = y + (number - (seat.lanes - 1) / 2) * step
                d.setPen(QPen(ink, 0.8))
                d.drawLine(int(x), round(at), int(right), round(at))
        text = seat.link
        wide = tokens.width(text, tokens.MICRO, 600) + 12
        middle = (x + right) / 2
        d.box(middle - wide / 2, y - 9, wide, 18, "print", "printLine", radius=4)
        d.write(middle - wide / 2, y - 9, wide, 18, text, px=tokens.MICRO, weight=600,
                colour="printLine" if seat.what else "printDim", align="centre")  # fmt: skip


def rows(inspection: Inspection) -> list[tuple[str, str]]:
    """Return the seats as (place, what sits there and how), for copying."""
    return [
        (seat.name, f"{seat.what or tr('pc.lanes.free')}, {seat.link}")
        for seat in seats(inspection.build, inspection.placement)
    ]
