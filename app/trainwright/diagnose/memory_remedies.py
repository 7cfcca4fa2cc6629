"""What would have kept a run within its memory, each remedy evaluated on the plan of the run."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from trainwright.advise import what_becomes
from trainwright.advise.advice import SAME
from trainwright.advise.lowering import effect_of, lowering, lowering_host
from trainwright.advise.variations import Patch, Variation
from trainwright.advise.whatif import NEXT_TO_NOTHING, Answer, answered
from trainwright.diagnose.outofmemory.account import Account, Explanation, fix
from trainwright.diagnose.verdict import Fix
from trainwright.messages import Message, UserError
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import Facts
from trainwright.plan.judging import loader_bytes
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.workload.settings import Effect

ANOTHER_GPU = 0.1
"""Share by which the message's GPU and the plan's may differ in memory; assumed: drivers keep
less than that, and cards of one name come with half of it or twice."""
ANOTHER_RUN = 1.5
"""Times the plan's peak that the run of the message needed from which it is another run, and times
the message's GPU that the plan needs from which what was missing says little of it; assumed:
several times the error of the estimates."""
MOST = 8
"""Remedies that are shown; assumed, the first decide."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change that lowers the peak by what was missing."""

    says: tuple[Message, ...]
    """What to change: one setting, or several that are enough together."""
    patch: Patch
    saved: float
    """Bytes by which the peak falls."""
    slower: float | None
    """Time for as many samples, after over before, less 1; None where none is predicted."""
    subject: str
    """What is changed; of several values of one subject only the best is shown."""
    trains: bool = True
    """Whether the run trains a model, or serves one."""

    @property
    def effect(self) -> Effect:
        """What it does to the result."""
        return effect_of(self.patch)

    @property
    def sentence(self) -> Message:
        """What to change, what it does to the result, what it saves, and what it costs."""
        cost = "-untimed" if self.slower is None else "" if self.slower >= SAME else "-free"
        change: list[Message] | Message = list(self.says)
        if self.effect is not Effect.SAME:
            becomes = what_becomes(self.effect, trains=self.trains)
            change = Message.of("diagnose.oom.change-of", change=change, effect=becomes)
        values = {"change": change, "saved": self.saved, "slower": self.slower or 0.0}
        return Message.of(f"diagnose.oom.remedy{cost}", **values)


@dataclass(frozen=True, slots=True)
class Help:
    """What an error and a plan say together; without a plan, what has to be known."""

    differs: tuple[Message, ...] = ()
    """What of the error is not of the plan's run: another GPU, another need. To be said first."""
    fixes: tuple[Fix, ...] = ()
    """That follow from the message alone, and are not in place."""
    remedies: tuple[Remedy, ...] = ()
    """Those that keep the task and the result first, the cheapest in time first of them."""
    enough: bool = True
    """Whether each remedy saves what was missing; False where nobody knows how much that was, and
    where the error is of another run."""
    needs: tuple[Message, ...] = ()
    """Facts without which no remedy can be told."""
    notes: tuple[Message, ...] = ()
    """What was found while looking: nothing that is enough, what was not tried."""

    @property
    def title(self) -> Message:
        """What the remedies are."""
        return Message.of("diagnose.remedies" if self.enough else "diagnose.remedies-unsized")


def help_for(
    explanation: Explanation,
    plan: Plan | None = None,
    facts: Facts | None = None,
    answer: Answer = answered,
) -> Help:
    """Return which changes of the plan lower its peak by the bytes that were missing.

    Of one setting the best value; what is in place already is not a remedy.
    Where no change is enough by itself, the cheapest are put together until they are. A message
    without sizes says nothing of what is enough: all that lower the peak are listed.
    """
    fixes = tuple(_fixes(explanation, plan))
    helps = explanation.on_gpu or explanation.kind in ("host", "worker")
    if plan is None:
        needs = (Message.of("diagnose.oom.needs-plan"),) if explanation.on_gpu else ()
        return Help((), fixes, needs=needs)
    before = answer(plan) if facts is not None else None
    if before is None or facts is None:
        return Help((), fixes, needs=(Message.of("diagnose.oom.needs-trace"),) if helps else ())
    differs = tuple(_contradictions(explanation.account, facts, before))
    if not helps:
        return Help(differs, fixes)
    trial = _Trial(explanation, plan, before, answer, other_run=bool(differs))
    tried = [trial.of(one) for one in _candidates(explanation, plan, facts)]
    found = [one for one in tried if one is not None and one.saved > NEXT_TO_NOTHING]
    notes = []
    if trial.untraced:
        notes.append(Message.of("diagnose.oom.untraced", changes=list(trial.untraced)))
    if explanation.missing is None:
        lower = tuple(_best_of_each(found, _rank)[:MOST])
        said = "unsized" if lower else f"nothing-lower{_side(explanation)}"
        notes.append(Message.of(f"diagnose.oom.{said}"))
        return Help(differs, fixes, lower, enough=False, notes=tuple(notes))
    asked = max(float(explanation.missing), float(NEXT_TO_NOTHING))
    enough = _best_of_each([one for one in found if one.saved >= asked], _rank)
    if not enough and found:
        largest = _best_of_each(found, lambda one: -one.saved)
        together = _together(trial, sorted(largest, key=_rank), asked)
        if together is not None:
            if not differs:
                notes.append(Message.of("diagnose.oom.only-together"))
            return Help(differs, fixes, (together,), enough=not differs, notes=tuple(notes))
    if not enough:
        most = max((one.saved for one in found), default=0.0)
        id = f"diagnose.oom.nothing-enough{_side(explanation)}"
        notes.append(Message.of(id, missing=asked, most=most))
    remedies = tuple(enough[:MOST])
    return Help(differs, fixes, remedies, enough=not differs, notes=tuple(notes))


