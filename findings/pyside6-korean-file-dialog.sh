#!/usr/bin/env bash
# Qt's own Korean translation leaves two labels of its file dialog in English.
#
# Versions: PySide6 6.11.3.
# Expected: with qtbase_ko installed, each label of a QFileDialog is Korean.
# Seen: "&Look in:" and "Files of &type:" stay, between Korean buttons. The translation still has the texts
#   without their mnemonics ("Look in:"), so that Qt does not find them. A program has to set both labels.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q PySide6-Essentials==6.11.3

QT_QPA_PLATFORM=offscreen "$folder/venv/bin/python" - <<'PY'
from PySide6.QtCore import QLibraryInfo, QTranslator
from PySide6.QtWidgets import QApplication, QFileDialog, QLabel

app = QApplication([])
translator = QTranslator()
folder = QLibraryInfo.path(QLibraryInfo.LibraryPath.TranslationsPath)
assert translator.load("qtbase_ko", folder)
app.installTranslator(translator)
dialog = QFileDialog()
dialog.setOption(QFileDialog.Option.DontUseNativeDialog)
labels = sorted(label.text() for label in dialog.findChildren(QLabel))
print(labels, app.translate("QFileDialog", "Look in:"))
assert labels == ["&Look in:", "Files of &type:", "파일 이름(&N):"]
assert app.translate("QFileDialog", "Look in:") == "다음에서 찾기:"
PY
