"""Export: a live preview of the files that run, and what the target cannot express."""

from pathlib import Path

from PySide6.QtCore import QModelIndex, Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication, QStandardItem, QStandardItemModel
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QListView,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from trainwright.export import ALL, Reasons, files, suiting, target, write
from trainwright.export.header import start_of
from trainwright.export.serving import refusal
from trainwright.messages import Message, UserError
from trainwright.plan.report import Report, Verdict
from trainwright.quoting import shell_word
from trainwright.ui import filedialogs, tokens
from trainwright.ui.i18n import language, tr
from trainwright.ui.preferences import Preferences
from trainwright.ui.session import Session
from trainwright.ui.widgets.base import Hairline, Heading, Label, Surface, clear, slim
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Combo
from trainwright.ui.widgets.notice import Strip
from trainwright.ui.widgets.picker import OptionDelegate


class ExportScreen(QWidget):
    """Target left, files right; the preview follows the plan."""

    def __init__(self, session: Session, preferences: Preferences) -> None:
        super().__init__()
        self._session = session
        self._preferences = preferences
        self._target, self._chosen = next(iter(ALL)), False
        """Until a person chooses one, it is the first that can take the plan."""
        self._files: dict[str, str] = {}
        self._shown = ""
        self._goal = Path()
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(0)
        line.addWidget(self._side())
        line.addWidget(self._preview(), 1)
        session.reported.connect(self.refresh)
        session.advised.connect(self.refresh)
        self.refresh()

    def _side(self) -> Surface:
        side = Surface("right", padding=(tokens.XL, tokens.L, tokens.L, tokens.L), gap=tokens.M)
        side.column.addWidget(Heading(Message.of("ui.export.heading")))
        choices = [(name, Message.of(f"ui.export.target.{name}")) for name in ALL]
        self.targets = Combo(choices, self._target, name=Message.of("ui.export.target"))
        self.targets.chosen.connect(self._choose_target)
        side.column.addWidget(self.targets)
        self._about = Label(px=tokens.LABEL, colour="text2", wrap=True)
        side.column.addWidget(self._about)
        self._made_for = Label(px=tokens.LABEL, colour="text3", wrap=True)
        side.column.addWidget(self._made_for)
        side.column.addWidget(Hairline())
        side.column.addWidget(Heading(Message.of("ui.export.files")))
        self.list = self._file_list()
        side.column.addWidget(self.list, 1)
        self._lost = QVBoxLayout()
        self._lost.setSpacing(6)
        side.column.addLayout(self._lost)
        self.save = Button(Message.of("ui.export.save"), "primary", "download-simple")
        self.save.clicked.connect(self.ask_folder)
        self.copy = Button(Message.of("ui.export.copy"), "secondary", "copy")
        self.copy.clicked.connect(self._copy)
        side.column.addWidget(self.save)
        side.column.addWidget(self.copy)
        side.setFixedWidth(max(340, self.targets.minimumSizeHint().width() + 46))
        return side

    def _file_list(self) -> QListView:
        self._model = QStandardItemModel(self)
        names = QListView()
        names.setModel(self._model)
        names.setItemDelegate(OptionDelegate(names))
        names.setAccessibleName(tr("ui.export.files"))
        names.setFrameShape(QFrame.Shape.NoFrame)
        names.setEditTriggers(QListView.EditTrigger.NoEditTriggers)
        names.setMinimumHeight(120)
        slim(names.verticalScrollBar())
        names.selectionModel().currentChanged.connect(self._choose_file)
        return names

    def _preview(self) -> QWidget:
        body = QWidget()
        column = QVBoxLayout(body)
        column.setContentsMargins(tokens.L, tokens.L, tokens.L, tokens.L)
        column.setSpacing(tokens.M)
        self._warning = Strip("warning-fill", "tight")
        column.addWidget(self._warning)
        self.saved = Strip("check-circle-fill", "fits")
        self.saved.offer(Button(Message.of("ui.export.open"), small=True), "open")
        self.saved.offer(Button(Message.of("ui.export.commands"), small=True), "copy")
        self.saved.answered.connect(self._go_on)
        self.saved.hide()
        column.addWidget(self.saved)
        card = Surface(padding=(tokens.L, tokens.M, tokens.M, tokens.M))
        head = QHBoxLayout()
        self._name = Label(px=tokens.SECTION, weight=600)
        self._count = Label(px=tokens.LABEL, colour="text3")
        head.addWidget(self._name)
        head.addStretch(1)
        head.addWidget(self._count)
        card.column.addLayout(head)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setFrameShape(QFrame.Shape.NoFrame)
        self.text.setFont(tokens.font(tokens.LABEL, 400, mono=True))
        self.text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self.text.setAccessibleName(tr("ui.export.preview"))
        self.text.setTabChangesFocus(True)
        slim(self.text.verticalScrollBar())
        slim(self.text.horizontalScrollBar())
        card.column.addWidget(self.text, 1)
        column.addWidget(card, 1)
        return body

    def entered(self) -> None:
        """Make the files, which rest while the screen is hidden."""
        self.refresh()

    def refresh(self) -> None:
        """Make the files of the plan as it stands."""
        session = self._session
        if not self.isVisible():
            return
        self.save.setEnabled(False)
        self.copy.setEnabled(False)
        if not self._chosen and session.plan is not None and session.report is not None:
            self._target = suiting(session.plan, session.report.settings)
            self.targets.show_value(self._target)
        self._about.tell(Message.of(f"ui.export.target.{self._target}.about"))
        made_for = ", ".join(f"{k} {v}" for k, v in target(self._target).made_for.items())
        self._made_for.tell(Message.of("ui.export.made-for", versions=made_for))
        if session.plan is None or session.report is None:
            self._show_files({})
            waiting = session.problem or Message.of("ui.export.waiting")
            self._warn(waiting)
            return
        settings = session.report.settings
        try:
            made = files(self._target, session.plan, settings, self._reasons(), language())
            lost = target(self._target).not_expressible(session.plan, settings)
        except UserError as error:
            self._show_files({})
            self._show_lost(())
            self._warn(error.message)
            return
        self._show_files(dict(made))
        self._show_lost(lost)
        self._warn_of(session.report)
        self.save.setEnabled(True)
        self.copy.setEnabled(True)

    def _warn_of(self, report: Report) -> None:
        """Say in the verdict's own look that the run may not start, or run out of memory."""
        verdict = report.verdict
        if verdict in (Verdict.FITS, Verdict.QUEUES):  # an engine that queues has its memory
            self._warn(None)
            return
        tight = verdict is Verdict.TIGHT
        self._warning.look("warning-fill" if tight else "x-circle-fill", "tight" if tight else "no")
        id = verdict.value if verdict in (Verdict.NO, Verdict.SPILLS) else "tight"
        self._warn(refusal(report).get("memory_share") or Message.of(f"ui.export.{id}"))

    def _reasons(self) -> Reasons:
        """Return the reasons of the search, where its choice is what is exported."""
        advice, report = self._session.advice, self._session.report
        if report is None:
            return {}
        for choice in advice.choices if advice is not None else ():
            if choice.settings == report.settings:
                return {r.setting.rpartition(".")[2]: r.because for r in choice.reasons}
        return refusal(report)

    def _warn(self, message: Message | None) -> None:
        self._warning.setVisible(message is not None)
        if message is not None:
            self._warning.label.tell(message)

    def _show_lost(self, lost: tuple[Message, ...]) -> None:
        clear(self._lost)
        if not lost:
            return
        self._lost.addWidget(Heading(Message.of("ui.export.lost")))
        for message in lost:
            self._lost.addWidget(Label(message, px=tokens.LABEL, colour="text2", wrap=True))

    def _show_files(self, made: dict[str, str]) -> None:
        names = list(made)
        same = names == list(self._files)
        if made != self._files:
            self.saved.hide()  # it spoke of other files
        self._files = made
        if self._shown not in made:
            self._shown = names[0] if names else ""
        if not same:
            self._list_files(names)
        self._show_text()

    def _list_files(self, names: list[str]) -> None:
        self._model.clear()
        shown = self._shown
        for name in names:
            item = QStandardItem(name)
            lines = tr("ui.export.lines", count=self._files[name].count("\n"))
            item.setData(lines, Qt.ItemDataRole.UserRole + 1)
            item.setData(f"{name}, {lines}", Qt.ItemDataRole.AccessibleTextRole)
            self._model.appendRow(item)
        if shown in names:
            self.list.setCurrentIndex(self._model.index(names.index(shown), 0))

    def _choose_file(self, index: QModelIndex) -> None:
        if index.isValid() and index.data() in self._files:
            self._shown = index.data()
            self._show_text()

    def _show_text(self) -> None:
        text = self._files.get(self._shown, "")
        self._name.setText(self._shown)
        if text == self.text.toPlainText():
            return
        at = self.text.verticalScrollBar().value()
        self.text.setPlainText(text)
        self.text.verticalScrollBar().setValue(at)
        lines = text.count("\n")
        self._count.setText(tr("ui.export.lines", count=lines) if text else "")

    def _choose_target(self, name: str) -> None:
        self._target, self._chosen = name, True
        self.refresh()

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._files.get(self._shown, ""))
        self._session.noticed.emit(Message.of("ui.copied"))

    def ask_folder(self) -> None:
        """Ask where to, and write all files there."""
        start = self._preferences.export_folder or Path.home()
        folder = filedialogs.folder(self, tr("ui.export.save"), start)
        if folder is not None:
            self.save_to(folder)

    def save_to(self, folder: Path) -> bool:
        """Write all files into a folder of the plan's name; returns whether they were written."""
        plan = self._session.plan
        assert plan is not None
        name = "".join(c if c.isalnum() or c in "-_ " else "-" for c in plan.name) or "plan"
        goal = folder / f"{name}-{self._target}"
        try:
            write(self._files, goal)
        except UserError as error:
            self._session.noticed.emit(error.message)
            return False
        self._preferences.export_folder = folder
        self._goal = goal
        self._session.noticed.emit(Message.of("ui.export.saved", path=str(goal)))
        commands = start_of(self._files)
        said = Message.of("ui.export.next", command=commands[-1]) if commands else None
        self.saved.label.tell(said or Message.of("ui.export.saved", path=str(goal)))
        self.saved.show()
        return True

    def _go_on(self, answer: str) -> None:
        """Open the folder of the files, or copy what starts them."""
        if answer == "open":
            QDesktopServices.openUrl(QUrl.fromLocalFile(str(self._goal)))
            return
        lines = (f"cd {shell_word(str(self._goal))}", *start_of(self._files))
        QGuiApplication.clipboard().setText("\n".join(lines))
        self._session.noticed.emit(Message.of("ui.copied"))