def _fixes(explanation: Explanation, plan: Plan | None) -> Iterator[Fix]:
    """Yield the message's own fixes; those that a plan can take are evaluated on it instead."""
    lower = fix("lower-peak")
    if plan is None:
        alone = explanation.kind in ("too-big", "fragmentation") and not explanation.fixes
        yield from (lower,) if alone else explanation.fixes
        return
    for each in explanation.fixes:
        in_place = bool(each.patch) and with_keys(plan, each.patch) == plan
        evaluated = explanation.on_gpu and (bool(each.patch) or each == lower)
        if not evaluated and not in_place:
            yield each


def _side(explanation: Explanation) -> str:
    """Return the ending of messages that tell what helps the memory that ran out."""
    return "" if explanation.on_gpu else "-host"


def _candidates(explanation: Explanation, plan: Plan, facts: Facts) -> Iterable[Variation]:
    if not explanation.on_gpu:
        return lowering_host(facts)
    expandable = explanation.says.id == "diagnose.oom.fragmentation-still"
    return (change for change in lowering(plan, facts)
            if not (expandable and "settings.allocator" in change.patch))  # fmt: skip


def _contradictions(account: Account, facts: Facts, planned: Report) -> Iterator[Message]:
    """Yield what of the message cannot be of the plan's run: the GPU's memory, what is needed."""
    gpu = facts.machine.gpu
    if account.total is not None and abs(account.total / gpu.total.value - 1) > ANOTHER_GPU:
        yield Message.of("diagnose.oom.other-gpu", told=account.total,
                         planned=gpu.total.value, gpu=gpu.record.name)  # fmt: skip
    asked, peak = account.asked or 0, planned.memory.device_used.value
    # More than the whole GPU in one piece is more likely a mistake than the run's need.
    needed = (account.allocated or 0) + (asked if asked <= gpu.total.value else 0)
    if account.allocated is not None and needed > ANOTHER_RUN * peak:
        yield Message.of("diagnose.oom.other-run", needed=needed, planned=peak)
    if account.total is not None and peak > ANOTHER_RUN * account.total:
        yield Message.of("diagnose.oom.other-need", total=account.total, planned=peak)


@dataclass(slots=True)
class _Trial:
    """Evaluates changes of one plan, and keeps in mind what could not be evaluated."""

    explanation: Explanation
    plan: Plan
    before: Report
    answer: Answer
    other_run: bool
    """Whether the error is of another run than the plan's."""
    untraced: list[Message] = field(default_factory=list)

    def of(self, change: Variation) -> Remedy | None:
        """Return what a change does; None where the plan refuses it or a trace must come first."""
        try:
            after = self.answer(with_keys(self.plan, change.patch))
        except UserError:
            return None
        if after is None:
            self.untraced.append(change.change)
            return None
        saved = self._held(self.before) - self._held(after)
        if change.patch.keys() == {"settings.allocator"} and not self.other_run:
            saved = self._defragmented(saved)
        slower, trains = _slower(self.before, after), self.plan.workload.trains
        return Remedy((change.change,), change.patch, saved, slower, change.subject, trains)

    def _defragmented(self, saved: float) -> float:
        """Return what another allocator saves: of what the message tells was unused."""
        unused = self.explanation.account.unused
        if self.explanation.kind == "fragmentation":
            return max(saved, float(unused or 0))
        return saved if unused is None else min(saved, float(unused))

    def _held(self, report: Report) -> float:
        if self.explanation.on_gpu:
            return report.memory.device_used.value
        host = report.memory.host
        return loader_bytes(report.time) + (host.value if host is not None else 0.0)


def _slower(before: Report, after: Report) -> float | None:
    now, then = before.time.samples_per_second, after.time.samples_per_second
    if now is None or then is None or not then.value:
        return None
    return now.value / then.value - 1


def _rank(one: Remedy) -> tuple[bool, Effect, bool, float]:
    """Return a key that sorts by what stays as it was asked for, then by time, if it is known.

    Times that nobody could tell apart leave the order as it is; of no time, more saved is better.
    """
    other_task = "workload.task" in one.patch
    if one.slower is None:
        return other_task, one.effect, True, -one.saved
    return other_task, one.effect, False, one.slower if one.slower >= SAME else 0.0


def _best_of_each(found: list[Remedy], key: Callable[[Remedy], Any]) -> list[Remedy]:
    """Return the first of each subject, in the order of a sort key."""
    best: dict[str, Remedy] = {}
    for one in sorted(found, key=key):
        best.setdefault(one.subject, one)
    return list(best.values())


def _together(trial: _Trial, found: list[Remedy], asked: float) -> Remedy | None:
    """Return the cheapest changes that are enough together, by joining one after the other."""
    joined: Remedy | None = None
    for one in found:
        if joined is not None and min(one.patch) in joined.patch:
            continue  # another value of what is changed already
        says = (*(joined.says if joined else ()), *one.says)
        patch = (joined.patch if joined else {}) | one.patch
        both = trial.of(Variation(says[0], patch, "setting", ""))
        if both is None or both.saved <= (joined.saved if joined else 0.0):
            continue
        joined = replace(both, says=says)
        if joined.saved >= asked:
            return joined
    return None
