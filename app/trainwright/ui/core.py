"""What the window asks of the core, in one place, so that a test can answer instead.

Everything is imported when it is first asked: the window is painted before numpy is loaded.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from trainwright.advise.advice import Advice, Relaxation
    from trainwright.advise.whatif import WhatIf
    from trainwright.build import Builds
    from trainwright.build.upgrades import Upgrades
    from trainwright.diagnose.evidence import Evidence
    from trainwright.diagnose.memory_remedies import Help
    from trainwright.diagnose.outofmemory import Explanation
    from trainwright.estimate.time.roofpoints import Roofs
    from trainwright.plan.evaluate import Facts, Pending
    from trainwright.plan.report import Report
    from trainwright.plan.schema import Plan
    from trainwright.plan.trial import Wanted
    from trainwright.plan.verified import Outcome
    from trainwright.prices import Currency
    from trainwright.probe.sample import Sample
    from trainwright.profile.profile import Profile
    from trainwright.profile.spec import TraceSpec
    from trainwright.ui.glance import Glance
    from trainwright.ui.measuring import Measuring

Found = TypeVar("Found")
Progress = Callable[[float, str], None]
Cancelled = Callable[[], bool]
Point = tuple[int, int]
"""(batch, sequence) to trace for; None is for all of them, by a fit."""


def _resolve(plan: "Plan") -> "Facts | Pending":
    from trainwright.plan.evaluate import resolve

    return resolve(plan)


def _evaluate(plan: "Plan", facts: "Facts") -> "Report":
    from trainwright.plan.evaluate import evaluate

    return evaluate(plan, facts)


def _operators(plan: "Plan", facts: "Facts") -> "Roofs | None":
    from trainwright.plan.evaluate import operators_of

    return operators_of(plan, facts)


def _limits(plan: "Plan", facts: "Facts", report: "Report") -> "Report":
    from trainwright.plan.limits import with_limits

    return with_limits(plan, facts, report)


def _look(plan: "Plan", facts: "Facts", before: "Report") -> "Report":
    from trainwright.ui.quick import look

    return look(plan, facts, before)


def _trace(
    spec: "TraceSpec", at: Point | None, on_progress: Progress, cancelled: Cancelled
) -> "Profile":
    from trainwright.profile.store import load, trace

    if at is None and (known := load(spec)) is not None:
        return known
    return trace(spec, at=at, on_progress=on_progress, cancelled=cancelled)


def _at_rest(found: Found) -> Found:
    """Return what a search found; drop the runs it compared: up to 60 MiB, each made in 3 ms."""
    from trainwright.profile.expand import training_structure

    training_structure.cache_clear()
    return found


def _advise(plan: "Plan", facts: "Facts", *, alone: bool = False) -> "Advice":
    from trainwright.advise import advise_and_trace

    def trace(asked: "Pending") -> None:
        _trace(asked.spec, None, lambda *_: None, lambda: False)

    return _at_rest(advise_and_trace(plan, facts, trace, alone=alone))


def _whatifs(
    plan: "Plan", facts: "Facts", report: "Report", wanted: Callable[[], bool]
) -> "tuple[WhatIf, ...]":
    from trainwright.advise import ways_out
    from trainwright.advise.whatif import whatifs

    return whatifs(plan, facts, report, ways=ways_out, wanted=wanted)


def _make_it_fit(plan: "Plan", advice: "Advice") -> "Plan":
    from trainwright.advise import make_it_fit

    return make_it_fit(plan, advice)


def _glances(plan: "Plan", ids: Sequence[str]) -> "Iterator[Glance]":
    from trainwright.ui.glance import glances

    return glances(plan, ids, _resolve)


def _verify(
    plan: "Plan", wanted: "Wanted", on_progress: Progress, cancelled: Cancelled
) -> "Outcome":
    from trainwright.plan import verifying
    from trainwright.plan.trial import look, prepared

    here = look()
    trial = prepared(plan, here, on_progress=on_progress, cancelled=cancelled)
    with verifying.destination(wanted.folder) as goal:
        return verifying.run(
            trial,
            steps=wanted.steps,
            limits=wanted.limits,
            folder=str(goal) if goal else None,
            profile_steps=verifying.PROFILED if goal else None,
            on_progress=on_progress,
            cancelled=cancelled,
        )


def _nearest(outcome: "Outcome") -> "tuple[Relaxation, ...]":
    from trainwright.advise.nearest import nearest

    return nearest(outcome)


def _keep_correction(outcome: "Outcome") -> None:
    from trainwright.plan.verified import keep

    keep(outcome)


def _builds(plan: "Plan", budget: float, currency: "Currency") -> "Builds":
    from trainwright.build import search
    from trainwright.ui.buying import request

    return _at_rest(search(request(plan, budget, currency)))


def _upgrades(plan: "Plan", budget: float, currency: "Currency") -> "Upgrades":
    from trainwright.build.upgrades import upgrades
    from trainwright.ui.buying import request

    return _at_rest(upgrades(request(plan, budget, currency)))


def _added(plan: "Plan", budget: float, currency: "Currency", part: str) -> "Upgrades":
    from trainwright.build.owning import owned
    from trainwright.build.upgrades import added
    from trainwright.ui.buying import request

    return _at_rest(added(request(plan, budget, currency), owned([part])))


def _snapshot() -> Any:
    from trainwright.probe.snapshot import take

    return take()


def _framework() -> Any:
    from trainwright.probe import framework
    from trainwright.profile import interpreter

    return framework.read(interpreter.chosen())


def _measuring() -> "Measuring":
    from trainwright.ui.measuring import Measuring

    return Measuring()


def _watch(pid: int | None, seconds: float, cancelled: Cancelled) -> "Evidence":
    from trainwright.diagnose import watching

    run = pid if pid is not None else watching.likely_run()
    return watching.watched(run, seconds, cancelled)


def _help(explanation: "Explanation", plan: "Plan") -> "Help":
    from trainwright.diagnose.memory_remedies import help_for
    from trainwright.plan.evaluate import Facts, resolve

    facts = resolve(plan)
    return help_for(explanation, plan, facts if isinstance(facts, Facts) else None)


def _reader() -> "Callable[[], Sample]":
    from trainwright.probe.monitor.sampler import Reader

    return Reader()


def _examples() -> Sequence[Path]:
    from trainwright.data import resources

    return sorted(resources("examples").glob("*.plan.yaml"))


@dataclass(frozen=True, slots=True)
class Core:
    """The functions behind the window; the defaults are the real ones."""

    resolve: "Callable[[Plan], Facts | Pending]" = _resolve
    evaluate: "Callable[[Plan, Facts], Report]" = _evaluate
    operators: "Callable[[Plan, Facts], Roofs | None]" = _operators
    limits: "Callable[[Plan, Facts, Report], Report]" = _limits
    look: "Callable[[Plan, Facts, Report], Report]" = _look
    trace: "Callable[[TraceSpec, Point | None, Progress, Cancelled], Profile]" = _trace
    advise: "Callable[..., Advice]" = _advise
    whatifs: "Callable[[Plan, Facts, Report, Callable[[], bool]], Sequence[WhatIf]]" = _whatifs
    make_it_fit: "Callable[[Plan, Advice], Plan]" = _make_it_fit
    glances: "Callable[[Plan, Sequence[str]], Iterator[Glance]]" = _glances
    verify: "Callable[[Plan, Wanted, Progress, Cancelled], Outcome]" = _verify
    nearest: "Callable[[Outcome], tuple[Relaxation, ...]]" = _nearest
    keep_correction: "Callable[[Outcome], None]" = _keep_correction
    builds: "Callable[[Plan, float, Currency], Builds]" = _builds
    upgrades: "Callable[[Plan, float, Currency], Upgrades]" = _upgrades
    added: "Callable[[Plan, float, Currency, str], Upgrades]" = _added
    snapshot: Callable[[], Any] = _snapshot
    framework: Callable[[], Any] = _framework
    measuring: "Callable[[], Measuring]" = _measuring
    watch: "Callable[[int | None, float, Cancelled], Evidence]" = _watch
    help: "Callable[[Explanation, Plan], Help]" = _help
    examples: Callable[[], Sequence[Path]] = _examples
    reader: "Callable[[], Callable[[], Sample]]" = _reader
    """Makes what reads this computer moment by moment; called on the thread that then reads."""
