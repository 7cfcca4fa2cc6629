"""The answer first: fits or not, the margin, and the memory bar as a dimension line."""

from PySide6.QtCore import QRectF, QSize, Signal
from PySide6.QtGui import QPainterPath, QResizeEvent
from PySide6.QtWidgets import QWidget

from trainwright.explain import Kind, Quantity, total
from trainwright.messages import Message
from trainwright.plan.report import Report, Verdict
from trainwright.ui import addresses, tokens
from trainwright.ui.figures import figure, gib, giga, memory, sentence, unit_of_memory
from trainwright.ui.i18n import Text, say, tr
from trainwright.ui.paint import STATE_ICON, Drawing
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Door, Painted

STATE = {
    Verdict.FITS: "fits",
    Verdict.TIGHT: "tight",
    Verdict.QUEUES: "tight",
    Verdict.SPILLS: "no",
    Verdict.NO: "no",
    Verdict.CANNOT_CHECK: "na",
}
"""Which of the four looks a verdict takes."""

_BANNER = 74
_BAR_TOP, _BAR_HEIGHT = 112, 34
_SIDE = 20
_KEY_HEIGHT = 35
_LEAST_SHARE = 0.006
"""Of the used memory: less than 4 pixels of the bar."""


class LegendKey(Door):
    """A term's colour, name and figure; opens its derivation."""

    radius = tokens.CHIP

    def __init__(self, quantity: Quantity, parent: QWidget) -> None:
        address = "memory.derivation" if quantity.role == "small" else f"term.{quantity.role}"
        super().__init__(address, parent)
        self.role = quantity.role
        self._name = say(addresses.short_name(quantity))
        self._quantity: Quantity | None = None
        self._value = ""
        self.show_quantity(quantity)
        self.setToolTip(plain_tip(say(quantity.name)))

    def show_quantity(self, quantity: Quantity) -> None:
        """Show another value of the same term."""
        before, self._quantity = self._quantity, quantity
        if before is not None and before.value == quantity.value and before.kind is quantity.kind:
            return
        small = quantity.value < giga() / 20
        self._value = str(memory(quantity.value)) if small else gib(quantity.value)
        if quantity.kind is Kind.ESTIMATED:
            self._value = f"~{self._value}"
        self.setAccessibleName(sentence(quantity))
        self.update()

    def sizeHint(self) -> QSize:
        value = tokens.width(self._value, tokens.LABEL, 600) + 32
        name = tokens.width(self._name, tokens.LABEL) + 18
        return QSize(int(max(value, name)) + 6, _KEY_HEIGHT)

    def draw(self, d: Drawing, w: int, h: int) -> None:
        assert self._quantity is not None
        d.swatch(3, 4, addresses.colour(self.role), hatched=addresses.hatched(self.role))
        d.write(18, 0, w - 18, 18, self._name, px=tokens.LABEL, colour="text2")
        x = 18.0
        if self._quantity.kind is not Kind.ESTIMATED:
            d.mark(x, 25, self._quantity.kind)
            x += 13
        d.write(x, 16, w - x, 18, self._value, px=tokens.LABEL, weight=600)


