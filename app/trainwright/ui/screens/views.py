"""The screens that are views of the open plan."""

from PySide6.QtWidgets import QWidget

from trainwright.ui.preferences import Preferences
from trainwright.ui.screens.advise import AdviseScreen
from trainwright.ui.screens.compare import CompareScreen
from trainwright.ui.screens.export import ExportScreen
from trainwright.ui.screens.plan import PlanScreen
from trainwright.ui.screens.verify import VerifyScreen
from trainwright.ui.session import Session


def view(place: str, session: Session, preferences: Preferences) -> QWidget:
    """Return a new view of the session's plan."""
    match place:
        case "plan":
            return PlanScreen(session)
        case "advise":
            return AdviseScreen(session)
        case "compare":
            return CompareScreen(session, preferences)
        case "export":
            return ExportScreen(session, preferences)
        case "verify":
            return VerifyScreen(session, preferences)
    raise KeyError(place)
