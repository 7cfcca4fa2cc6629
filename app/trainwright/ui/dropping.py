"""Files that a person drops on a widget."""

from pathlib import Path

from PySide6.QtGui import QDragEnterEvent, QDropEvent


def allow(event: QDragEnterEvent) -> None:
    """Let files be dropped."""
    if event.mimeData().hasUrls():
        event.acceptProposedAction()


def taken(event: QDropEvent) -> list[Path]:
    """Take the drop where it brings files of this computer, and return them."""
    paths = [Path(url.toLocalFile()) for url in event.mimeData().urls() if url.isLocalFile()]
    if paths:
        event.acceptProposedAction()
    return paths
