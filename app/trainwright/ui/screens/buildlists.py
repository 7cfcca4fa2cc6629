"""A build as a list of parts: saved to a file, or copied."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QMenu, QWidget

from trainwright import saving
from trainwright.messages import Message, UserError
from trainwright.ui import asking
from trainwright.ui.i18n import tr
from trainwright.ui.session import Session
from trainwright.ui.widgets.buildcards import title_of

if TYPE_CHECKING:
    from trainwright.build import Candidate

Act = Callable[[Session, "Candidate", QWidget, str], None]
SUFFIXES = {"markdown": ".md", "csv": ".csv", "pcpartpicker": ".txt", "json": ".json"}
"""Of the files, by the format's name in ``build.lists.FORMATS``."""


def list_menu(session: Session, candidate: "Candidate", parent: QWidget) -> QMenu:
    """Return the menu that saves or copies the parts of a build."""
    menu = QMenu(parent)
    for title, act in (("pc.list.saving", save), ("pc.list.copying", copy)):
        menu.addSection(tr(title))
        for kind in SUFFIXES:
            entry = menu.addAction(tr(f"pc.list.{kind}") + ("…" if act is save else ""))
            entry.triggered.connect(_doing(act, session, candidate, parent, kind))
    return menu


def _doing(act: Act, *about: Any) -> Callable[[], None]:
    """Return what an entry of the menu does; Qt would pass it a state that nobody wants."""

    def do() -> None:
        act(*about)

    return do


def save(session: Session, candidate: "Candidate", parent: QWidget, kind: str) -> None:
    """Ask for a file and write the list to it, whole or not at all."""
    from trainwright.build.lists import FORMATS

    path = asking.list_to_save(parent, title_of(candidate), kind, SUFFIXES[kind])
    if path is None:
        return
    try:
        saving.write(path, FORMATS[kind](candidate))
    except UserError as error:
        session.noticed.emit(error.message)
        return
    session.noticed.emit(Message.of("pc.list.saved", file=path.name))


def copy(session: Session, candidate: "Candidate", _parent: QWidget, kind: str) -> None:
    """Put the list on the clipboard."""
    from trainwright.build.lists import FORMATS

    QGuiApplication.clipboard().setText(FORMATS[kind](candidate))
    session.noticed.emit(Message.of("pc.list.copied", format=Message.of(f"pc.list.{kind}")))
