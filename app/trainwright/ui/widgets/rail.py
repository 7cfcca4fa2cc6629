"""The rail: the places of the work, in their order."""

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QFrame, QVBoxLayout, QWidget

from trainwright.ui import tokens
from trainwright.ui.i18n import tr
from trainwright.ui.paint import STATE_ICON, Drawing
from trainwright.ui.widgets.base import Pane

_TOP, _EDGE, _GAP = 58, 8, 2
"""Above the first place, below the last one, between two."""
_LOWEST, _SLIM, _HIGHEST = 38, 48, 56
"""Heights of a place; up to the middle one its icon is small."""
_DOT = {"fits": "#3FC594", "tight": "#EFB040", "no": "#F27B4E", "na": "#8796A1"}


class Place(QAbstractButton):
    """One place: an icon with a word, and the state of the verdict where it has one."""

    def __init__(self, id: str, icon: str) -> None:
        super().__init__()
        self.id = id
        self._icon = icon
        self._word = tr(f"ui.place.{id}")
        self._state = ""
        self.setCheckable(True)
        self.setAccessibleName(self._word)
        self._height = _LOWEST
        self.setFixedWidth(tokens.RAIL_WIDTH - 16)
        self.setMinimumHeight(_LOWEST)

    def sizeHint(self) -> QSize:
        """Return the height that it has in the rail; in a low window it may have less."""
        return QSize(self.width(), self._height)

    def take_height(self, height: int) -> None:
        """Ask for a height, which holds no window open that a person makes lower."""
        if height != self._height:
            self._height = height
            self.updateGeometry()

    def show_state(self, state: str, spoken: str) -> None:
        """Show the dot of a verdict; an empty state takes it away."""
        if (state, spoken) == (self._state, self.accessibleDescription()):
            return
        self._state = state
        self.setAccessibleDescription(spoken)
        self.update()

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h, on = self.width(), self.height(), self.isChecked()
        with Drawing(self) as d:
            if on or self.underMouse():
                d.box(0, 0, w, h, tokens.colour("railSel", 1.0 if on else 0.6), radius=8)
            ink = "railOn" if on else "railText"
            size = 24 if h > _SLIM else 20
            top = (h - size - 18) / 2
            d.icon(f"{self._icon}-fill" if on else self._icon, w / 2 - size / 2, top, size, ink)
            d.write(0, top + size + 2, w, 16, self._word, px=tokens.MICRO,
                    weight=600 if on else 500, colour=ink, align="centre")  # fmt: skip
            if self._state:
                top = max(top, 4.0)  # the dot stands above the icon
                d.box(w / 2 + 6.5, top - 3.5, 13, 13, "railSel" if on else "rail", radius=6.5)
                d.icon(STATE_ICON[self._state], w / 2 + 7, top - 3, 12, _DOT[self._state])
            if self.hasFocus():
                d.box(0, 0, w, h, None, "railOn", radius=8, width=2)


class Rail(QFrame):
    """The column of places at the left of the window."""

    chosen = Signal(str)

    def __init__(self, groups: Sequence[Sequence[tuple[str, str]]], last: tuple[str, str]) -> None:
        super().__init__()
        self.setFixedWidth(tokens.RAIL_WIDTH)
        self.setAccessibleName(tr("ui.rail"))
        self._places: list[Place] = []
        self._rules: list[QWidget] = []
        layout = QVBoxLayout(self)
        layout.setContentsMargins(8, _TOP, 8, _EDGE)
        layout.setSpacing(_GAP)
        for group in groups:
            if self._places:
                rule = QWidget()
                rule.setFixedHeight(1)
                self._rules.append(rule)
                layout.addWidget(rule)
            for id, icon in group:
                self._add(id, icon, layout)
        layout.addStretch(1)
        self._add(*last, layout)

    def _add(self, id: str, icon: str, layout: QVBoxLayout) -> None:
        place = Place(id, icon)
        place.clicked.connect(self._choose)
        self._places.append(place)
        layout.addWidget(place)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the height: places become slimmer before any leaves a low window."""
        super().resizeEvent(event)
        gaps = (len(self._places) + len(self._rules)) * (_GAP + 1)
        each = (self.height() - _TOP - _EDGE - gaps) // len(self._places)
        for place in self._places:
            place.take_height(max(_LOWEST, min(_HIGHEST, each)))

    def _choose(self) -> None:
        place = self.sender()
        if isinstance(place, Place):
            self.chosen.emit(place.id)

    def show_place(self, id: str) -> None:
        """Mark the place that is shown."""
        for place in self._places:
            place.setChecked(place.id == id)

    def show_state(self, id: str, state: str, spoken: str) -> None:
        """Show a verdict at a place."""
        for place in self._places:
            if place.id == id:
                place.show_state(state, spoken)

    def state_of(self, id: str) -> str:
        """Return what a place's dot says; empty where it has none."""
        return next(place.accessibleDescription() for place in self._places if place.id == id)

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            d.fillRect(self.rect(), tokens.colour("rail"))
            if tokens.theme() == "dark":
                d.rule(w - 1, 0, w - 1, h)
            for rule in self._rules:
                d.rule(22, rule.y(), w - 22, rule.y(), tokens.colour("railText", 0.35))
            draw_logo(d, w / 2 - 17, 12)


def draw_logo(d: Drawing, x: float, y: float) -> None:
    """Draw the sign: a T as a rule with dimension ticks."""
    ink = tokens.colour("logoInk")
    d.box(x, y, 34, 34, "logo", radius=8)
    d.box(x + 7, y + 9, 20, 3.4, ink, radius=1.2)
    d.box(x + 15.3, y + 9, 3.4, 17, ink, radius=1.2)
    d.box(x + 7, y + 15, 2.2, 5, ink, radius=0)
    d.box(x + 24.8, y + 15, 2.2, 5, ink, radius=0)
    d.rule(x + 8, y + 17.5, x + 14, y + 17.5, ink, width=1.6)
    d.rule(x + 20, y + 17.5, x + 26, y + 17.5, ink, width=1.6)


def in_pane(rail: Rail) -> Pane:
    """Return the rail in a pane as wide as it, which scrolls where the window is low."""
    pane = Pane(rail)
    pane.setFixedWidth(rail.width())
    pane.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    return pane
