"""What the rules say, gravest first; a row opens to its values, source and remedy."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from trainwright.machine.build import Check
from trainwright.messages import Message
from trainwright.messages.units import number
from trainwright.ui import tokens
from trainwright.ui.i18n import say, tr
from trainwright.ui.paint import Drawing
from trainwright.ui.widgets.base import Heading, Label, Surface, clear
from trainwright.ui.widgets.buttons import Button

ICONS = {
    "error": ("x-circle-fill", "noFill"),
    "warning": ("warning-fill", "tightFill"),
    "unknown": ("question-fill", "naFill"),
    "note": ("info", "accent"),
    "ok": ("check-circle-fill", "fitsFill"),
}
_LEFT = 30


class CheckList(Surface):
    """All checks; those that passed stay folded until they are asked for."""

    limited = Signal(float)
    """Watts that a remedy wants every card limited to."""

    def __init__(self) -> None:
        super().__init__(padding=(tokens.L, tokens.M, tokens.L, tokens.M), gap=0)
        self._heading = Heading(Message.of("pc.checks.title"))
        self.column.addWidget(self._heading)
        self._rows = QVBoxLayout()
        self._rows.setSpacing(0)
        self.column.addLayout(self._rows)
        self._passed: list[QWidget] = []

    def show_checks(self, checks: tuple[Check, ...]) -> None:
        """Show what the rules say."""
        clear(self._rows)
        self._passed = []
        counts = {verdict: sum(c.verdict == verdict for c in checks) for verdict in ICONS}
        said = [tr(f"pc.checks.{verdict}", count=counts[verdict])
                for verdict in ("error", "warning", "unknown") if counts[verdict]]  # fmt: skip
        self._heading.annotate(", ".join(said))
        for check in checks:
            row = CheckRow(check)
            row.limited.connect(self.limited)
            self._rows.addWidget(row)
            if check.verdict == "ok":
                row.hide()
                self._passed.append(row)
        if self._passed:
            self.more = Button(Message.of("pc.checks.passed", count=len(self._passed)), "ghost",
                               "caret-down", small=True)  # fmt: skip
            self.more.setCheckable(True)
            self.more.toggled.connect(self._unfold)
            self._rows.addWidget(self.more)
        if not checks:
            text = Message.of("pc.checks.none")
            self._rows.addWidget(Label(text, px=tokens.LABEL, colour="text2", wrap=True))

    def _unfold(self, on: bool) -> None:
        for row in self._passed:
            row.setVisible(on)


class CheckRow(QWidget):
    """One check with what opens below it."""

    limited = Signal(float)

    def __init__(self, check: Check) -> None:
        super().__init__()
        self.check = check
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        line = QHBoxLayout()
        line.setSpacing(tokens.S)
        self.head = CheckHead(check)
        self.head.toggled.connect(self._open)
        line.addWidget(self.head, 1)
        limit = limit_of(check)
        if limit is not None:
            text = Message.of("pc.checks.limit", watts=limit)
            button = Button(text, "fix", small=True)
            button.clicked.connect(self._limit)
            line.addWidget(button, 0, Qt.AlignmentFlag.AlignVCenter)
        column.addLayout(line)
        self._body = QWidget()
        self._body.hide()
        column.addWidget(self._body)

    def _limit(self) -> None:
        limit = limit_of(self.check)
        if limit is not None:
            self.limited.emit(limit)

    def _open(self, on: bool) -> None:
        if on and self._body.layout() is None:
            self._fill_body()
        self._body.setVisible(on)

    def _fill_body(self) -> None:
        column = QVBoxLayout(self._body)
        column.setContentsMargins(_LEFT, 0, 0, tokens.S)
        column.setSpacing(2)
        check = self.check
        if check.remedy is not None:
            column.addWidget(Label(check.remedy, px=tokens.LABEL, weight=600, wrap=True))
        if check.values:
            text = tr("pc.checks.values", values=values_text(check.values))
            column.addWidget(Label(text, px=tokens.LABEL, colour="text2", wrap=True))
        if check.missing:
            text = tr("pc.checks.missing", fields=", ".join(check.missing))
            column.addWidget(Label(text, px=tokens.LABEL, colour="text2", wrap=True))
        source = tr("pc.checks.source", rule=check.rule, source=check.source or "–")
        column.addWidget(Label(source, px=tokens.LABEL, colour="text3", wrap=True))


class CheckHead(QAbstractButton):
    """Title and sentence; a click opens the row."""

    def __init__(self, check: Check) -> None:
        super().__init__()
        self._icon, self._ink = ICONS[check.verdict]
        self._title, self._text = say(check.title), say(check.message)
        self._lines: list[str] = []
        verdict = tr(f"pc.verdict.{check.verdict}")
        self.setAccessibleName(f"{verdict}: {self._title}. {self._text}")
        self.setAccessibleDescription(tr("pc.checks.open"))
        self.setCheckable(True)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._wrap(400)

    def sizeHint(self) -> QSize:
        return QSize(400, self.height())

    def minimumSizeHint(self) -> QSize:
        return QSize(260, self.height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._wrap(self.width())

    def _wrap(self, w: int) -> None:
        self._lines = tokens.wrapped(self._text, w - _LEFT - 22, tokens.LABEL)
        high = 34 + 17 * (len(self._lines) - 1) + 10
        if high != self.height():
            self.setFixedHeight(high)

    def paintEvent(self, _event: QPaintEvent) -> None:
        w, h = self.width(), self.height()
        with Drawing(self) as d:
            if self.underMouse():
                d.box(0, 1, w, h - 2, "sunken")
            d.icon(self._icon, 4, 6, 17, self._ink)
            d.write(_LEFT, 3, w - _LEFT - 22, 19, self._title, weight=600)
            for number_, text in enumerate(self._lines):
                d.write(_LEFT, 22 + 17 * number_, w - _LEFT - 20, 17, text, px=tokens.LABEL,
                        colour="text2")  # fmt: skip
            caret = "caret-up" if self.isChecked() else "caret-down"
            d.icon(caret, w - 18, 8, 12, "text3")
            d.rule(_LEFT, h - 1, w, h - 1)
            if self.hasFocus():
                d.focus_ring(w, h)


def limit_of(check: Check) -> float | None:
    """Return the power limit that a check's remedy names; None where it is not a setting."""
    remedy = check.remedy
    if remedy is None or not remedy.id.startswith("build.remedy."):
        return None
    limit = remedy.values.get("limit")
    return float(limit) if isinstance(limit, int | float) else None


def values_text(values: Mapping[str, Any]) -> str:
    """Return the values of a check as ``name value``, names as the rules have them."""
    return ", ".join(f"{name.replace('_', ' ')} {_value(value)}" for name, value in values.items())


def _value(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, int | float):
        return number(round(value, 3))
    if isinstance(value, Mapping):
        return f"({values_text(value)})"
    if isinstance(value, list | tuple):
        return "/".join(map(_value, value))
    return say(value) if isinstance(value, Message) else str(value)
