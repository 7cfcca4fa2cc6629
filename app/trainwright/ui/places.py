"""The places of the window, by what people come for, and the screen of each."""

from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from trainwright.ui.frame import Frame
from trainwright.ui.screens.start import StartScreen

if TYPE_CHECKING:
    from trainwright.ui.session import Session

WORK = (
    (("start", "house"),),
    (
        ("plan", "sliders-horizontal"),
        ("advise", "magic-wand"),
        ("compare", "scales"),
        ("export", "export"),
        ("verify", "flask"),
    ),
    (
        ("build", "shopping-cart"),
        ("machine", "computer-tower"),
        ("catalog", "books"),
        ("prices", "tag"),
    ),
    (("mig", "columns"),),
    (("computer", "desktop-tower"), ("monitor", "activity")),
    (("diagnose", "first-aid"), ("review", "checks")),
)
"""(id, icon) of the places in groups, by what people come for. The rail lists the first place of
each group, and below the one that is shown the others of its group."""
SETTINGS = ("settings", "gear-six")
ALL = tuple(id for group in (*WORK, (SETTINGS,)) for id, _ in group)
OF_A_PLAN = ("plan", "advise", "compare", "export", "machine", "build", "verify")
"""Places that show a plan and cannot do without one."""


def screen(place: str, window: Frame) -> QWidget:
    """Return the screen of a place; what a screen needs is loaded when it is first shown."""
    if place == "start":
        return _start(window)
    if place == "monitor":
        from trainwright.ui.screens.monitor import MonitorScreen

        return MonitorScreen(window.live)
    session = window.session
    assert session is not None
    if place == "computer":
        return _computer(window, session)
    if place == "machine":
        return _machine(window, session)
    if place == "build":
        return _build(window, session)
    if place == "catalog":
        return _catalog(window, session)
    if place == "prices":
        from trainwright.ui.screens.prices import PricesScreen

        prices = PricesScreen()
        prices.stepped.connect(window.show_history)
        return prices
    if place == "mig":
        from trainwright.ui.screens.mig import MigScreen

        mig = MigScreen(session, window.core)
        mig.stepped.connect(window.show_history)
        return mig
    if place == "diagnose":
        from trainwright.ui.screens.diagnose import DiagnoseScreen

        return DiagnoseScreen(session, window.core)
    if place == "review":
        return _review(window, session)
    if place == "settings":
        return _settings(window, session)
    from trainwright.ui.screens.views import view

    return view(place, session, window.preferences)


def _start(window: Frame) -> QWidget:
    start = StartScreen(window.core, window.preferences)
    start.chosen.connect(window.start_with)
    if window.session is not None:
        start.wake()
    return start


def _computer(window: Frame, session: "Session") -> QWidget:
    from trainwright.ui.screens.computer import ComputerScreen

    computer = ComputerScreen(window.core)
    computer.chosen.connect(window.start_with)
    computer.benchmarks.measured.connect(session.ask)
    return computer


def _review(window: Frame, session: "Session") -> QWidget:
    from trainwright.ui.screens.review import ReviewScreen

    review = ReviewScreen(session)
    review.wanted.connect(window.go)
    review.opened.connect(lambda paths: window.open_path(*paths))
    return review


def _settings(window: Frame, session: "Session") -> QWidget:
    from trainwright.ui.screens.settings import SettingsScreen

    settings = SettingsScreen(window.preferences)
    settings.changed.connect(window.take_preferences)
    settings.python_changed.connect(session.ask)
    return settings


def _catalog(window: Frame, session: "Session") -> QWidget:
    from trainwright.messages import Message
    from trainwright.ui.partstaken import take_part
    from trainwright.ui.screens.catalog import CatalogScreen
    from trainwright.ui.screens.storage import StorageGuide

    guide = StorageGuide(session)
    catalog = CatalogScreen((("guide", Message.of("pc.catalog.storage"), guide),))
    catalog.chosen.connect(lambda record: take_part(session, record))
    return catalog


def _machine(window: Frame, session: "Session") -> QWidget:
    from trainwright.ui.screens.machine import MachineScreen

    machine = MachineScreen(session)
    machine.wanted.connect(window.go)
    return machine


def _build(window: Frame, session: "Session") -> QWidget:
    from trainwright.ui.screens.build import BuildScreen

    build = BuildScreen(session)
    build.wanted.connect(window.go)
    return build
