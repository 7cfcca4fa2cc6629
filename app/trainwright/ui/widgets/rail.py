"""The rail: places by what people come for; the group that is shown lists its other places."""

from collections.abc import Iterator, Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QFrame, QVBoxLayout

from trainwright.ui import tokens
from trainwright.ui.i18n import tr
from trainwright.ui.paint import STATE_ICON, Drawing
from trainwright.ui.widgets.base import Pane

_TOP, _EDGE, _GAP = 58, 8, 2
"""Above the first place, below the last one, between two."""
_LOWEST, _SLIM, _HIGHEST, _BELOW = 38, 48, 60, 28
"""Heights of a place; up to the second one its icon is small; of a place below another."""
_DOT = {"fits": "#3FC594", "tight": "#EFB040", "no": "#F27B4E", "na": "#8796A1"}


class Place(QAbstractButton):
    """One place: an icon with a word, and the state of the verdict where it has one.

    One below another has no icon.
    """

    def __init__(self, id: str, icon: str, head: "Place | None" = None) -> None:
        super().__init__()
        self.id, self.head = id, head
        self._icon = icon
        self._word = tr(f"ui.place.{id}")
        self._state = ""
        self.setCheckable(True)
        self.setAccessibleName(self._word)
        self._height = _BELOW if head else _LOWEST
        self.setFixedWidth(tokens.RAIL_WIDTH - 8)
        self.setMinimumHeight(self._height)

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
            size = 0 if self.head else 24 if h > _SLIM else 20
            top = (h - size - 18) / 2
            if not self.head:
                icon = f"{self._icon}-fill" if on else self._icon
                d.icon(icon, w / 2 - size / 2, top, size, ink)
            d.write(0, top + size + (1 if self.head else 2), w, 16, self._word, px=tokens.MICRO,
                    weight=600 if on else 500, colour=ink, align="centre")  # fmt: skip
            if self._state:
                x, top = (w - 15, (h - 13) / 2) if self.head else (w / 2 + 6.5, max(top - 3.5, 0.5))
                d.box(x, top, 13, 13, "railSel" if on else "rail", radius=6.5)
                d.icon(STATE_ICON[self._state], x + 0.5, top + 0.5, 12, _DOT[self._state])
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
        layout = QVBoxLayout(self)
        layout.setContentsMargins(4, _TOP, 4, _EDGE)
        layout.setSpacing(_GAP)
        for (id, icon), *others in groups:
            head = self._add(Place(id, icon), layout)
            for below, _ in others:
                self._add(Place(below, "", head), layout).hide()
        layout.addStretch(1)
        self._add(Place(*last), layout)

    def _add(self, place: Place, layout: QVBoxLayout) -> Place:
        place.clicked.connect(self._choose)
        self._places.append(place)
        layout.addWidget(place)
        return place

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Share the height: places become slimmer before any leaves a low window."""
        super().resizeEvent(event)
        self._share_height()

    def _share_height(self) -> None:
        heads = [place for place in self._places if place.head is None]
        below = sum(not place.isHidden() for place in self._places) - len(heads)
        room = self.height() - _TOP - _EDGE - below * (_BELOW + _GAP)
        each = room // len(heads) - _GAP
        for place in heads:
            place.take_height(max(_LOWEST, min(_HIGHEST, each)))

    def _choose(self) -> None:
        place = self.sender()
        if isinstance(place, Place):
            self.chosen.emit(place.id)

    def show_place(self, id: str) -> None:
        """Mark the place that is shown, and list the places of its group."""
        (shown,) = self._named(id)
        for place in self._places:
            place.setChecked(place is shown)
            if place.head is not None:
                place.setVisible(place.head is (shown.head or shown))
        self._share_height()

    def show_state(self, id: str, state: str, spoken: str) -> None:
        """Show a verdict at a place, and at the one above it, which is always seen."""
        for place in self._named(id):
            for each in filter(None, (place, place.head)):
                each.show_state(state, spoken)

    def state_of(self, id: str) -> str:
        """Return what a place's dot says; empty where it has none."""
        return next(place.accessibleDescription() for place in self._named(id))

    def _named(self, id: str) -> Iterator[Place]:
        return (place for place in self._places if place.id == id)

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            d.fillRect(self.rect(), tokens.colour("rail"))
            if tokens.theme() == "dark":
                d.rule(w - 1, 0, w - 1, h)
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
