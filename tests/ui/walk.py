"""Looks for what a person would see as broken: clipped, overlapping or nameless parts.

Run as a program with a window's size (1440x900) and languages, it walks every screen in this
process's scale and prints what it found.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import combinations
from pathlib import Path
from typing import Any

from PySide6.QtCore import QEventLoop, QPoint, QRectF, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QApplication,
    QComboBox,
    QLabel,
    QWidget,
)

from trainwright.data import resources
from trainwright.ui import addresses, i18n, paint
from trainwright.ui.widgets.base import Scroll

SCREENS = (
    "start",
    "plan",
    "advise",
    "compare",
    "export",
    "machine",
    "build",
    "catalog",
    "prices",
    "mig",
    "computer",
    "monitor",
    "verify",
    "diagnose",
    "review",
    "settings",
)
TOLERANCE = 1.5
OTHER = resources("examples", "llama-8b-qlora-rtx4060ti.plan.yaml")


def problems(window: Any, screen: str) -> Iterator[str]:
    """Yield what is wrong with the screen as it stands."""
    paint.runs = []
    window.repaint()  # and with it all that it holds
    for widget in window.findChildren(QWidget):
        if widget.isWindow() and widget.isVisible():
            widget.repaint()
    runs, paint.runs = paint.runs, None
    yield from (f"{screen}: {text}" for text in painted(runs))
    for widget in window.findChildren(QWidget):
        if widget.isVisible():
            yield from (f"{screen}: {text}" for text in wrong_with(widget))


_SAID = ("text", "toolTip", "accessibleName", "accessibleDescription", "placeholderText")


def texts(window: Any) -> Iterator[str]:
    """Yield all that a screen says: painted, written, chosen from, spoken and in tables."""
    paint.runs = []
    shown = [widget for widget in window.findChildren(QWidget) if widget.isVisible()]
    for widget in shown:
        widget.repaint()
    runs, paint.runs = paint.runs, None
    yield from (run.text for run in runs)
    for widget in shown:
        for way in _SAID:
            said = getattr(widget, way, None)
            if callable(said):  # some of ours have parts of that name
                yield said()
        if isinstance(widget, QComboBox):
            yield from (widget.itemText(place) for place in range(widget.count()))
        if isinstance(widget, QAbstractItemView):
            yield from cells(widget)


def cells(table: QAbstractItemView) -> Iterator[str]:
    """Yield the texts of a table's first rows."""
    model = table.model()
    for row in range(min(model.rowCount(), 30)):
        for column in range(model.columnCount()):
            text = model.index(row, column).data()
            if isinstance(text, str):
                yield text


def painted(runs: list[paint.Run]) -> Iterator[str]:
    """Yield painted texts that are cut, leave their widget, or lie over each other."""
    by_widget: dict[QWidget, dict[tuple[str, float, float], paint.Run]] = {}
    for run in runs:
        where = (run.text, run.rect.x(), run.rect.y())
        by_widget.setdefault(run.widget, {})[where] = run
    for widget, own in by_widget.items():
        name = type(widget).__name__
        room = QRectF(widget.rect()).adjusted(-TOLERANCE, -3, TOLERANCE, 3)
        for run in own.values():
            if run.elided:
                yield f"cut in {name}: {run.text!r}"
            elif not room.contains(run.rect):
                yield f"outside {name}: {run.text!r}"
        for one, other in combinations(own.values(), 2):
            shared = one.rect.intersected(other.rect)
            if shared.width() > TOLERANCE and shared.height() > TOLERANCE:
                yield f"overlap in {name}: {one.text!r} and {other.text!r}"


