"""Diagnose: why a run is slow, or why its memory ran out, with the evidence and one-click fixes."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from trainwright.diagnose import budget, predicted, record
from trainwright.diagnose.decide import judge
from trainwright.diagnose.deciding import deciding
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.gathering import Gathered, gather
from trainwright.diagnose.memory_remedies import Help, help_for
from trainwright.diagnose.outofmemory import Explanation, explain, explained_file, is_snapshot
from trainwright.diagnose.readers.files import FileRead
from trainwright.diagnose.verdict import Fix
from trainwright.messages import Message, UserError
from trainwright.plan.schema import Plan
from trainwright.ui import dropping, filedialogs, tokens
from trainwright.ui.core import Core
from trainwright.ui.i18n import Text, say, tr
from trainwright.ui.session import Session
from trainwright.ui.tasks import Latest
from trainwright.ui.widgets.base import Heading, Label, Scroll, Surface, clear, row, slim
from trainwright.ui.widgets.buttons import Button
from trainwright.ui.widgets.controls import Stepper
from trainwright.ui.widgets.diagnosiscards import (
    DecidingCard,
    ErrorCard,
    OthersCard,
    RuledOutCard,
    UnseenCard,
    VerdictCard,
)
from trainwright.ui.widgets.evidencecards import BudgetCard, FilesCard, PredictedCard
from trainwright.ui.widgets.notice import Strip

SECONDS = 10.0
"""Watched at a press of the button; assumed: tens of samples."""
MOST_PROCESSES = 4_194_304
"""Linux's largest process number, 2^22."""
COMMAND = "trainwright diagnose -- python train.py"
CALLBACK = """from trainwright.diagnose.callback import Recorder
recorder = Recorder("run.record.json")
recorder.start()"""