class VerdictCard(Painted):
    """Banner, memory bar with the 90 % whisker, and a legend whose keys are doors."""

    opened = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._report: Report | None = None
        self._blank: Text = ""
        self._reason: Text = ""
        self._gpus = 1
        self._provisional = False
        self._keys: list[LegendKey] = []
        self._margin = self._door("memory.free")
        self._bar = self._door("memory.used")
        self._bar.radius = 5
        self.setFixedHeight(216)

    def _door(self, address: str) -> Door:
        door = Door(address, self)
        door.clicked.connect(self._open)
        return door

    def _open(self) -> None:
        door = self.sender()
        if isinstance(door, Door):
            self.opened.emit(door.address)

    def show_report(self, report: Report, gpus: int, *, provisional: bool = False) -> None:
        """Show a report; a provisional one is marked so until the replay has confirmed it."""
        self._report, self._gpus, self._provisional = report, gpus, provisional
        self._show_keys(_worth_naming(report))
        for door, quantity in (
            (self._margin, report.memory.free),
            (self._bar, report.memory.device_used),
        ):
            door.setAccessibleName(sentence(quantity))
            door.show()
        self.setAccessibleName(self.spoken())
        self._place()
        self.update()

    def _show_keys(self, parts: list[Quantity]) -> None:
        """Show the legend; a term that was there keeps its key."""
        known = {key.role: key for key in self._keys}
        self._keys = [
            known.pop(part.role) if part.role in known else self._new_key(part) for part in parts
        ]
        for gone in known.values():
            gone.hide()
            gone.deleteLater()
        for key, part in zip(self._keys, parts, strict=True):
            key.show_quantity(part)
            if key.isHidden():
                key.show()

    def _new_key(self, part: Quantity) -> LegendKey:
        key = LegendKey(part, self)
        key.clicked.connect(self._open)
        return key

    def show_blank(self, title: Text, reason: Text) -> None:
        """Show that there is no answer, and why."""
        self._report, self._blank, self._reason = None, title, reason
        for door in (*self._keys, self._margin, self._bar):
            door.hide()
        self.setAccessibleName(self.spoken())
        self._place()
        self.update()

    def spoken(self) -> str:
        """Return what a screen reader says of the verdict."""
        if self._report is None:
            return f"{say(self._blank)}. {say(self._reason)}"
        return f"{self._title()}, {self._margin_text()[0]} {self._margin_text()[1]}"

    def _title(self) -> str:
        assert self._report is not None
        return tr(f"ui.verdict.{self._report.verdict.value}")

    def _margin_text(self) -> tuple[str, str]:
        assert self._report is not None
        free = self._report.memory.free
        word = "ui.verdict.over" if free.value < 0 else "ui.verdict.free"
        return _margin(abs(free.value)), tr(word)

    def draw(self, d: Drawing, w: int, h: int) -> None:
        state = STATE[self._report.verdict] if self._report else "na"
        d.box(0, 0, w, h, "surface", "line", radius=tokens.CARD)
        clip = QPainterPath()
        clip.addRoundedRect(QRectF(1, 1, w - 2, h - 2), tokens.CARD - 1, tokens.CARD - 1)
        d.save()
        d.setClipPath(clip)
        d.fillRect(QRectF(0, 0, w, _BANNER), tokens.colour(f"{state}Wash"))
        d.restore()
        d.rule(1, _BANNER, w - 1, _BANNER, tokens.colour(f"{state}Fill", 0.35))
        d.icon(STATE_ICON[state], 18, 18, 40, f"{state}Fill")
        if self._report is None:
            self._draw_blank(d, w)
            return
        self._draw_banner(d, w, state)
        self._draw_bar(d, w)

    def _draw_blank(self, d: Drawing, w: int) -> None:
        d.write(70, 12, w - 90, 34, say(self._blank), px=tokens.DISPLAY, weight=600, colour="na")
        d.write(70, 46, w - 90, 20, say(self._reason), colour="text2")
        d.box(_SIDE, _BAR_TOP, w - 2 * _SIDE, _BAR_HEIGHT, "sunken", "line2", dashed=True)
        d.write(_SIDE, _BAR_TOP, w - 2 * _SIDE, _BAR_HEIGHT, tr("ui.verdict.no-figures"),
                px=tokens.LABEL, colour="text3", align="centre")  # fmt: skip

    def _draw_banner(self, d: Drawing, w: int, state: str) -> None:
        assert self._report is not None
        value, word = self._margin_text()
        right = w - _SIDE
        word_width = tokens.width(word, tokens.SECTION, 500)
        value_width = tokens.width(value, tokens.DISPLAY, 600)
        left_of_margin = right - word_width - 8 - value_width
        d.write(right - word_width, 18, word_width, 28, word,
                px=tokens.SECTION, weight=500, colour=state)  # fmt: skip
        d.write(left_of_margin, 12, value_width, 34, value,
                px=tokens.DISPLAY, weight=600, colour=state)  # fmt: skip
        room = left_of_margin - 82
        used = d.write(70, 12, room, 34, self._title(),
                       px=_largest(self._title(), room), weight=600, colour=state)  # fmt: skip
        where = self._where()
        room = left_of_margin - 92 - used
        if tokens.width(where, tokens.SECTION, 500) <= room:
            d.write(80 + used, 18, room, 28, where, px=tokens.SECTION, weight=500, colour=state)
        interval = self._interval_text()
        interval_width = tokens.width(interval) if interval else 0
        if interval:
            d.write(right - interval_width, 46, interval_width, 20, interval, colour="text2")
        room = right - interval_width - 82
        if tokens.width(say(self._cause())) <= room:
            d.write(70, 46, room, 20, say(self._cause()), colour="text2")

    def _where(self) -> str:
        if self._provisional:
            return tr("ui.verdict.provisional")
        return tr("ui.verdict.each" if self._gpus > 1 else "ui.verdict.one", count=self._gpus)

    def _cause(self) -> Text:
        """Say when the peak comes."""
        assert self._report is not None
        curve = self._report.memory.curve
        if curve.live.size == 0:
            return ""
        peak = int(curve.live.sum(axis=0).argmax())
        name = next((n for n, first, end in curve.phases if first <= peak < end), "step")
        return Message.of(f"ui.verdict.cause.{name}")

    def _interval_text(self) -> str:
        """Return what is left, or lacks, in 95 % of cases."""
        assert self._report is not None
        memory_ = self._report.memory
        left = memory_.device_total.value - memory_.device_used_p95.value
        id = "ui.verdict.p95-over" if left < 0 else "ui.verdict.p95-free"
        return tr(id, value=_margin(abs(left)))

    def _draw_bar(self, d: Drawing, w: int) -> None:
        assert self._report is not None
        estimate = self._report.memory
        used, limit = estimate.device_used.value, estimate.device_total.value
        p95 = estimate.device_used_p95.value
        scale = (w - 2 * _SIDE) / (max(used, limit, p95) * 1.015)
        x, y = float(_SIDE), _BAR_TOP
        end_of_use, end_of_card = x + used * scale, x + limit * scale
        self._draw_fill(d, scale, y, end_of_use, end_of_card)
        low = estimate.device_used.interval.low if estimate.device_used.interval else used
        if p95 > low:
            d.whisker(x + low * scale, x + p95 * scale, y + _BAR_HEIGHT / 2)
        d.rule(end_of_card, y - 8, end_of_card, y + _BAR_HEIGHT + 4, "text", width=2)
        self._draw_dimensions(d, x, y - 18, end_of_use, end_of_card)
        self._draw_bar_labels(d, w, x + p95 * scale, end_of_card)

    def _draw_fill(
        self, d: Drawing, scale: float, y: float, end_of_use: float, end_of_card: float
    ) -> None:
        assert self._report is not None
        clip = QPainterPath()
        clip.addRoundedRect(
            QRectF(_SIDE, y, max(end_of_use, end_of_card) - _SIDE, _BAR_HEIGHT), 5, 5
        )
        d.save()
        d.setClipPath(clip)
        d.fillRect(QRectF(_SIDE, y, end_of_card - _SIDE, _BAR_HEIGHT), tokens.colour("sunken"))
        if end_of_card > end_of_use:
            d.hatch(QRectF(end_of_use, y, end_of_card - end_of_use, _BAR_HEIGHT),
                    tokens.colour("line2", 0.55), step=6)  # fmt: skip
        x = float(_SIDE)
        for part in addresses.segments(self._report):
            wide = part.value * scale
            if x < end_of_card:  # what is beyond is painted over
                self._draw_segment(d, part, x, y, min(wide, end_of_card - x))
            x += wide
        if end_of_use > end_of_card:
            over = QRectF(end_of_card, y, end_of_use - end_of_card, _BAR_HEIGHT)
            d.fillRect(over, tokens.colour("surface"))
            d.hatch(over, "noFill", step=5, width=2)
        d.restore()

    def _draw_segment(self, d: Drawing, part: Quantity, x: float, y: float, wide: float) -> None:
        fill = addresses.colour(part.role)
        d.fillRect(QRectF(x, y, wide + 0.4, _BAR_HEIGHT), tokens.colour(fill))
        if addresses.hatched(part.role):
            d.hatch(QRectF(x, y, wide, _BAR_HEIGHT), tokens.colour("surface", 0.6), step=4)
        if x > _SIDE:
            d.fillRect(QRectF(x - 0.5, y, 1, _BAR_HEIGHT), tokens.colour("surface"))
        if addresses.hatched(part.role):
            return
        name, value = say(addresses.short_name(part)), gib(part.value)
        name_width = tokens.width(name, tokens.LABEL, 600)
        value_width = tokens.width(value, tokens.LABEL, 600)
        ink = tokens.ink(fill)
        if name_width + 20 < wide:
            d.write(x + 10, y, name_width + 1, _BAR_HEIGHT, name,
                    px=tokens.LABEL, weight=600, colour=ink)  # fmt: skip
        if name_width + value_width + 40 < wide:
            d.write(x + wide - value_width - 10, y, value_width + 1, _BAR_HEIGHT, value,
                    px=tokens.LABEL, weight=600, colour=ink)  # fmt: skip

    def _draw_dimensions(
        self, d: Drawing, x: float, y: float, end_of_use: float, end_of_card: float
    ) -> None:
        assert self._report is not None
        used = self._report.memory.device_used
        state = STATE[self._report.verdict]
        d.dimension(x, end_of_use, y, f"{tr('ui.verdict.used')}  {figure(used)}", "text")
        left, right = sorted((end_of_use, end_of_card))
        margin = gib(abs(self._report.memory.free.value))
        if end_of_use <= end_of_card:
            d.dimension(left, right, y, margin, state)

    def _draw_bar_labels(self, d: Drawing, w: int, p95_x: float, limit_x: float) -> None:
        assert self._report is not None
        y = _BAR_TOP + _BAR_HEIGHT + 5
        estimate = self._report.memory
        limit = tr("ui.chart.limit", value=gib(estimate.device_total.value))
        limit_width = tokens.width(limit, tokens.LABEL, 600)
        p95 = tr("ui.verdict.p95", value=gib(estimate.device_used_p95.value))
        p95_width = tokens.width(p95, tokens.LABEL, 500)
        end = float(w - _SIDE)
        limit_left = min(limit_x - limit_width / 2, end - limit_width)
        if p95_x > limit_x:  # the nearer to the left stands left, 12 pixels apart
            p95_left = min(p95_x - p95_width / 2, end - p95_width)
            limit_left = min(limit_left, p95_left - 12 - limit_width)
        else:
            p95_left = min(p95_x - p95_width, limit_left - 12 - p95_width)
        d.write(limit_left, y, limit_width + 1, 16, limit, px=tokens.LABEL, weight=600)
        d.write(max(_SIDE, p95_left), y, p95_width + 1, 16, p95,
                px=tokens.LABEL, weight=500, colour="text2")  # fmt: skip

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        """Lay the legend out in rows, and the doors over what they open."""
        w = self.width()
        self._bar.setGeometry(_SIDE - 3, _BAR_TOP - 3, w - 2 * _SIDE + 6, _BAR_HEIGHT + 6)
        if self._report is not None:
            value, word = self._margin_text()
            wide = tokens.width(value, tokens.DISPLAY, 600) + tokens.width(
                word, tokens.SECTION, 500
            )
            wide = max(wide + 8, tokens.width(self._interval_text())) + 16
            self._margin.setGeometry(int(w - _SIDE - wide + 8), 8, int(wide), 60)
        rows = _flow([key.sizeHint().width() for key in self._keys], w - 2 * _SIDE)
        y = _BAR_TOP + _BAR_HEIGHT + 27
        index = 0
        for length in rows:
            keys = self._keys[index : index + length]
            room = w - 2 * _SIDE - sum(key.sizeHint().width() for key in keys)
            gap = room / max(1, length - 1) if len(rows) == 1 and length > 2 else 14.0
            x = float(_SIDE - 3)
            for key in keys:
                key.setGeometry(int(x), y, key.sizeHint().width(), _KEY_HEIGHT)
                x += key.sizeHint().width() + min(gap, 60)
            index += length
            y += _KEY_HEIGHT + 1
        height = 214 + (_KEY_HEIGHT + 1) * max(0, len(rows) - 1)
        if self.height() != height:
            self.setFixedHeight(height)


