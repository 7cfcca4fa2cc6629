"""Light, dark or as the system: the palette that Qt's own parts take."""

from typing import Literal

from PySide6.QtCore import Qt
from PySide6.QtGui import QPalette
from PySide6.QtWidgets import QApplication

from trainwright.ui import tokens
from trainwright.ui.tokens import ThemeName

Preference = Literal["system", "light", "dark"]

_ROLES = {
    QPalette.ColorRole.Window: "canvas",
    QPalette.ColorRole.WindowText: "text",
    QPalette.ColorRole.Base: "surface",
    QPalette.ColorRole.AlternateBase: "sunken",
    QPalette.ColorRole.Text: "text",
    QPalette.ColorRole.Button: "surface",
    QPalette.ColorRole.ButtonText: "text",
    QPalette.ColorRole.BrightText: "no",
    QPalette.ColorRole.ToolTipBase: "surface",
    QPalette.ColorRole.ToolTipText: "text",
    QPalette.ColorRole.PlaceholderText: "text3",
    QPalette.ColorRole.Highlight: "accent",
    QPalette.ColorRole.HighlightedText: "accentInk",
    QPalette.ColorRole.Link: "accent",
    QPalette.ColorRole.LinkVisited: "accent",
    QPalette.ColorRole.Light: "surface",
    QPalette.ColorRole.Midlight: "sunken",
    QPalette.ColorRole.Mid: "line2",
    QPalette.ColorRole.Dark: "line2",
    QPalette.ColorRole.Shadow: "line2",
    QPalette.ColorRole.Accent: "accent",
}


def resolve(preference: Preference, app: QApplication) -> ThemeName:
    """Return the theme for a preference; a system that does not say gets light."""
    if preference != "system":
        return preference
    dark = app.styleHints().colorScheme() == Qt.ColorScheme.Dark
    return "dark" if dark else "light"


def apply(app: QApplication, name: ThemeName) -> None:
    """Give the application a theme. Fusion with a full palette looks the same everywhere."""
    tokens.use(name)
    if app.style().objectName().lower() != "fusion":
        app.setStyle("Fusion")
    app.setPalette(palette())
    app.setFont(tokens.font())


def palette() -> QPalette:
    """Return the palette of the current theme, every role filled."""
    result = QPalette()
    for role, name in _ROLES.items():
        result.setColor(role, tokens.colour(name))
    for role in (
        QPalette.ColorRole.WindowText,
        QPalette.ColorRole.Text,
        QPalette.ColorRole.ButtonText,
    ):
        result.setColor(QPalette.ColorGroup.Disabled, role, tokens.colour("text3"))
    return result
