"""The answer to the open document: figures, and what would change them."""

from collections.abc import Callable, Sequence

from PySide6.QtCore import QTimer, Signal

from trainwright.advise.whatif import WhatIf
from trainwright.estimate.time.roofpoints import Roofs
from trainwright.explain import Quantity
from trainwright.messages import Message, UserError
from trainwright.plan.evaluate import Facts
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.ui import addresses
from trainwright.ui.answer import Answer, answer
from trainwright.ui.core import Core
from trainwright.ui.document import Document
from trainwright.ui.tasks import Latest, end_below
from trainwright.ui.tracing import Traces, Tracing
from trainwright.ui.whatifs import WhatIfs
from trainwright.workload import FullSettings

_ASK_MS = 30
"""Pause after an edit before the full answer is asked for; it would compete with the repaint."""


class Answers(Document):
    """Asks the core, off the UI thread, whenever the plan changes; the newest question wins."""

    reported = Signal()
    """Report, problem, or what is traced changed."""
    whatifs_found = Signal()
    """What other settings and parts would do is known."""
    explained_changed = Signal()

    def __init__(self, core: Core) -> None:
        super().__init__()
        self.core = core
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
        self.whatifs: Sequence[WhatIf] = ()
        self.explained = addresses.DEFAULT
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
        self._traces = Traces(core, self)
        self._traces.progressed.connect(self._traced_some)
        self._traces.ended.connect(self._traced)
        self.refused.connect(self.reported)

    def _begin(self, plan: Plan) -> None:
        self.report = self.roofs = None
        self.explained = addresses.DEFAULT
        super()._begin(plan)

    def allow(self, code: str) -> None:
        """Let a file's code run from now on, while the window is open: a person said so."""
        self._allowed.add(code)

    def allow_code(self) -> None:
        """Run the code that the plan's figures wait for."""
        if self.unconsented is not None:
            self.allow(self.unconsented)
            self.ask()

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

    @property
    def resting(self) -> bool:
        """Whether nothing is under way: every answer to the plan as it stands has come."""
        workers = (self._answers, self._neighbours, self._limiting)
        return not (self._ask_timer.isActive() or any(worker.busy for worker in workers))

    def close(self) -> None:
        """Stop all work; what is unsaved stays in its recovery copy."""
        super().close()
        self._ask_timer.stop()
        self._neighbours.stop()
        end_below([self], seconds=0)

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

    # Explain

    def figure(self, address: str) -> Quantity | None:
        """Return the figure at an address in the present answer; None where it has no such."""
        return addresses.find(self.report, address, self.roofs) if self.report is not None else None

    def explain(self, address: str) -> None:
        """Open where the figure at an address comes from."""
        if address:
            self.explained = address
            self.explained_changed.emit()
