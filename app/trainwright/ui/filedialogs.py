"""Qt's dialogs for files and folders, with every word in the window's language."""

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QWidget

from trainwright.ui.i18n import tr

_Label = QFileDialog.DialogLabel
_Mode = QFileDialog.FileMode


def file_to_read(parent: QWidget, title: str, kinds: str = "") -> Path | None:
    """Ask for a file; None where nobody chose."""
    found = files_to_read(parent, title, kinds, _Mode.ExistingFile)
    return found[0] if found else None


def files_to_read(
    parent: QWidget, title: str, kinds: str = "", mode: _Mode = _Mode.ExistingFiles
) -> list[Path]:
    """Ask for files; none where nobody chose."""
    return _asked(_dialog(parent, title, kinds, mode))


def file_to_write(
    parent: QWidget, title: str, name: str, kinds: str, suffix: str, *, appends: bool = False
) -> Path | None:
    """Ask where to write, with ``suffix`` where a person types none; None where nobody chose.

    A file that is only appended to may be there already.
    """
    dialog = _dialog(parent, title, kinds, _Mode.AnyFile)
    dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
    dialog.setDefaultSuffix(suffix)
    dialog.setOption(QFileDialog.Option.DontConfirmOverwrite, appends)
    dialog.selectFile(name)
    found = _asked(dialog)
    return found[0] if found else None


def folder(parent: QWidget, title: str, start: Path | None) -> Path | None:
    """Ask for a folder; None where nobody chose."""
    dialog = _dialog(parent, title, "", _Mode.Directory)
    dialog.setOption(QFileDialog.Option.ShowDirsOnly)
    dialog.setDirectory(str(start or ""))
    found = _asked(dialog)
    return found[0] if found else None


def _dialog(parent: QWidget, title: str, kinds: str, mode: _Mode) -> QFileDialog:
    dialog = QFileDialog(parent, title, "", kinds)
    dialog.setFileMode(mode)
    # Qt's Korean words lack these two.
    dialog.setLabelText(_Label.LookIn, tr("ui.file.look-in"))
    dialog.setLabelText(_Label.FileType, tr("ui.file.kind"))
    return dialog


def _asked(dialog: QFileDialog) -> list[Path]:
    chosen = [Path(each) for each in dialog.selectedFiles()] if dialog.exec() else []
    dialog.deleteLater()
    return chosen
