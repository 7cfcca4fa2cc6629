"""The questions that the window asks in dialogs: which file, which name."""

from pathlib import Path

from PySide6.QtWidgets import QFileDialog, QInputDialog, QWidget

from trainwright.ui.i18n import tr


def file_to_open(parent: QWidget) -> Path | None:
    """Ask for a plan or a model's config; None where nobody chose."""
    kinds = tr("ui.open.filter") + " (*.plan.yaml *.yaml *.json)"
    path, _ = QFileDialog.getOpenFileName(parent, tr("ui.action.open"), "", kinds)
    return Path(path) if path else None


def file_to_save(parent: QWidget, plan_name: str) -> Path | None:
    """Ask where to save a plan; None where nobody chose."""
    name = f"{plan_name}.plan.yaml".replace("/", "-")
    kinds = tr("ui.open.filter") + " (*.plan.yaml)"
    path, _ = QFileDialog.getSaveFileName(parent, tr("ui.action.save-as"), name, kinds)
    return Path(path) if path else None


def new_name(parent: QWidget, old: str) -> str:
    """Ask for another name; empty where nobody gave one."""
    title, label = tr("ui.action.rename"), tr("ui.rename.label")
    name, given = QInputDialog.getText(parent, title, label, text=old)
    return name.strip() if given else ""
