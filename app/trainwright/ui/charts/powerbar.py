"""What the machine draws for long and for moments, against its power supply."""

from PySide6.QtCore import QRectF, QSize

from trainwright.explain import Kind
from trainwright.machine.power import PowerBudget
from trainwright.messages.units import number
from trainwright.ui import tokens
from trainwright.ui.charts.axis import Scale, ticks
from trainwright.ui.i18n import say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.base import Painted

_FILL = {"gpu": "weights", "cpu": "act"}
_TOP, _BAR, _BELOW = 34, 34, 40


class PowerBar(Painted):
    """A bar of parts, the peak hatched on top, the rating as a line; widths are watts."""

    def __init__(self) -> None:
        super().__init__(tr("pc.power.title"), height=_TOP + _BAR + _BELOW)
        self._power: PowerBudget | None = None

    def minimumSizeHint(self) -> QSize:
        return QSize(380, _TOP + _BAR + _BELOW)

    def show_power(self, power: PowerBudget) -> None:
        """Show another machine's draw."""
        self._power = power
        parts = [f"{say(part.name)} {number(round(part.value))} W" for part in power.parts]
        self.setAccessibleDescription("; ".join(parts))
        self.setToolTip(plain_tip("\n".join(parts)))
        self.update()

    def rows(self) -> list[tuple[str, str]]:
        """Return parts, sum, peak and rating, for copying."""
        power = self._power
        if power is None:
            return []
        found = [(say(part.name), f"{number(round(part.value))} W") for part in power.parts]
        found.append((say(power.sustained.name), f"{number(round(power.sustained.value))} W"))
        found.append((tr("pc.power.peak"), f"{number(round(power.peak_w))} W"))
        if power.rating_w is not None:
            found.append((tr("pc.power.rating"), f"{number(power.rating_w)} W"))
        return found

    def draw(self, d: Drawing, w: int, h: int) -> None:
        power = self._power
        if power is None:
            return
        rating, sustained = power.rating_w or 0.0, power.sustained.value
        x = Scale(0, max(power.peak_w, rating, sustained) * 1.04 or 1, 0, w)
        self._parts(d, power, x)
        peak, end = x(power.peak_w), x(sustained)
        if peak - end > 1:
            zone = QRectF(end, _TOP, peak - end, _BAR)
            d.box(end, _TOP, peak - end, _BAR, "tightWash", radius=0)
            d.hatch(zone, "tightFill")
        self._dimensions(d, power, x, w)
        for value in ticks(0, x.high, 5):
            d.write(x(value) - 30 if value else 0, _TOP + _BAR + 4, 60, 16,
                    f"{number(value)}{'' if value else ' W'}", px=tokens.MICRO, colour="text3",
                    align="centre" if value else "left")  # fmt: skip
        if rating:
            at = round(x(rating))
            d.rule(at, _TOP - 8, at, _TOP + _BAR + 6, "text", width=2)
            text = tr("pc.power.supply", watts=rating)
            wide = tokens.width(text, tokens.LABEL, 600)
            left = min(max(0.0, at - wide / 2), w - wide)
            d.write(left, _TOP + _BAR + 20, wide + 1, 18, text, px=tokens.LABEL, weight=600)

    def _parts(self, d: Drawing, power: PowerBudget, x: Scale) -> None:
        start = 0.0
        for part in power.parts:
            left, right = x(start), x(start + part.value)
            start += part.value
            role = part.role.rstrip("0123456789")
            fill = _FILL.get(role, "ctx")
            d.box(left, _TOP, max(1.0, right - left - 1), _BAR, fill, radius=3)
            if part.kind == Kind.ASSUMED:
                d.hatch(QRectF(left, _TOP, right - left - 1, _BAR),
                        tokens.colour("surface", 0.35))  # fmt: skip
            title = tr(f"pc.power.{role}") if role in _FILL else ""
            watts = number(round(part.value))
            wide = tokens.width(title, tokens.LABEL, 600) + tokens.width(watts, tokens.LABEL, 600)
            ink = tokens.ink(fill)
            if title and right - left > wide + 30:
                d.write(left + 8, _TOP, right - left, _BAR, title, px=tokens.LABEL, weight=600,
                        colour=ink)  # fmt: skip
                d.write(left, _TOP, right - left - 9, _BAR, watts, px=tokens.LABEL, weight=600,
                        colour=ink, align="right")  # fmt: skip

    def _dimensions(self, d: Drawing, power: PowerBudget, x: Scale, w: int) -> None:
        """Draw the sustained draw as a dimension, and the peak above it in words."""
        end, peak = x(power.sustained.value), x(power.peak_w)
        said = tr("pc.power.sustained", watts=round(power.sustained.value))
        d.dimension(0.5, end - 1, _TOP - 12, said, "text")
        more = power.peak_w - power.sustained.value
        if more < 1:
            return
        text = tr("pc.power.transient", watts=round(more))
        wide = tokens.width(text, tokens.LABEL, 600)
        if peak - end > wide + 20:
            d.dimension(end, peak, _TOP - 12, text, "tight")
        else:
            d.write(w - wide - 1, 0, wide + 1, 16, text, px=tokens.LABEL, weight=600,
                    colour="tight")  # fmt: skip
