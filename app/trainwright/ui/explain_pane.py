"""Where a figure comes from: the figure, its derivation as a tree, and how sure it is."""

from PySide6.QtCore import Qt

from trainwright.explain import Interval, Kind, Quantity, Unit
from trainwright.messages import Message
from trainwright.ui import addresses, tokens
from trainwright.ui.charts.axis import Scale
from trainwright.ui.charts.efficiency import EfficiencySection
from trainwright.ui.figures import bare, figure, sentence, sourced, span
from trainwright.ui.i18n import say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.session import Session
from trainwright.ui.widgets.base import Hairline, Heading, Painted, Surface
from trainwright.ui.widgets.derivation import DerivationTree

_WIDTH = 312
_TEXTBOOK = ("memory.used", "memory.allocated", "memory.reserved", "memory.free", "memory.p95")


class ExplainPane(Surface):
    """Renders ``Quantity.walk`` of the figure that the session explains."""

    def __init__(self, session: Session) -> None:
        super().__init__("left", padding=(tokens.L, tokens.L, tokens.L, tokens.M), gap=0)
        self.setFixedWidth(_WIDTH)
        self._session = session
        self._hero = Hero()
        self._tree = DerivationTree()
        self._efficiency = EfficiencySection()
        self._sure = HowSure()
        self.column.addWidget(Heading(Message.of("ui.explain.heading"), "F1"))
        self.column.addSpacing(8)
        self.column.addWidget(self._hero)
        self.column.addSpacing(4)
        self.column.addWidget(self._tree, 1)
        self.column.addWidget(self._efficiency)
        self.column.addSpacing(6)
        self.column.addWidget(Hairline())
        self.column.addSpacing(10)
        self.column.addWidget(Heading(Message.of("ui.explain.sure")))
        self.column.addWidget(self._sure)
        self.column.addSpacing(6)
        self.column.addWidget(KindLegend())
        session.reported.connect(self.refresh)
        session.explained_changed.connect(self.refresh)
        self.refresh()

    def refresh(self) -> None:
        """Show the figure at the session's address in the present report."""
        report = self._session.report
        if report is not None and self._session.provisional:
            return  # the replayed answer follows at once
        quantity = self._session.figure(self._session.explained)
        if quantity is None:
            quantity = self._session.figure(addresses.DEFAULT)
        self._hero.show_quantity(quantity)
        self._tree.show_quantity(quantity, self._heads(quantity))
        self._efficiency.show_explained(self._session.roofs, self._session.explained)
        p95 = report.memory.device_used_p95 if report else None
        at_use = self._session.explained == addresses.DEFAULT
        self._sure.show_quantity(quantity, p95 if at_use else None)

    def _heads(self, quantity: Quantity | None) -> tuple[Quantity, ...]:
        """Return what stands above the parts: the textbook line, for figures that it leads to."""
        report = self._session.report
        if report is None or quantity is None or self._session.explained not in _TEXTBOOK:
            return ()
        return (report.memory.derivation,)

    def focus_tree(self) -> None:
        """Bring the keyboard to the derivation."""
        self._tree.setFocus(Qt.FocusReason.ShortcutFocusReason)


class Hero(Painted):
    """The figure itself, large, with what it is made by."""

    def __init__(self) -> None:
        super().__init__()
        self._quantity: Quantity | None = None
        self._lines: list[str] = []
        self.setFixedHeight(78)

    def show_quantity(self, quantity: Quantity | None) -> None:
        """Show another figure."""
        self._quantity = quantity
        self.setAccessibleName(sentence(quantity) if quantity else tr("ui.explain.nothing"))
        text = _below(quantity) if quantity else tr("ui.explain.nothing")
        self._lines = tokens.wrapped(text, _WIDTH - 32, tokens.MICRO)[:4]
        self.setFixedHeight(58 + 15 * max(1, len(self._lines)) + 6)
        self.update()

    def draw(self, d: Drawing, w: int, h: int) -> None:
        d.rule(0, h - 1, w, h - 1)
        top = 0.0
        if self._quantity is not None:
            d.write(0, 0, w, 18, say(self._quantity.name), px=tokens.LABEL, weight=500,
                    colour="text2")  # fmt: skip
            shown = figure(self._quantity)
            used = d.write(0, 20, w, 32, shown.value, px=24, weight=600)
            used += d.write(used + 5, 24, w - used - 5, 28, shown.unit, weight=500, colour="text2")
            d.mark(min(used + 14, w - 10), 38, self._quantity.kind)
            top = 53.0
        for number, line in enumerate(self._lines):
            d.write(0, top + 15 * number, w, 15, line, px=tokens.MICRO, colour="text3")


