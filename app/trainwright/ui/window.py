"""The window: rail, top bar, one screen at a time, status bar.

Before the first paint only Qt is loaded. The session, and with it the core, comes right
after: ``wake``. A change of language or theme builds the views again; the session stays.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from PySide6.QtCore import QEvent, QSize, Qt, QTimer
from PySide6.QtGui import (
    QAction,
    QCloseEvent,
    QDragEnterEvent,
    QDropEvent,
    QGuiApplication,
    QIcon,
    QResizeEvent,
    QShowEvent,
)
from PySide6.QtWidgets import QApplication, QHBoxLayout, QVBoxLayout, QWidget

from trainwright import __version__
from trainwright.data import resources
from trainwright.messages import Message
from trainwright.quoting import visible
from trainwright.ui import actions, asking, dropping, i18n, places, status, theme, tokens, usual
from trainwright.ui.core import Core
from trainwright.ui.frame import Frame
from trainwright.ui.i18n import say, tr
from trainwright.ui.preferences import Preferences
from trainwright.ui.screens.start import StartScreen
from trainwright.ui.tasks import end_below
from trainwright.ui.tips import plain_tip
from trainwright.ui.touring import show as show_tour
from trainwright.ui.widgets.base import Door, Pane
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.notice import Notice
from trainwright.ui.widgets.rail import Rail, in_pane
from trainwright.ui.widgets.topbar import StatusBar, TopBar

if TYPE_CHECKING:
    from trainwright.ui.filing import Filing
    from trainwright.ui.history import History
    from trainwright.ui.live import Live
    from trainwright.ui.options import Option
    from trainwright.ui.session import Session


_PATIENCE_S = 0.5
"""How long closing waits for work to end; assumed: longer feels like a window that hangs."""


# Long: a method for each command of the menus, and Qt's events.
class Window(Frame):
    """Holds the session and shows one of its screens."""

    def __init__(self, core: Core | None = None, preferences: Preferences | None = None) -> None:
        super().__init__()
        self.core = core or Core()
        self.preferences = preferences or Preferences()
        self.session: Session | None = None
        self.filing: Filing | None = None
        self.place = "start"
        self._screens: dict[str, QWidget] = {}
        self._live: Live | None = None
        self._asleep: list[Callable[[], None]] = []
        self._woken = False
        self.setWindowTitle("Trainwright")
        self.setAcceptDrops(True)
        self.resize(QSize(1440, 900).boundedTo(self.screen().availableSize()))
        if self.preferences.geometry is not None:
            self.restoreGeometry(self.preferences.geometry)
        self.actions_by_id: dict[str, QAction] = actions.bind(self._callbacks(), self)
        self._build()

    def _callbacks(self) -> actions.Callbacks:
        return {
            "open": self.ask_open,
            "save": self.save,
            "save-as": self.save_as,
            "rename": self.rename,
            "copy-summary": self.copy_summary,
            "share": self.share,
            "quit": self.close,
            "undo": self.undo,
            "redo": self.redo,
            "make-it-fit": self.make_it_fit,
            "free-all": self.free_all,
            "explain": self.explain,
            **{f"go-{place}": partial(self.go, place) for place in places.ALL},
            "pick-model": lambda: self._pick("model"),
            "pick-gpu": lambda: self._pick("gpu"),
            "palette": self.open_palette,
            "theme": self.switch_theme,
            "language": self.switch_language,
            "full-screen": self.switch_full_screen,
            "learn": partial(self.teach, "quantisation"),
            "tour": partial(show_tour, self),
            "shortcuts": partial(asking.show_shortcuts, self),
            "diagnostics": self.offer_diagnostics,
            "about": partial(asking.show_about, self),
        }

    # Views

    def _build(self) -> None:
        """Make all views in the present language and theme."""
        self._screens = {}
        actions.name(self.actions_by_id)
        self.rail = Rail(places.WORK, places.SETTINGS)
        self.rail.chosen.connect(self.go)
        self.top = self._top_bar()
        self.status = StatusBar()
        self.contents = QWidget()
        line = QHBoxLayout(self.contents)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(0)
        line.addWidget(in_pane(self.rail))
        self._column = QVBoxLayout()
        self._column.setSpacing(0)
        line.addLayout(self._column, 1)
        self._column.addWidget(self.top)
        self.body = QWidget()
        self._stack = QVBoxLayout(self.body)
        self._stack.setContentsMargins(0, 0, 0, 0)
        self._column.addWidget(Pane(self.body), 1)
        self._column.addWidget(self.status)
        self.setCentralWidget(self.contents)
        self.notice = Notice(self)
        self.go(self.place)
        self._show_document()

    def _top_bar(self) -> TopBar:
        self.tools: dict[str, Button] = {}
        for id, kind in (("undo", "ghost"), ("redo", "ghost")):
            self.tools[id] = self._tool(id, kind, bare=True)
        self.tools["make-it-fit"] = self._tool("make-it-fit", "secondary")
        self.tools["go-export"] = self._tool("go-export", "primary")
        more = Button("", "ghost", "dots-three", name=tr("ui.menu"), tip=tr("ui.menu.tip"))
        more.setMenu(actions.menu(self.actions_by_id, more))
        self.tools["more"] = more
        bar = TopBar(*self.tools.values())
        bar.search.clicked.connect(self.open_palette)
        return bar

    def _tool(self, id: str, kind: Any, *, bare: bool = False) -> Button:
        action = next(a for a in actions.ACTIONS if a.id == id)
        button = Button("" if bare else action.text, kind, action.icon,
                        name=action.text, tip=f"{action.tip} ({action.shortcut})")  # fmt: skip
        button.clicked.connect(self.actions_by_id[id].trigger)
        return button

    def rebuild(self) -> None:
        """Make all views again: another language, another theme."""
        self.notice.deleteLater()
        self._build()  # which deletes the old ones, in its own time

    def go(self, place: str) -> None:
        """Show a screen; those that need a plan show Start while there is none."""
        if place in places.OF_A_PLAN and (self.session is None or self.session.plan is None):
            place = "start" if self.session is None else place
            if self.session is not None:
                from trainwright.ui.plans import starting_plan

                self.session.open_plan(starting_plan(), None)
        self.place = place
        if place not in self._screens:
            self._screens[place] = places.screen(place, self)
            self._stack.addWidget(self._screens[place])
        focus = QApplication.focusWidget()  # hiding a screen sends it elsewhere
        for name, screen in self._screens.items():
            screen.setVisible(name == place)
        self.rail.show_place(place)
        if place == "monitor":
            self.rail.show_state("monitor", "", "")
        if focus is None or not self.rail.isAncestorOf(focus):
            self._screens[place].setFocus()  # the next Tab goes to the first control of the screen
        entered = getattr(self._screens[place], "entered", None)
        if entered is not None:
            entered()
        self.show_history()

    @property
    def live(self) -> "Live":
        """Live readings; the monitor is loaded when it is first asked for."""
        if self._live is None:
            from trainwright.ui.live import Live

            self._live = Live(self.core.reader, self.preferences, self)
            self._live.noticed.connect(self._notice)
            self._live.alerted.connect(self._mark_monitor)
        return self._live

    def _mark_monitor(self, message: Message) -> None:
        """Leave a dot at the place until somebody looks: a notice goes with the next edit."""
        if self.place != "monitor":
            self.rail.show_state("monitor", "tight", say(message))

    def screen_named(self, place: str) -> QWidget:
        """Return a screen, made if need be."""
        self.go(place)
        return self._screens[place]

    # Waking up

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not self._woken:
            self._woken = True
            QTimer.singleShot(0, self.wake)

    def when_awake(self, then: Callable[[], None]) -> None:
        """Run something as soon as the session is there."""
        if self.session is not None:
            then()
        else:
            self._asleep.append(then)

    def wake(self) -> None:
        """Load the core, now that the window is painted."""
        if self.session is not None:
            return
        from trainwright.profile import interpreter
        from trainwright.ui.filing import Filing
        from trainwright.ui.session import Session

        interpreter.prefer(self.preferences.python)
        icon = resources("icons", "trainwright.svg")
        self.setWindowIcon(QIcon(str(icon)))
        self.session = Session(self.core)
        self.filing = Filing(self, self.session, self.preferences)
        self._listen()
        if self.preferences.alerts not in ("", "[]"):
            _ = self.live  # alerts are watched from the start
        start = self._screens.get("start")
        if isinstance(start, StartScreen):
            start.wake()
        waiting, self._asleep = self._asleep, []
        for then in waiting:
            then()
        self._show_document()

    def _listen(self) -> None:
        assert self.session is not None
        self.session.edited.connect(self._show_document)
        self.session.reported.connect(self._show_answer)
        self.session.advised.connect(self._show_answer)
        self.session.noticed.connect(self._notice)
        self.session.choice_needed.connect(partial(self.go, "advise"))
        self.session.warned.connect(self._warn)
        self.session.recent_models = lambda: self.preferences.recent_models
        self.session.model_chosen.connect(self.preferences.picked)
        self.session.file_wanted.connect(self.ask_open)
        self.session.lesson_wanted.connect(self.teach)

    def _notice(self, message: Message) -> None:
        self.notice.say(say(message))

    def _warn(self, message: Message) -> None:
        self.notice.say(say(message), stays=True)

    def _show_document(self) -> None:
        self.notice.pass_by()  # it spoke of the plan before this edit
        session = self.session
        plan = session.plan if session else None
        for id in ("save", "save-as", "rename", "make-it-fit", "free-all",
                   "go-export", "go-advise", "explain", "pick-model", "pick-gpu"):  # fmt: skip
            self.actions_by_id[id].setEnabled(plan is not None)
            if id in self.tools:
                self.tools[id].setEnabled(plan is not None)
        self.show_history()
        if session is None or plan is None:
            self.top.title.show_document("Trainwright", "", tr("ui.tagline"), saved=True)
            self.setWindowTitle("Trainwright")
        else:
            kept = session.path is not None and not session.unsaved
            state = tr("ui.state.saved" if kept else "ui.state.unsaved")
            from trainwright.ui.names import machine_line, plan_name

            below = machine_line(plan)
            name = plan_name(plan)
            self.top.title.show_document(name, state, below, saved=kept)
            named = visible(name).replace("[*]", "[*][*]")  # Qt's mark of a change
            self.setWindowTitle(f"{named}[*] – Trainwright")
            self.setWindowModified(session.unsaved)
        self._show_answer()

    @property
    def _history(self) -> "History | Session | None":
        """What undo and redo act on: the steps of the place, or else those of the plan."""
        own: History | None = getattr(self._screens.get(self.place), "history", None)
        return own or self.session

    def show_history(self) -> None:
        """Name what undo and redo would do."""
        known = self._history
        for id in ("undo", "redo"):
            label = getattr(known, f"{id}_label") if known is not None else None
            self.actions_by_id[id].setEnabled(label is not None)
            self.tools[id].setEnabled(label is not None)
            text = tr(f"ui.action.{id}.named", what=say(label)) if label else tr(f"ui.action.{id}")
            self.actions_by_id[id].setText(text.replace("&", "&&"))  # no shortcut of a name
            self.tools[id].setToolTip(plain_tip(text))

    def _show_answer(self) -> None:
        report = self.session.report if self.session else None
        for id in ("copy-summary", "share", "learn"):
            settled = report is not None and not (self.session and self.session.provisional)
            self.actions_by_id[id].setEnabled(settled)
        if report is not None:
            from trainwright.ui.widgets.verdict import STATE

            spoken = tr(f"ui.verdict.{report.verdict.value}")
            self.rail.show_state("plan", STATE[report.verdict], spoken)
        else:
            self.rail.show_state("plan", "", "")
        self.status.show_items(status.items(self.session), f"Trainwright {__version__}")

    # Actions

    def start_with(self, what: str, value: object) -> None:
        """Begin as a person chose on the first screen."""
        if self.filing is not None:
            self.filing.start_with(what, value)

    def open_path(self, path: Path, *others: Path) -> None:
        """Open a plan file, a MIG file, a model's, or those of another trainer's run."""
        if self.filing is not None:
            self.filing.open(path, *others)

    def ask_open(self) -> None:
        """Ask for a file and open it."""
        path = asking.file_to_open(self)
        if path is not None:
            self.when_awake(lambda: self.open_path(path))

    def save(self) -> None:
        """Save the plan where it came from; on the place MIG, the board."""
        if self.filing is not None and self.place == "mig":
            self.filing.save_board()
        elif self.filing is not None:
            self.filing.save_plan()

    def save_as(self) -> None:
        """Ask where to, and save the plan."""
        if self.filing is not None:
            self.filing.save_plan_as()

    def rename(self) -> None:
        """Ask for another name of the plan."""
        if self.session is None or self.session.plan is None:
            return
        name = asking.new_name(self, self.session.plan.name)
        if name:
            self.session.set_key("name", name)

    def copy_summary(self) -> None:
        """Put the answer on the clipboard as text."""
        if self.session is None or self.session.report is None:
            return
        from trainwright.ui.summary import summary

        QGuiApplication.clipboard().setText(summary(self.session))
        self.notice.say(tr("ui.copied"))

    def share(self) -> None:
        """Ask where to, and write the answer as a page or a PDF."""
        if self.filing is not None:
            self.filing.share()

    def undo(self) -> None:
        """Take the last edit back."""
        if self._history is not None:
            self._history.undo()

    def redo(self) -> None:
        """Do the edit again that was taken back."""
        if self._history is not None:
            self._history.redo()

    def make_it_fit(self) -> None:
        """Take the best settings that fit."""
        if self.session is not None:
            self.session.make_it_fit()

    def free_all(self) -> None:
        """Leave every setting to the search."""
        if self.session is not None and self.session.plan is not None:
            plan = self.session.plan
            freed = plan.model_copy(update={"settings": type(plan.settings)(), "chosen": {}})
            self.session.put(freed, Message.of("ui.edit.free-all"))

    def explain(self) -> None:
        """Open where the focused figure comes from."""
        focus = QApplication.focusWidget()
        if isinstance(focus, Door):
            focus.click()
            return
        screen: Any = self.screen_named("plan")
        if hasattr(screen, "explain"):
            screen.explain()

    def _pick(self, what: str) -> None:
        screen: Any = self.screen_named("plan")
        if hasattr(screen, "form"):
            getattr(screen.form, what).open()

    def open_palette(self) -> None:
        """Search for anything to do, a file, a lesson, a model or a part."""
        from trainwright.ui.widgets.palette import open_palette

        popup = open_palette(self, self._find_things)
        popup.chosen.connect(self._run_chosen)

    def _find_things(self, text: str) -> "list[Option]":
        from trainwright.ui.finding import find

        return find(self, text) if self.session is not None else []

    def _run_chosen(self, key: str) -> None:
        from trainwright.ui.finding import run

        run(self, key)

    def switch_theme(self) -> None:
        """Turn from light to dark, or back."""
        self.preferences.theme = "dark" if tokens.theme() == "light" else "light"
        self.take_preferences()

    def switch_language(self) -> None:
        """Turn from English to Korean, or back."""
        self.preferences.language = "ko" if i18n.language() == "en" else "en"
        self.take_preferences()

    def take_preferences(self) -> None:
        """Apply the look and the language."""
        app = QApplication.instance()
        assert isinstance(app, QApplication)
        theme.apply(app, theme.resolve(self.preferences.theme, app))
        i18n.use(self.preferences.spoken_language())
        usual.use(self.preferences.usual)
        self.rebuild()

    def switch_full_screen(self) -> None:
        """Fill the screen, or go back."""
        self.setWindowState(self.windowState() ^ Qt.WindowState.WindowFullScreen)

    def offer_diagnostics(self) -> None:
        """Save what helps with a fault report."""
        from trainwright.ui.diagnostics import offer

        offer(self)

    def teach(self, lesson: str) -> None:
        """Show a lesson with the numbers of the plan."""
        if self.session is not None and self.actions_by_id["learn"].isEnabled():
            asking.show_lesson(self, lesson, self.session)

    # Events

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        dropping.allow(event)

    def dropEvent(self, event: QDropEvent) -> None:
        if paths := dropping.taken(event):
            self.when_awake(lambda: self.open_path(*paths))

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.notice.isVisible():
            self.notice.place()

    def changeEvent(self, event: QEvent) -> None:
        super().changeEvent(event)
        if event.type() == QEvent.Type.ActivationChange and self.isActiveWindow():
            QTimer.singleShot(0, self, self._look_at_file)

    def _look_at_file(self) -> None:
        if self.filing is not None:
            self.filing.look_at_files()

    def closeEvent(self, event: QCloseEvent) -> None:
        if self.filing is not None and not self.filing.may_close():
            event.ignore()
            return
        self.preferences.geometry = self.saveGeometry()
        self.end_work()
        super().closeEvent(event)

    def end_work(self) -> None:
        """End everything that runs; unsaved edits stay in their copy."""
        if self.session is not None:
            self.session.close()
            end_below([self, self.session], _PATIENCE_S)
        if self._live is not None:
            self._live.close()