def wrong_with(widget: QWidget) -> Iterator[str]:
    """Yield what is wrong with one widget."""
    if isinstance(widget, QLabel) and widget.text():
        yield from clipped(widget)
    if widget.focusPolicy() != Qt.FocusPolicy.NoFocus and not spoken_name(widget):
        yield f"no accessible name: {type(widget).__name__} in {type(widget.parent()).__name__}"
    if isinstance(widget, Scroll) and widget.widget().width() > widget.viewport().width():
        yield (
            f"content of {widget.widget().width()} in {widget.viewport().width()} px of "
            f"{type(widget.parent()).__name__}, least {widget.widget().minimumSizeHint().width()}"
        )
    layout = widget.layout()
    if layout is not None:
        yield from overlapping(widget)


def clipped(label: QLabel) -> Iterator[str]:
    if label.wordWrap():
        if label.heightForWidth(label.width()) > label.height() + TOLERANCE:
            yield f"label too low: {label.text()!r}"
    elif label.sizeHint().width() > label.width() + TOLERANCE:
        yield f"label too narrow: {label.text()!r}"


def overlapping(parent: QWidget) -> Iterator[str]:
    """Yield pairs of siblings that lie over each other, and widgets that leave their parent.

    Siblings that no layout holds any longer count too: they are painted all the same.
    """
    direct = Qt.FindChildOption.FindDirectChildrenOnly
    children = parent.findChildren(QWidget, options=direct)
    shown = [widget for widget in children if widget.isVisible() and not widget.isWindow()]
    for one, other in combinations(shown, 2):
        if one.geometry().intersects(other.geometry()):
            yield f"{type(one).__name__} over {type(other).__name__} in {type(parent).__name__}"
    for one in shown:
        if one.geometry().right() > parent.width() + TOLERANCE:
            yield f"{type(one).__name__} leaves {type(parent).__name__}"


def spoken_name(widget: QWidget) -> str:
    if widget.accessibleName():
        return widget.accessibleName()
    if isinstance(widget, QAbstractButton):
        return widget.text()
    # Parts of Qt's own compound controls speak with their owner's name.
    owner = widget.parent()
    inner = widget.objectName().startswith("qt_") or type(widget) is QWidget
    return owner.accessibleName() if inner and isinstance(owner, QWidget) else ""


