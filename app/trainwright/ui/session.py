"""What every screen is a view of: the open document, its answer, and the search."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from PySide6.QtCore import Signal

from trainwright.advise.advice import Advice, Choice, Relaxation
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts, Pending
from trainwright.plan.history import History
from trainwright.plan.schema import Plan
from trainwright.ui.answers import Answers
from trainwright.ui.core import Core
from trainwright.ui.tasks import Latest

Errand = Literal["list", "fit"]
"""What a search is for: the page of choices, or the best one, taken as soon as it is known."""


class Session(Answers):
    """Searches the free settings of the plan, and keeps what the window's places show."""

    advised = Signal()
    """The search answered, or its answer no longer holds."""
    choice_needed = Signal()
    """Nothing fits as it was asked: a person has to choose a way out."""
    model_chosen = Signal(str)
    """A shipped model was picked: the window remembers it."""
    file_wanted = Signal()
    """A person wants to name a file of their own."""
    lesson_wanted = Signal(str)
    """A person wants to know what a setting is about."""

    def __init__(self, core: Core) -> None:
        super().__init__(core)
        self.advice: Advice | None = None
        self.advice_problem: Message | None = None
        self.diagnosed: object = None  # what Diagnose shows, and shows again when it is built again
        self.reviewed: object = None  # the files of another trainer that Review shows, likewise
        self.cut: object = None  # the board of instances, likewise
        self.compared: tuple[Plan, ...] = ()  # plans that Compare shows with this one
        self.recent_models: Callable[[], tuple[str, ...]] = tuple
        """Ids of models picked lately; the window knows them."""
        self.advising = False  # whether the search runs for the plan as it stands
        self._errand: Errand | None = None
        """What was asked for, until it is done; it may wait for a trace."""
        self._fitted: Facts | None = None
        """Facts after whose fit nothing more comes: a profile may hold for one point alone."""
        self._advising = Latest(self)
        self._advising.done.connect(self._advice_came)
        self._advising.failed.connect(self._advice_failed)
        self._traces.fitted.connect(self._fitted_all)

    def _take(self, history: History) -> None:
        self._forget_advice()
        super()._take(history)
        self.advised.emit()
        self.ask()

    @property
    def resting(self) -> bool:
        """Whether nothing is under way: every answer to the plan as it stands has come."""
        return super().resting and not self._advising.busy

    # The search

    def ask_advice(self) -> None:
        """Search the free settings of the plan; where the best one is wanted, for that alone."""
        plan, core = self.plan, self.core
        if plan is None or self.advice is not None or self.advising:
            return
        self._errand = self._errand or "list"
        alone = self._errand == "fit"
        known = self.facts if self.facts is self._fitted else None
        self._neighbours.stop()  # they would compete with the search

        def search() -> Advice | None:
            found = core.resolve(plan)
            facts = known if isinstance(found, Pending) else found
            return core.advise(plan, facts, alone=alone) if facts is not None else None

        self.advising, self.advice_problem = True, None
        self._advising.submit(search)
        self.advised.emit()

    def _fitted_all(self) -> None:
        """Search now, where a search had to wait for the fit."""
        self._fitted = self.facts
        if self._errand is not None:
            self.ask_advice()

    def cancel_advice(self) -> None:
        """Wait for the search no longer; nothing of the plan changes."""
        self._forget_advice()
        self.advice_problem = Message.of("ui.advise.cancelled")
        self.advised.emit()

    def _forget_advice(self) -> None:
        self._advising.forget()
        self.advising, self._errand = False, None
        self.advice, self.advice_problem = None, None

    def make_it_fit(self) -> None:
        """Take the best choice of the search, as one undoable step."""
        if self.plan is None:
            return
        if self.advice is not None:
            self._apply_best(self.advice)
            return
        self._errand = "fit"
        self.ask_advice()

    def _advice_came(self, advice: Advice | None) -> None:
        if advice is None:  # the errand waits for the trace
            self._stopped(Message.of("ui.advise.trace-first"))
            return
        errand, self._errand = self._errand, None
        self.advising = False
        fits = errand == "fit"
        self.advice = None if fits and advice.choices else advice  # one choice is not a page
        self.advised.emit()
        if fits:
            self._apply_best(advice)

    def _advice_failed(self, problem: Message) -> None:
        self._stopped(problem)
        self._errand = None

    def _stopped(self, problem: Message) -> None:
        self.advising, self.advice_problem = False, problem
        if self._errand == "fit":
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
