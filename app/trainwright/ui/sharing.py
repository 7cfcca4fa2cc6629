"""The plan's answer as a file to share: an HTML page, or the same page as a PDF."""

from datetime import date
from pathlib import Path

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QMarginsF
from PySide6.QtGui import QPageLayout, QPageSize, QPdfWriter, QTextDocument

from trainwright import saving
from trainwright.export.page import page
from trainwright.ui.i18n import language
from trainwright.ui.session import Session

_DOTS_AN_INCH = 96
"""Of a pixel in CSS (W3C: CSS Values and Units, reference pixel)."""


def share(session: Session, path: Path) -> None:
    """Write the answer that is on screen; a name that ends in .pdf makes a PDF.

    Raises:
        UserError: the file cannot be written.
    """
    plan, facts, report = session.plan, session.facts, session.report
    assert plan is not None
    assert facts is not None
    assert report is not None
    text = page(plan, facts, report, language(), date.today())
    saving.write(path, _printed(text) if path.suffix.lower() == ".pdf" else text)


def _printed(text: str) -> bytes:
    """Return a page of ours as a PDF of A4 pages."""
    data = QByteArray()
    buffer = QBuffer(data)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    writer = QPdfWriter(buffer)
    writer.setCreator("Trainwright")
    writer.setPageSize(QPageSize(QPageSize.PageSizeId.A4))
    writer.setPageMargins(QMarginsF(15, 15, 15, 15), QPageLayout.Unit.Millimeter)
    document = QTextDocument()
    document.setHtml(text)
    # Without a size of its own Qt lays the page out in the writer's dots, 1,200 an inch, and
    # sizes in pixels become specks. With one it scales what is laid out at a screen's.
    document.setPageSize(writer.pageLayout().paintRectPixels(_DOTS_AN_INCH).size().toSizeF())
    document.print_(writer)
    buffer.close()
    return bytes(data.data())
