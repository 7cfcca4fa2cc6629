"""The open document and its answer: what every screen is a view of."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from PySide6.QtCore import QObject, QTimer, Signal

from trainwright.advise.advice import Advice, Choice, Relaxation
from trainwright.advise.whatif import WhatIf
from trainwright.estimate.roofpoints import Roofs
from trainwright.explain import Quantity
from trainwright.messages import Message, UserError
from trainwright.mig import drawings
from trainwright.mig.drawings import Drawing
from trainwright.plan import file
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import Facts, Pending
from trainwright.plan.history import History
from trainwright.plan.recovery import Recovered
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.ui import doors, plans
from trainwright.ui.answer import Answer, answer
from trainwright.ui.core import Core
from trainwright.ui.draft import Draft
from trainwright.ui.tasks import Latest, end_below
from trainwright.ui.tracing import Traces, Tracing
from trainwright.ui.whatifs import WhatIfs
from trainwright.workload import FullSettings

_ASK_MS = 30
"""Pause after an edit before the full answer is asked for; it would compete with the repaint."""


class Session(QObject):  # Long: document, answers and errands still live here together.
    """Holds the history and asks the core, off the UI thread, whenever the plan changes."""

    edited = Signal()
    """The plan is another one."""
    reported = Signal()
    """Report, problem, or what is traced changed."""
    advised = Signal()
    """The search answered, or its answer no longer holds."""
    whatifs_found = Signal()
    choice_needed = Signal()
    """Nothing fits as it was asked: a person has to choose a way out."""
    """What other settings and parts would do is known."""
    explained_changed = Signal()
    noticed = Signal(object)
    """A message that a person should see once."""
    warned = Signal(object)
    """Likewise, and the next edit does not take it back."""
    model_chosen = Signal(str)
    """A shipped model was picked: the window remembers it."""
    file_wanted = Signal()
    """A person wants to name a file of their own."""
    lesson_wanted = Signal(str)
    """A person wants to know what a setting is about."""

    def __init__(self, core: Core) -> None:
        super().__init__()
        self.core = core
        self.draft: Draft[Plan] = Draft(file.text_of, file.SUFFIX)
        self.draft.warned.connect(self.warned)
        self.board: Draft[Drawing] = Draft(drawings.text_of, drawings.SUFFIX)
        self.board.warned.connect(self.warned)
        self.may_replace: Callable[[], bool] = lambda: True
        """Asks what becomes of unsaved edits before another plan is opened; the window knows how.
        Where nobody is asked they stay in their copy."""
        self.report: Report | None = None
        self.roofs: Roofs | None = None
        """The operators of a step; those of the plan before while the report is provisional. None
        where the time is not made of them."""
        self.provisional = False  # whether it is a first look, or of the plan before the last edit
        self.settings: FullSettings | None = None
        """Every setting decided: what the report is for, or what is being traced."""
        self.facts: Facts | None = None
        self.problem: Message | None = None
        self.tracing: Tracing | None = None
        self.unconsented: str | None = None
        """The file whose code must run before there are figures, until a person allows it."""
        self._allowed: set[str] = set()
        self.advice: Advice | None = None
        self.advice_problem: Message | None = None
        self.whatifs: Sequence[WhatIf] = ()
        self.explained = doors.DEFAULT
        self.diagnosed: object = None  # what Diagnose shows, and shows again when it is built again
        self.reviewed: object = None  # the files of another trainer that Review shows, likewise
        self.cut: object = None  # the board of instances, likewise
        self.compared: tuple[Plan, ...] = ()  # plans that Compare shows with this one
        self.recent_models: Callable[[], tuple[str, ...]] = tuple
        """Ids of models picked lately; the window knows them."""
        self._history: History | None = None
        self._answers = Latest(self)
        self._answers.done.connect(self._answered)
        self._answers.failed.connect(self._failed)
        self._question: Callable[[], Answer] | None = None
        self._ask_timer = QTimer(self, singleShot=True, interval=_ASK_MS)
        self._ask_timer.timeout.connect(self._submit)
        self._neighbours = WhatIfs(core, self)
        self._neighbours.found.connect(self._whatifs_came)
        self._limiting = Latest(self)
        self._limiting.done.connect(self._limits_came)
        self._advising = Latest(self)
        self._advising.done.connect(self._advice_came)
        self._advising.failed.connect(self._advice_failed)
        self._fit_when_advised = self._fit_when_traced = False
        self._fitted: Facts | None = None
        """Facts after whose fit nothing more comes: a profile may hold for one point alone."""
        self.advising = False  # whether the search runs for the plan as it stands
        self._traces = Traces(core, self)
        self._traces.progressed.connect(self._traced_some)
        self._traces.ended.connect(self._traced)
        self._traces.fitted.connect(self._fitted_all)

    # The document

    @property
    def plan(self) -> Plan | None:
        """The document as it stands; None before one is opened."""
        return self._history.plan if self._history else None

    @property
    def path(self) -> Path | None:
        """The plan's file; None before it is saved."""
        return self.draft.path

    @property
    def unsaved(self) -> bool:
        """Whether there are edits that no file holds."""
        return self.draft.unsaved

    @property
    def undo_label(self) -> Message | None:
        """What undo would take back."""
        return self._history.undo_label if self._history else None

    @property
    def redo_label(self) -> Message | None:
        """What redo would do again."""
        return self._history.redo_label if self._history else None

    def open_plan(
        self, plan: Plan, path: Path | None, *, saved: bool = True, digest: str = ""
    ) -> bool:
        """Make a plan the document, unless a person keeps the one that is open."""
        if not self.may_replace():
            return False
        self.draft.open(plan, path, saved=saved, digest=digest)
        self._begin(plan)
        return True

    def restore(self, recovered: Recovered[Plan]) -> bool:
        """Go on with an unsaved plan that a crash left."""
        if not self.may_replace():
            return False
        if not self.draft.restore(recovered):
            self.noticed.emit(Message.of("recovery.taken"))
            return False
        self._begin(recovered.document)
        return True

    def _begin(self, plan: Plan) -> None:
        self.report = self.roofs = None
        self.explained = doors.DEFAULT
        self._take(History.of(plan))

    def allow(self, code: str) -> None:
        """Let a file's code run from now on, while the window is open: a person said so."""
        self._allowed.add(code)

    def allow_code(self) -> None:
        """Run the code that the plan's figures wait for."""
        if self.unconsented is not None:
            self.allow(self.unconsented)
            self.ask()

    def save(self, path: Path) -> bool:
        """Write the plan to a file; returns whether it could be written."""
        if self.plan is None:
            return False
        try:
            written = file.write(plans.named_after(self.plan, self.path, path), path)
        except UserError as error:
            self.noticed.emit(error.message)
            return False
        assert self._history is not None
        steps = list(self._history.steps)
        steps[self._history.at] = replace(steps[self._history.at], plan=written)
        self._history = History(tuple(steps), self._history.at)
        self.draft.written(written, path.absolute())
        self.edited.emit()
        return True

    def reload(self) -> bool:
        """Take what the plan's file holds now; undo brings back what was here."""
        path = self.path
        if path is None or self._history is None:
            return False
        try:
            plan = file.read(path)
        except UserError as error:
            self.noticed.emit(error.message)
            return False
        self.draft.written(plan, path)
        self._take(self._history.pushed(plan, Message.of("ui.edit.reloaded")))
        return True

    def set_key(self, key: str, value: Any, *, merge: bool = False) -> None:
        """Set one dotted key of the plan; None frees it. Successive edits may merge."""
        self.set_keys({key: value}, key=key if merge else "")

    def set_keys(
        self, values: dict[str, Any], *, key: str = "", label: Message | None = None
    ) -> None:
        """Set several dotted keys at once; ``label`` is what undo calls it."""
        if self.plan is None:
            return
        try:
            plan = with_keys(self.plan, values)
        except UserError as error:
            self.noticed.emit(error.message)
            self.reported.emit()
            return
        name, value = next(iter(values.items()))
        self.put(plan, label or plans.edit_label(name, value), key=key)

    def put(self, plan: Plan, label: Message, *, key: str = "") -> None:
        """Make a plan the next state of the document."""
        if self._history is None or plan == self.plan:
            return
        self._take(self._history.pushed(plan, label, key=key))

    def undo(self) -> None:
        """Go one state back."""
        if self._history is not None and self._history.undo_label is not None:
            self._take(self._history.undone())

    def redo(self) -> None:
        """Go one state forth."""
        if self._history is not None and self._history.redo_label is not None:
            self._take(self._history.redone())

    def _take(self, history: History) -> None:
        self._history = history
        self.draft.changed(history.plan)
        self._forget_advice()
        self.edited.emit()
        self.advised.emit()
        self.ask()

    def keep(self) -> None:
        """Bring the recovery copies up to date."""
        self.draft.keep()
        self.board.keep()

    def close(self) -> None:
        """Stop all work; what is unsaved stays in its recovery copy."""
        self.draft.close()
        self.board.close()
        self._ask_timer.stop()
        self._neighbours.stop()
        end_below([self], seconds=0)

    # The answer

    def ask(self) -> None:
        """Ask the core about the plan; the newest question wins."""
        plan = self.plan
        if plan is None:
            return
        self._stop_trace()
        self.unconsented = None
        self._neighbours.stop()
        for worker in (self._answers, self._limiting):
            worker.forget()  # what is on its way is of the plan before
        self._look(plan)

        self._question = lambda: answer(self.core, plan)
        self._ask_timer.start()
        self.reported.emit()

    def _submit(self) -> None:
        """Ask in earnest: the first look is painted, and a burst of edits is over."""
        if self._question is not None:
            self._answers.submit(self._question)

    def _look(self, plan: Plan) -> None:
        """Show a first look at once, where the profile is at hand."""
        before = self.report
        self.provisional = before is not None
        if before is None or plan.machine.local:
            return
        try:
            found = self.core.resolve(plan)
            if isinstance(found, Facts):
                self.report = self.core.look(plan, found, before)
                self.facts, self.settings = found, found.settings
        except (UserError, KeyError):
            return  # the full answer says what is wrong

    def _answered(self, answer: Answer) -> None:
        self.problem = None
        self.provisional = False
        self.tracing = None
        self.facts = answer.facts
        if answer.pending is not None:
            self.report, self.roofs, self.settings = None, None, answer.pending.settings
            code = answer.plan.model.code
            if code is None or code in self._allowed:
                self.tracing = Tracing(0.0, "")
                self._traces.start(answer.pending)
            else:
                self.unconsented = code
        else:
            self.report, self.roofs = answer.report, answer.roofs
            self.settings = answer.facts.settings if answer.facts else None
            self._look_further()
        self.reported.emit()

    def _failed(self, problem: Message) -> None:
        self.report, self.facts, self.problem = None, None, problem
        self.roofs, self.settings = None, None
        self.provisional = False
        self.whatifs = ()
        self.reported.emit()
        self.whatifs_found.emit()

    def _stop_trace(self) -> None:
        self._traces.stop()
        self.tracing = None

    def cancel_trace(self) -> None:
        """Stop tracing; the plan stays without figures until it is asked again."""
        self._traces.cancel()

    def _traced_some(self, tracing: Tracing) -> None:
        if self.tracing is not None:
            self.tracing = tracing
            self.reported.emit()

    def _traced(self, facts: Facts | None, problem: Message | None) -> None:
        self._stop_trace()
        plan = self.plan
        if plan is not None and facts is not None:
            self._answers.submit(lambda: answer(self.core, plan, facts))
            self._traces.fit()
        else:
            self.problem = problem
        self.reported.emit()

    def _fitted_all(self) -> None:
        """Search now, where a search had to wait for the fit."""
        self._fitted = self.facts
        if self.advice_problem == Message.of("ui.advise.trace-first"):
            self._fit_when_advised = self._fit_when_traced
            self.ask_advice(alone=self._fit_when_advised)

    @property
    def resting(self) -> bool:
        """Whether nothing is under way: every answer to the plan as it stands has come."""
        workers = (self._answers, self._neighbours, self._limiting, self._advising)
        return not (self._ask_timer.isActive() or any(worker.busy for worker in workers))

    # What would change it

    def _look_further(self) -> None:
        """Search for what fits at most, and for what would change it: both follow the answer."""
        plan, facts, report, core = self.plan, self.facts, self.report, self.core
        if plan is None or facts is None or report is None:
            return
        known: Facts = facts
        answered: Report = report
        self._neighbours.look(plan, known, answered, lambda looked: self.plan is looked)
        if answered.serving is not None or answered.settings.several:
            self._limiting.submit(lambda: (answered, core.limits(plan, known, answered)))

    def _limits_came(self, pair: tuple[Report, Report]) -> None:
        before, after = pair
        if self.report is before:
            self.report = after
            self.reported.emit()

    def _whatifs_came(self, found: Sequence[WhatIf]) -> None:
        self.whatifs = found
        self.whatifs_found.emit()

    def apply_whatif(self, index: int) -> None:
        """Make one of the offered changes, if it was computed for this plan; undoable."""
        one = self.whatifs[index]
        if one.base is not self.plan:
            return
        if one.kind == "way":  # its choices come with their reasons
            self.put(one.plan, one.change)
        else:
            self.set_keys(one.patch, label=one.change)

    # The search

    def ask_advice(self, *, alone: bool = False) -> None:
        """Search the free settings of the plan; ``alone``: for the first choice only."""
        plan, core = self.plan, self.core
        if plan is None or self.advice is not None or self.advising:
            return
        known = self.facts if self.facts is self._fitted else None
        self._neighbours.stop()  # they would compete with the search

        def search() -> Advice:
            facts = core.resolve(plan)
            if isinstance(facts, Pending):
                if known is None:
                    raise UserError.of("ui.advise.trace-first")
                facts = known
            return core.advise(plan, facts, alone=alone)

        self.advising, self.advice_problem = True, None
        self._advising.submit(search)
        self.advised.emit()

    def cancel_advice(self) -> None:
        """Wait for the search no longer; nothing of the plan changes."""
        self._forget_advice()
        self.advice_problem = Message.of("ui.advise.cancelled")
        self.advised.emit()

    def _forget_advice(self) -> None:
        self._advising.forget()
        self.advising, self._fit_when_advised = False, False
        self.advice, self.advice_problem = None, None

    def make_it_fit(self) -> None:
        """Take the best choice of the search, as one undoable step."""
        if self.plan is None:
            return
        if self.advice is not None:
            self._apply_best(self.advice)
            return
        self._fit_when_advised = True
        self.ask_advice(alone=True)

    def _advice_came(self, advice: Advice) -> None:
        fitting, self._fit_when_advised = self._fit_when_advised, False
        self.advising = False
        self.advice = None if fitting and advice.choices else advice  # one choice is not a page
        self.advised.emit()
        if fitting:
            self._apply_best(advice)

    def _advice_failed(self, problem: Message) -> None:
        self.advising, self.advice_problem = False, problem
        self._fit_when_traced = self._fit_when_advised
        if self._fit_when_advised:
            self._fit_when_advised = False
            self.noticed.emit(problem)
        self.advised.emit()

    def _apply_best(self, advice: Advice) -> None:
        plan = self.plan
        if plan is None:
            return
        fitted = self.core.make_it_fit(plan, advice)
        if fitted != plan:
            self.put(fitted, Message.of("ui.edit.make-it-fit"))
            self.noticed.emit(Message.of("ui.fit.done"))
        elif advice.choices:
            self.noticed.emit(Message.of("ui.fit.already"))
            self.ask_advice()  # Advise may be open, and shows more than the first choice
        else:
            ways = len(advice.nothing_fits)
            id = "ui.fit.ways" if ways else "ui.fit.nothing"
            self.noticed.emit(Message.of(id, count=ways) if ways else Message.of(id))
            self.choice_needed.emit()

    def apply_choice(self, choice: Choice) -> None:
        """Take a choice of the search into the free settings; undoable."""
        if self.plan is None or self.advice is None:
            return
        fitted = self.core.make_it_fit(self.plan, replace(self.advice, choices=(choice,)))
        if fitted == self.plan:
            self.noticed.emit(Message.of("ui.fit.already"))
        else:
            self.put(fitted, Message.of("ui.edit.advice"))

    def apply_relaxation(self, relaxation: Relaxation) -> None:
        """Take a change that makes the plan fit; undoable."""
        self.put(relaxation.plan, Message.of("ui.edit.relaxed"))

    # Explain

    def figure(self, address: str) -> Quantity | None:
        """Return the figure at an address in the present answer; None where it has no such."""
        return doors.find(self.report, address, self.roofs) if self.report is not None else None

    def explain(self, address: str) -> None:
        """Open where the figure at an address comes from."""
        if address:
            self.explained = address
            self.explained_changed.emit()
