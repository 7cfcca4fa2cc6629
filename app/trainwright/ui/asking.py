"""The questions that the window asks in dialogs: which file, which name."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QInputDialog, QWidget

from trainwright import __version__
from trainwright.messages import Message
from trainwright.ui import filedialogs
from trainwright.ui.i18n import tr

if TYPE_CHECKING:
    from trainwright.ui.session import Session
    from trainwright.ui.widgets.questiondialog import QuestionDialog
    from trainwright.ui.yourcode import Code


def file_to_open(parent: QWidget) -> Path | None:
    """Ask for a plan or a model's file; None where nobody chose."""
    kinds = (
        tr("ui.open.filter") + " (*.plan.yaml *.mig.yaml *.yaml *.yml *.json *.toml *.sh"
        " *.safetensors *.py *.pt2 Modelfile)"
    )
    return filedialogs.file_to_read(parent, tr("ui.action.open"), kinds)


def plan_to_add(parent: QWidget) -> Path | None:
    """Ask for another plan that the same PC is for; None where nobody chose."""
    return _other_plan(parent, tr("pc.work.add"))


def plan_to_compare(parent: QWidget) -> Path | None:
    """Ask for another plan to compare with; None where nobody chose."""
    return _other_plan(parent, tr("ui.compare.add"))


def _other_plan(parent: QWidget, title: str) -> Path | None:
    kinds = tr("ui.open.filter") + " (*.plan.yaml)"
    return filedialogs.file_to_read(parent, title, kinds)


def file_to_save(parent: QWidget, plan_name: str) -> Path | None:
    """Ask where to save a plan; None where nobody chose."""
    name = f"{plan_name}.plan.yaml".replace("/", "-")
    kinds = tr("ui.open.filter") + " (*.plan.yaml)"
    return filedialogs.file_to_write(parent, tr("ui.action.save-as"), name, kinds, "plan.yaml")


def board_to_save(parent: QWidget) -> Path | None:
    """Ask where to save a MIG board; None where nobody chose."""
    kinds = tr("ui.open.filter.mig") + " (*.mig.yaml)"
    return filedialogs.file_to_write(parent, tr("ui.mig.save"), "gpu.mig.yaml", kinds, "mig.yaml")


def page_to_save(parent: QWidget, plan_name: str) -> Path | None:
    """Ask where to write the answer to a plan; None where nobody chose."""
    name = f"{plan_name}.html".replace("/", "-")
    kinds = f"{tr('ui.share.page')} (*.html);;PDF (*.pdf)"
    return filedialogs.file_to_write(parent, tr("ui.action.share"), name, kinds, "html")


def about_edits(parent: QWidget, what: Message) -> str:
    """Ask what becomes of unsaved edits: ``save``, ``discard``, or empty to stay."""
    from trainwright.ui.widgets.questiondialog import QuestionDialog

    dialog = QuestionDialog(parent, Message.of("ui.ask.edits", what=what),
                            Message.of("ui.ask.edits.lost"))  # fmt: skip
    dialog.offer(("discard", "cancel", "save"), "save")
    return _answer(dialog)


def show_lesson(parent: QWidget, lesson: str, session: "Session") -> None:
    """Show a lesson with the numbers of the plan."""
    from trainwright.ui.widgets.lessonpage import LessonPage

    if session.plan is None or session.facts is None or session.report is None:
        return
    page = LessonPage(parent, (session.plan, session.facts, session.report), lesson)
    page.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    page.open()


def show_shortcuts(parent: QWidget) -> None:
    """Show every action with its keys."""
    from trainwright.ui.widgets.palette import ShortcutSheet

    sheet = ShortcutSheet(parent)
    sheet.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    sheet.open()


def show_about(parent: QWidget) -> None:
    """Show the version, the licence, and those of what Trainwright depends on."""
    from trainwright.ui.licences import parts
    from trainwright.ui.widgets.questiondialog import QuestionDialog

    dialog = QuestionDialog(parent, Message.of("ui.about.title", version=__version__),
                            Message.of("ui.about.text"))  # fmt: skip
    dialog.offer(("close",), "close")
    dialog.list_lines([str(part) for part in parts()])
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()


def about_changed_file(
    parent: QWidget,
    path: Path,
    answers: Sequence[str],
    best: str,
    mine: str,
    theirs: Callable[[], str],
) -> str:
    """Ask what to do about a file that somebody else changed; empty where nobody answered."""
    from trainwright.ui.widgets.questiondialog import QuestionDialog

    dialog = QuestionDialog(parent, Message.of("ui.ask.changed", file=path.name),
                            Message.of("ui.ask.changed.text", folder=str(path.parent)))  # fmt: skip
    dialog.offer(answers, best)
    dialog.offer_to_compare(mine, theirs)
    return _answer(dialog)


def _answer(dialog: "QuestionDialog") -> str:
    dialog.exec()
    dialog.deleteLater()
    return "" if dialog.answer == "cancel" else dialog.answer


def new_name(parent: QWidget, old: str) -> str:
    """Ask for another name; empty where nobody gave one."""
    title, label = tr("ui.action.rename"), tr("ui.rename.label")
    name, given = QInputDialog.getText(parent, title, label, text=old)
    return name.strip() if given else ""


def code_to_run(parent: QWidget, file: Path) -> "Code | None":
    """Ask what the model in a file of code takes; an answer is the consent to run it."""
    from trainwright.ui.widgets.codedialog import CodeDialog

    dialog = CodeDialog(parent, file)
    return dialog.code if dialog.exec() else None


def interpreter_to_use(parent: QWidget) -> Path | None:
    """Ask for a Python; None where nobody chose."""
    return filedialogs.file_to_read(parent, tr("ui.settings.python.choose"))


def folder_to_measure(parent: QWidget, before: Path | None) -> Path | None:
    """Ask for a folder on the drive to measure; None where nobody chose."""
    return filedialogs.folder(parent, tr("bench.screen.folder"), before)


def price_list(parent: QWidget) -> Path | None:
    """Ask for a list of prices; None where nobody chose."""
    kinds = tr("prices.screen.file.kinds") + " (*.csv *.tsv *.txt *.md);;* (*)"
    return filedialogs.file_to_read(parent, tr("prices.screen.file"), kinds)


def jobs_file(parent: QWidget) -> Path | None:
    """Ask for a file of jobs that want instances; None where nobody chose."""
    return filedialogs.file_to_read(parent, tr("ui.mig.job.file"), "(*.yaml *.yml)")


def list_to_save(parent: QWidget, name: str, kind: str, suffix: str) -> Path | None:
    """Ask where to save a list of parts; None where nobody chose."""
    title = tr("pc.list.save", format=tr(f"pc.list.{kind}"))
    usual = f"{name}{suffix}".replace("/", "-")
    return filedialogs.file_to_write(parent, title, usual, f"(*{suffix})", suffix.removeprefix("."))
