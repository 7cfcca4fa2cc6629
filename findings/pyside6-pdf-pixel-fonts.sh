#!/usr/bin/env bash
# A QTextDocument prints text of 16px 12.5 times smaller than text of 12pt.
#
# Versions: PySide6 6.11.3, pypdfium2 5.15.2.
# Expected: 16px and 12pt are the same size, as on a screen of 96 dpi and as in CSS.
# Seen: QTextDocument.print_ scales points to the writer's 1200 dpi, but takes a pixel for one of the
#   writer's. A whole report becomes one page of specks. With document.setPageSize() both print alike.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q PySide6-Essentials==6.11.3 pypdfium2==5.15.2

QT_QPA_PLATFORM=offscreen "$folder/venv/bin/python" - "$folder" <<'PY'
import sys

import pypdfium2
from PySide6.QtCore import QSizeF
from PySide6.QtGui import QPageSize, QPdfWriter, QTextDocument
from PySide6.QtWidgets import QApplication

app = QApplication([])


def height(size, page):
    """Return the height in points of the first letter as it is printed."""
    document = QTextDocument()
    document.setHtml(f'<p style="font-size: {size}">Memory of a training step</p>')
    if page is not None:
        document.setPageSize(page)
    path = f"{sys.argv[1]}/{size}-{page is not None}.pdf"
    writer = QPdfWriter(path)
    writer.setPageSize(QPageSize(QPageSize.PageSizeId.A4))
    document.print_(writer)
    del writer
    _, bottom, _, top = pypdfium2.PdfDocument(path)[0].get_textpage().get_charbox(0)
    return top - bottom


for page in (None, QSizeF(794, 1123)):
    points, pixels = height("12pt", page), height("16px", page)
    print(f"page size set: {page is not None}; 12pt: {points:.2f} pt, 16px: {pixels:.2f} pt high")
    assert (points > 10 * pixels) == (page is None)
    assert page is None or abs(points - pixels) < 0.01
PY