def _below(quantity: Quantity) -> str:
    if quantity.note is not None:
        return say(quantity.note)
    if quantity.formula:
        return quantity.formula
    return sourced(quantity) or tr(f"ui.kind.{quantity.kind.value}")


class HowSure(Painted):
    """The figure's interval as a dimension line on its own axis."""

    def __init__(self) -> None:
        super().__init__(height=74)
        self._quantity: Quantity | None = None
        self._p95: Quantity | None = None

    def show_quantity(self, quantity: Quantity | None, p95: Quantity | None) -> None:
        """Show another figure's interval, or the value that it stays below."""
        self._quantity, self._p95 = quantity, p95
        self.setAccessibleName(self._text())
        self.update()

    def _interval(self) -> Interval | None:
        if self._quantity is not None and self._p95 is not None:
            return Interval(self._quantity.value, self._p95.value, 0.95)
        return self._quantity.interval if self._quantity else None

    def _text(self) -> str:
        interval = self._interval()
        if self._quantity is None or interval is None:
            kind = self._quantity.kind.value if self._quantity else "none"
            if self._quantity is not None and self._quantity.unit is not Unit.BYTES:
                kind = {"estimated": "estimated.time"}.get(kind, kind)
            return tr(f"ui.explain.sure.{kind}")
        if self._p95 is not None:
            return tr("ui.explain.p95", value=str(bare(self._p95.value, self._p95.unit)))
        return tr(
            "ui.explain.interval",
            share=interval.probability,
            span=span(interval.low, interval.high, self._quantity.unit),
        )

    def draw(self, d: Drawing, w: int, h: int) -> None:
        for number, line in enumerate(tokens.wrapped(self._text(), w, tokens.MICRO)[:4]):
            d.write(0, 15 * number, w, 15, line, px=tokens.MICRO, colour="text3")
        interval = self._interval()
        if self._quantity is None or interval is None or interval.high <= interval.low:
            return
        value = self._quantity.value
        reach = max(interval.high - value, value - interval.low) * 1.5 or 1.0
        x = Scale(value - reach, value + reach, 4, w - 4)
        y = 42
        d.fillRect(
            int(x(interval.low)), y - 12, int(x(interval.high) - x(interval.low)), 24,
            tokens.colour("accentWash"),
        )  # fmt: skip
        d.rule(4, y, w - 4, y, "line2")
        d.dimension(x(interval.low), x(interval.high), y, "", "accent")
        d.setPen(Qt.PenStyle.NoPen)
        d.setBrush(tokens.colour("fitsFill"))
        d.drawEllipse(round(x(value)) - 4, y - 4, 8, 8)
        self._ends(d, x, interval, w, y + 12)

    def _ends(self, d: Drawing, x: Scale, interval: Interval, w: int, y: float) -> None:
        assert self._quantity is not None
        for value in (interval.low, interval.high):
            if value == self._quantity.value:
                continue
            ratio = (value / self._quantity.value - 1) * 100 if self._quantity.value else 0
            text = f"{'+' if ratio >= 0 else '−'}{abs(ratio):.1f} %"
            d.write(x(value) - 40, y, 80, 14, text, px=tokens.MICRO, colour="text3",
                    align="centre")  # fmt: skip


class KindLegend(Painted):
    """What the marks mean, in as many rows as they need."""

    _KINDS = (Kind.ESTIMATED, Kind.MEASURED, Kind.QUOTED, Kind.ASSUMED, Kind.YOURS)

    def __init__(self) -> None:
        words = [tr(f"ui.kind.{kind.value}") for kind in self._KINDS]
        super().__init__(", ".join(words))
        self._words = words
        wide = [tokens.width(word, tokens.MICRO) + 26 for word in words]
        self._rows = 1 if sum(wide) < _WIDTH - 32 else 2
        self.setFixedHeight(18 * self._rows)

    def draw(self, d: Drawing, w: int, h: int) -> None:
        x = y = 0.0
        for kind, word in zip(self._KINDS, self._words, strict=True):
            wide = tokens.width(word, tokens.MICRO) + 26
            if x + wide - 12 > w:
                x, y = 0.0, y + 18
            d.mark(x, y + 9, kind)
            d.write(x + 13, y, wide - 12, 18, word, px=tokens.MICRO, colour="text2")
            x += wide
