"""Tooltips that show their text as it stands."""

from PySide6.QtGui import Qt

from trainwright.quoting import html


def plain_tip(text: str) -> str:
    """Return what a tooltip shows as the text.

    Qt takes text with tags for HTML, and opens the pictures that it names.
    """
    return html(text) if Qt.mightBeRichText(text) else text
