"""What the status bar says of the session."""

from typing import TYPE_CHECKING

from trainwright.ui.i18n import tr

if TYPE_CHECKING:
    from trainwright.ui.session import Session

Item = tuple[str, str, str]
"""(icon, text, colour)."""


def items(session: "Session | None") -> list[Item]:
    """Return what goes on, then how many notes the report has."""
    if session is None:
        return []
    activity, report = _activity(session), session.report
    found = [] if activity is None else [activity]
    if report is not None:
        found.append(("bell", tr("ui.status.notes", count=len(report.notes)), "text3"))
    return found


def _activity(session: "Session") -> Item | None:
    if session.tracing is not None:
        return "spinner-gap", tr("ui.status.tracing"), "accent"
    if session.advising:
        return "spinner-gap", tr("ui.status.searching"), "accent"
    if session.provisional:
        return "spinner-gap", tr("ui.status.working"), "accent"
    if session.plan is not None and session.report is not None:
        return "check-circle-fill", tr("ui.status.ready"), "fits"
    return None