# Long: a method for each command and each answer.
class DiagnoseScreen(Scroll):
    """What to look at stands at the left, what it says at the right."""

    def __init__(self, session: Session, core: Core) -> None:
        body = QWidget()
        super().__init__(body)
        self._session = session
        self._core = core
        self._stopped = False
        self._watching = Latest(self)
        self._watching.done.connect(self._seen)
        self._watching.failed.connect(self._failed)
        self._helping = Latest(self)
        self._helping.done.connect(self._helped)
        self._helping.failed.connect(self._not_helped)
        self._asked: tuple[Explanation, Plan] | None = None
        """Error and plan that the help is for."""
        self._help: Help | None = None
        """None while the plan's remedies are evaluated."""
        self._reading = Latest(self)
        self._reading.done.connect(self._read)
        self._reading.failed.connect(self._failed)
        self.setAcceptDrops(True)
        line = QHBoxLayout(body)
        line.setContentsMargins(tokens.L, tokens.L, tokens.L, tokens.L)
        line.setSpacing(tokens.M)
        left = QVBoxLayout()
        left.setSpacing(tokens.M)
        for card in (self._live(), self._through(), self._stored(), self._pasted()):
            left.addWidget(card)
        left.addStretch(1)
        self._results = QVBoxLayout()
        self._results.setSpacing(tokens.M)
        line.addLayout(left, 2)
        line.addLayout(self._results, 5)
        self._predicted: Callable[[], None] = lambda: None
        """Compares the step that is shown with what the plan predicts now."""
        session.edited.connect(self._plan_came)
        session.reported.connect(self._reported)
        self._had_plan = session.plan is not None
        self._show()

    def _reported(self) -> None:  # a method: a function would keep this screen with the session
        self._predicted()

    # Where evidence comes from

    def _live(self) -> Surface:
        card = _source("live")
        self.pid = Stepper(
            0, name=Message.of("ui.diagnose.pid"), low=0, high=MOST_PROCESSES,
            absent=Message.of("ui.diagnose.any"),
        )  # fmt: skip
        self.watch = Button(Message.of("ui.diagnose.watch"), "primary", "play")
        self.watch.clicked.connect(self._watch)
        self.stop = Button(Message.of("ui.diagnose.stop"), "secondary", "stop")
        self.stop.clicked.connect(self._stop)
        self.stop.hide()
        number = Label(Message.of("ui.diagnose.pid"), px=tokens.LABEL, colour="text2")
        card.column.addWidget(row(number, self.pid, None))
        card.column.addWidget(row(self.watch, self.stop, None))
        return card

    def _through(self) -> Surface:
        card = _source("command")
        card.column.addWidget(_code(COMMAND, "ui.diagnose.copy-command"))
        card.column.addWidget(
            Label(Message.of("ui.diagnose.callback"), px=tokens.LABEL, colour="text2", wrap=True)
        )
        card.column.addWidget(_code(CALLBACK, "ui.diagnose.copy-callback"))
        return card

    def _stored(self) -> Surface:
        card = _source("record")
        self.open = Button(Message.of("ui.diagnose.open"), "secondary", "folder-open")
        self.open.clicked.connect(self.ask_files)
        card.column.addWidget(row(self.open, None))
        return card

    def _pasted(self) -> Surface:
        card = _source("error")
        self.error = QPlainTextEdit()
        self.error.setAccessibleName(tr("ui.diagnose.error.field"))
        self.error.setPlaceholderText(tr("ui.diagnose.error.hint"))
        self.error.setFont(tokens.font(tokens.LABEL, 400, mono=True))
        self.error.setFrameShape(QFrame.Shape.NoFrame)
        self.error.setTabChangesFocus(True)
        self.error.setFixedHeight(110)
        self.error.setStyleSheet(
            f"QPlainTextEdit{{background:{tokens.colour('sunken').name()};"
            f"border:1px solid {tokens.colour('line2').name()};border-radius:6px;padding:4px}}"
        )
        slim(self.error.verticalScrollBar())
        self.explain = Button(Message.of("ui.diagnose.explain"), "secondary", "question")
        self.explain.clicked.connect(self._explain)
        card.column.addWidget(self.error)
        card.column.addWidget(row(self.explain, None))
        return card

    # Looking

    def _watch(self) -> None:
        self._stopped = False
        self.watch.setEnabled(False)
        self.stop.show()
        pid = self.pid.value() or None
        self._tell(Message.of("ui.diagnose.watching", seconds=SECONDS), "info", "na")
        self._watching.submit(partial(self._core.watch, pid, SECONDS, lambda: self._stopped))

    def _stop(self) -> None:
        """Judge from what has been seen until now."""
        self._stopped = True

    def _seen(self, evidence: object) -> None:
        self._rest()
        if isinstance(evidence, Evidence):
            self.show_evidence(evidence)

    def _failed(self, problem: Message) -> None:
        self._rest()
        self._tell(problem, "warning-fill", "no")

    def _rest(self) -> None:
        self.watch.setEnabled(True)
        self.stop.hide()

    def ask_files(self) -> None:
        """Let a person choose records, traces, logs and what tools printed."""
        title, kinds = tr("ui.diagnose.open"), f"*;;*{record.SUFFIX};;*.json *.json.gz;;*.log *.txt"
        chosen = filedialogs.files_to_read(self, title, kinds)
        if chosen:
            self.open_files(chosen)

    def open_files(self, paths: Sequence[Path]) -> None:
        """Judge what files say together; what cannot be read is refused in a line."""
        self._tell(Message.of("ui.diagnose.reading"), "info", "na")
        if len(paths) == 1 and is_snapshot(str(paths[0])):
            self._reading.submit(partial(explained_file, str(paths[0])))
        else:
            self._reading.submit(partial(gather, tuple(paths)))

    def _read(self, found: object) -> None:
        self._session.diagnosed, self._asked = found, None
        self._show()

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        dropping.allow(event)

    def dropEvent(self, event: QDropEvent) -> None:
        if paths := dropping.taken(event):
            self.open_files(paths)

    def _explain(self) -> None:
        try:
            self._session.diagnosed = explain(self.error.toPlainText())
            self._asked = None
        except UserError as error:
            self._tell(error.message, "warning-fill", "no")
        else:
            self._show()

    def show_evidence(self, evidence: Evidence) -> None:
        """Judge evidence and show the verdict."""
        self._session.diagnosed = evidence
        self._show()

    # What it says

    def _show(self) -> None:
        match self._session.diagnosed:
            case Evidence() as evidence:
                self._show_diagnosis(evidence, budget.of(evidence))
            case Gathered() as gathered:
                self._show_diagnosis(gathered.evidence, gathered.budget, gathered.files)
            case Explanation() as explanation:
                self._show_error(explanation)
            case _:
                self._tell(Message.of("ui.diagnose.nothing-yet"), "first-aid", "na")

    def _tell(self, message: Message, icon: str, state: str) -> None:
        self._clear()
        strip = Strip(icon, state)
        strip.label.tell(message)
        self._results.addWidget(strip)
        self._results.addStretch(1)

    def _show_diagnosis(
        self, evidence: Evidence, divided: budget.Budget | None, files: Sequence[FileRead] = ()
    ) -> None:
        diagnosis = judge(evidence)
        self._clear()
        first = VerdictCard(diagnosis, can_apply=self._had_plan)
        first.applied.connect(self._apply)
        self._results.addWidget(first)
        if divided is not None:
            self._results.addWidget(BudgetCard(divided))
            card = PredictedCard()
            self._results.addWidget(card)
            self._predicted = partial(self._compare, card, divided, evidence)
            self._predicted()
        if files:
            self._results.addWidget(FilesCard(files))
        if (trial := deciding(diagnosis, evidence)) is not None:
            self._results.addWidget(DecidingCard(trial))
        if len(diagnosis.verdicts) > 1:
            others = OthersCard(diagnosis, can_apply=self._had_plan)
            others.applied.connect(self._apply)
            self._results.addWidget(others)
        ruled_out = diagnosis.ruled_out
        denied = [each for each in ruled_out if each.signals and each.signals[0].weight < 0]
        undenied = [each for each in ruled_out if each not in denied]
        for causes, heading in ((denied, "ruled-out"), (undenied, "undenied")):
            if causes:
                self._results.addWidget(RuledOutCard(causes, Message.of(f"diagnose.{heading}")))
        if diagnosis.unseen:
            self._results.addWidget(UnseenCard(diagnosis.unseen))
        self._results.addStretch(1)

    def _compare(self, card: PredictedCard, divided: budget.Budget, evidence: Evidence) -> None:
        """Show what the open plan predicts, once its report is there."""
        report, facts = self._session.report, self._session.facts
        if self._session.provisional or report is None or facts is None:
            card.show_comparison(None)
        else:
            card.show_comparison(predicted.compared(divided, evidence, facts, report.time))

    def _clear(self) -> None:
        self._predicted = lambda: None
        clear(self._results)

    def _show_error(self, explanation: Explanation) -> None:
        plan = self._session.plan
        if plan is None:
            self._asked, self._help = None, help_for(explanation)
        elif self._asked is None or self._asked[0] is not explanation:
            self._asked, self._help = (explanation, plan), None
            self._helping.submit(partial(self._core.help, explanation, plan))
        self._clear()
        card = ErrorCard(
            explanation,
            self._help,
            can_apply=plan is not None,
            changed=self._asked is not None and self._asked[1] != plan,
        )
        card.applied.connect(self._apply)
        card.again.connect(self._ask_again)
        self._results.addWidget(card)
        self._results.addStretch(1)

    def _helped(self, found: object) -> None:
        self._help = found if isinstance(found, Help) else None
        self._show()

    def _not_helped(self, problem: Message) -> None:
        self._help = Help(notes=(problem,))
        self._show()

    def _ask_again(self) -> None:
        """Evaluate the remedies on the plan as it stands now."""
        self._asked = None
        self._show()

    def _apply(self, fix: object) -> None:
        """Put a fix into the plan, as one step that undo takes back."""
        if isinstance(fix, Fix) and fix.patch:
            self._session.set_keys(dict(fix.patch), label=fix.says)

    def _plan_came(self) -> None:
        came_or_went = self._had_plan != (self._session.plan is not None)
        self._had_plan = self._session.plan is not None
        if came_or_went or isinstance(self._session.diagnosed, Explanation):
            self._show()


def _source(id: str) -> Surface:
    card = Surface()
    card.column.addWidget(Heading(Message.of(f"ui.diagnose.{id}")))
    card.column.addWidget(
        Label(Message.of(f"ui.diagnose.{id}.about"), px=tokens.LABEL, colour="text2", wrap=True)
    )
    return card


def _code(text: str, name: str) -> QWidget:
    """Return lines to copy, with the button that does."""
    copy = Button("", "secondary", "copy", name=Message.of(name), small=True)
    copy.clicked.connect(partial(_copy, text))
    lines: Text = text
    shown = Label(lines, px=tokens.LABEL, mono=True, wrap=True)
    shown.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    shown.setAccessibleName(say(Message.of(name)))
    holder = QWidget()
    line = QHBoxLayout(holder)
    line.setContentsMargins(0, 0, 0, 0)
    line.addWidget(shown, 1)
    line.addWidget(copy, 0, Qt.AlignmentFlag.AlignTop)
    return holder


def _copy(text: str) -> None:
    QGuiApplication.clipboard().setText(text)