def _largest(title: str, room: float) -> int:
    """Return the largest size in which a title is whole: its words matter more than its looks."""
    sizes = (tokens.DISPLAY, tokens.FIGURE, tokens.SECTION)
    return next((px for px in sizes if tokens.width(title, px, 600) <= room), tokens.LABEL)


def _margin(size: float) -> str:
    """Return what is left in GiB: finer units would claim what an estimate cannot know."""
    unit = unit_of_memory()
    return f"{gib(size)} {unit}" if size >= giga() / 100 else f"< 0.01 {unit}"


def _worth_naming(report: Report) -> list[Quantity]:
    """Return the terms of the legend: those that a bar can show, and the others as one."""
    parts = addresses.segments(report)
    least = report.memory.device_used.value * _LEAST_SHARE
    small = [part for part in parts if part.value < least]
    if len(small) < 2:
        return list(parts)
    rest = total(Message.of("ui.role.small"), small, role="small")
    return [*(part for part in parts if part.value >= least), rest]


def _flow(widths: list[int], room: int) -> list[int]:
    """Return how many keys stand in each row."""
    rows: list[int] = []
    x = 0
    for width in widths:
        if not rows or x + width > room:
            rows.append(0)
            x = 0
        rows[-1] += 1
        x += width + 10
    return rows