class Mouse:
    """Clicks, and counts them."""

    def __init__(self) -> None:
        self.clicks = 0

    def click(self, widget: QWidget, at: QPoint | None = None) -> None:
        """Click the middle of a widget that is seen, or a place in it."""
        assert widget.isVisible()
        self.clicks += 1
        where = at if at is not None else QPoint(widget.width() // 2, widget.height() // 2)
        QTest.mouseClick(widget, Qt.MouseButton.LeftButton, pos=where)
        QApplication.processEvents()

    def pick(self, opener: QWidget, title: str) -> None:
        """Open a list and choose from it."""
        self.click(opener)
        popup: Any = QApplication.activePopupWidget()
        model = popup.list.model()
        rows = (model.index(row, 0) for row in range(model.rowCount()))
        wanted = next(row for row in rows if row.data() == title)
        popup.list.scrollTo(wanted)
        self.click(popup.list.viewport(), popup.list.visualRect(wanted).center())


def spin(milliseconds: int) -> None:
    loop = QEventLoop()
    QTimer.singleShot(milliseconds, loop.quit)
    loop.exec()


def settled(window: Any) -> bool:
    """Return whether the answer to the last edit is on screen."""
    session = window.session
    if session is None or session.plan is None:
        return False
    return not session.provisional and (session.report is not None or session.problem is not None)


def settle(window: Any) -> None:
    """Wait until every answer has come and every layout has found its place."""
    session = window.session
    for _ in range(200):
        spin(10)
        if not (session.provisional or not session.resting or session.advising):
            break
    still, before = 0, None
    for _ in range(100):
        QApplication.sendPostedEvents()
        spin(25)
        places = [widget.geometry() for widget in window.findChildren(QWidget)]
        still, before = (still + 1 if places == before else 0), places
        if still == 2:
            break


def answered_build(window: Any) -> None:
    """Show builds with every wish, a cloud's rate, and two of them side by side."""
    screen = window.screen_named("build")
    window.session.set_keys(
        {
            "limits.power_w": 1500,
            "limits.wishes": {"used": True, "owned": ["rtx-3090", "2x samsung-990-pro-2tb"]},
            "limits.rates.cloud": "1.99 USD/GPU",
            "limits.also": [{"plan": str(OTHER), "times": 2}, {"plan": "/none.plan.yaml"}],
        }
    )
    for _ in range(500):
        spin(20)
        if not screen.searching:
            break
    for card in screen.cards()[:2]:
        card.compare.click()
    assert screen.pair.isVisible()


def compared(window: Any) -> None:
    """Show four plans side by side."""
    screen = window.screen_named("compare")
    while screen.add.isEnabled():
        screen.add_file(OTHER)
    for _ in range(500):
        spin(20)
        if screen.table is not None:
            break
    assert len(screen.table.heads()) == 5


def waiting_rows(window: Any) -> None:
    """Show rows of a list that no part is known for."""
    from trainwright.prices.imports import Row, waiting

    names = ("Asus DUAL GeForce RTX 4060 Ti Video Card", "지포스 RTX 7090 슈퍼 특가")
    waiting.add(Row(4, name, 399.0, "USD", "new", date(2026, 6, 1), origin="list.md")
                for name in names)  # fmt: skip
    screen = window.screen_named("prices")
    screen.waiting.look.click()
    for _ in range(500):
        spin(20)
        if screen.list.isVisible():
            break
    screen.list.table.setCurrentIndex(screen.list.table.model().index(0, 0))


def over_the_window(window: Any) -> Iterator[str]:
    """Yield what is wrong with what opens over the window."""
    for action in ("shortcuts", "learn", "about", "palette"):
        window.actions_by_id[action].trigger()
        settle(window)
        yield from problems(window, action)
        for shown in (QApplication.activePopupWidget(), QApplication.activeModalWidget()):
            if shown is not None:
                shown.close()
        settle(window)


def walk(window: Any, languages: Sequence[str]) -> list[str]:
    """Visit every screen in each language and return what is wrong; "long" is longer English."""
    found: list[str] = []
    for language in languages:
        i18n.lengthen(language == "long")
        window.preferences.language = "en" if language == "long" else language
        window.take_preferences()
        for screen in SCREENS:
            window.go(screen)
            settle(window)
            found.extend(f"{language} {problem}" for problem in problems(window, screen))
        window.screen_named("catalog").show_tab("guide")
        settle(window)
        found.extend(f"{language} {problem}" for problem in problems(window, "storage guide"))
        for look in (compared, answered_build, waiting_rows):
            look(window)
            settle(window)
            found.extend(f"{language} {problem}" for problem in problems(window, look.__name__))
        found.extend(f"{language} {problem}" for problem in over_the_window(window))
        window.go("plan")
        for address in ("family.products", "stage.backward", addresses.DEFAULT):
            window.session.explain(address)
            settle(window)
            found.extend(f"{language} {problem}" for problem in problems(window, address))
    i18n.lengthen(False)
    return found


def main() -> int:
    """Walk a window of its own; exit code 1 where something is wrong."""
    sys.path.insert(0, str(Path(__file__).parent))
    import fakes

    from trainwright.ui.app import prepared
    from trainwright.ui.preferences import Preferences

    os.environ["TRAINWRIGHT_STATE"] = tempfile.mkdtemp()
    app = QApplication([])
    preferences = Preferences(Path(tempfile.mkdtemp()) / "window.ini")
    preferences.theme = "dark"
    window = prepared(app, fakes.core("tight"), preferences)
    window.resize(*map(int, sys.argv[1].split("x")))
    window.show()
    while window.session is None:
        spin(20)
    window.open_path(fakes.EXAMPLE)
    settle(window)
    assert window.session.report is not None
    found = walk(window, sys.argv[2:])
    print(f"scale {window.devicePixelRatioF():g}")
    print("\n".join(found))
    window.session.draft.discard()
    window.close()
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
