"""What a changed setting or another part would do to a plan: each evaluated like the plan itself.

The speeds of both sides err alike, by the same model on the same or a like GPU, so that their
intervals would overstate that of a gain. Only the gain of a further GPU has one of its own: the
spread of scaling efficiencies on measured rows.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal

from trainwright.advise.advice import SAME, Relaxation, what_becomes
from trainwright.advise.parts import part_variations
from trainwright.advise.variations import Patch, Variation, variations
from trainwright.explain import Interval
from trainwright.messages import Message, UserError, render
from trainwright.plan.edit import with_keys
from trainwright.plan.evaluate import Facts, Pending, evaluate, resolve
from trainwright.plan.report import FITTING, Report, Verdict
from trainwright.plan.schema import Plan

MOST = 8
"""What-ifs that are worth showing at once."""
NEXT_TO_NOTHING = 50 * 2**20
"""Bytes of device use below which a change of it is not worth a word; assumed."""

Answer = Callable[[Plan], Report | None]
"""What a plan would say; None where its model would have to be traced first."""
Ways = Callable[[Plan, Facts, Callable[[], bool]], Iterable[Relaxation]]
"""What makes a plan fit that does not: what the search chooses, or the ways out."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """A change of the plan, and what it does to the answer."""

    change: Message
    because: Message
    """Why the speed changes, or does not; or what is missing where it does not fit."""
    patch: Patch
    plan: Plan
    """The plan with the change."""
    verdict: Verdict | None
    """None where the model would have to be traced first: then nothing else is known either."""
    gain: float | None
    """Samples a second, after over before, less 1; of a plan that does not fit, if it did. None
    where no time is predicted too."""
    memory_bytes: float | None
    """Difference of device use."""
    kind: Literal["setting", "part", "way"]
    """``way``: a way out, whose plan is taken whole, with the choices that belong to it."""
    subject: str
    base: Plan
    """The plan that it was computed for: of any other it says nothing."""
    interval: Interval | None = None
    """Of the gain; None where no rows of measured changes tell."""
    remark: Message | None = None
    """What must be known beside the gain, in few words: when it pays."""
    engine: str | None = None
    """That serves the changed plan; None for training."""

    @property
    def fits(self) -> bool:
        """Whether the changed plan fits."""
        return self.verdict in FITTING

    @property
    def same(self) -> bool:
        """Whether the speed stays what it is."""
        return self.gain is not None and abs(self.gain) < SAME


def answered(plan: Plan) -> Report | None:
    """Return what evaluating the plan says; None where a trace must come first."""
    facts = resolve(plan)
    return None if isinstance(facts, Pending) else evaluate(plan, facts)


def whatifs(
    plan: Plan,
    facts: Facts,
    report: Report,
    *,
    answer: Answer = answered,
    ways: Ways = lambda _plan, _facts, _wanted: (),
    wanted: Callable[[], bool] = lambda: True,
) -> tuple[WhatIf, ...]:
    """Return the changes most worth knowing, the most useful first.

    Where the plan does not fit, first the ways out, then what else fits. Where it does, first what
    is faster, then parts that would change nothing, then what is not known or costs speed. What
    the plan refuses or does not fit is left out. ``wanted`` is asked before each evaluation, and
    ends the work.
    """
    fits = report.verdict in FITTING
    first = (
        [] if fits or not wanted() else [_way(w, plan, report) for w in ways(plan, facts, wanted)]
    )
    found: list[WhatIf] = []
    tried = (*variations(plan, facts, report), *part_variations(plan, facts, report))
    for variation in tried:
        if not wanted():
            break
        try:
            changed = with_keys(plan, variation.patch)
            other = answer(changed)
        except UserError:
            continue
        if changed != plan:
            found.append(
                _with_engine(_whatif(variation, plan, changed, report, other), plan, report, answer)
            )
    telling = [one for one in _best_of_each(found) if one.fits or one.verdict is None]
    ranked = sorted(telling, key=lambda one: _usefulness(one, fits))
    return (*first, *ranked)[:MOST]


def _way(way: Relaxation, plan: Plan, before: Report) -> WhatIf:
    """Return a way out as a change of the plan."""
    after = way.estimate
    used = before.memory.device_used.value
    return WhatIf(
        change=way.change,
        because=what_becomes(way.effect, trains=way.plan.workload.trains),
        patch=dict(way.changes),
        plan=way.plan,
        verdict=after.verdict if after is not None else None,
        gain=_gain(before, after) if after is not None else None,
        memory_bytes=after.memory.device_used.value - used if after is not None else None,
        kind="way",
        subject=way.change.id,
        base=plan,
    )


def _whatif(
    variation: Variation, plan: Plan, changed: Plan, before: Report, after: Report | None
) -> WhatIf:
    gain = memory = None
    because = Message.of("advise.whatif.because.untraced")
    if after is not None:
        gain = _gain(before, after)
        memory = after.memory.device_used.value - before.memory.device_used.value
        because = (_compiling(after) if variation.subject == "compile" else None) or _because(
            before, after, gain
        )
        if variation.subject == "power" and gain is not None and abs(gain) < SAME:
            because = Message.of("advise.whatif.because.same.power")
    return WhatIf(
        change=variation.change,
        because=because,
        patch=variation.patch,
        plan=changed,
        verdict=after.verdict if after is not None else None,
        gain=gain,
        memory_bytes=memory,
        kind=variation.kind,
        subject=variation.subject,
        base=plan,
        remark=_remark(after) if variation.subject == "compile" else None,
        interval=_interval(after) if variation.subject == "second-gpu" else None,
        engine=after.settings.engine if after is not None and after.serving else None,
    )


def _with_engine(one: WhatIf, plan: Plan, before: Report, answer: Answer) -> WhatIf:
    """Return the what-if with its engine named where the setting brings another one along.

    transformers keeps no fp8 cache and multiplies no fp8 weights: most of what such a setting
    gains over it is what the other engine gains by itself.
    """
    now, then = before.settings.engine, one.engine
    if then is None or then == now or one.subject == "engine" or one.gain is None:
        return one
    named = replace(
        one, change=Message.of("advise.whatif.with-engine", change=one.change, engine=then)
    )
    alone = answer(with_keys(plan, {"settings.engine": then}))
    gain = _gain(before, alone) if alone is not None else None
    if gain is None or not one.fits:
        return named
    own = (1 + one.gain) / (1 + gain) - 1
    values = {"engine": then, "old": now, "alone": gain, "own": own}
    return replace(named, because=Message.of("advise.whatif.because.engine", **values))


def _gain(before: Report, after: Report) -> float | None:
    """Return what is gained in samples a second; None where no time is predicted."""
    now, then = before.time.samples_per_second, after.time.samples_per_second
    if now is None or then is None:
        return None
    return then.value / now.value - 1 if now.value else 0.0


def _compiling(after: Report) -> Message | None:
    """Return what compiling takes before the first step, and when it has paid that back."""
    found = after.time.compiling
    if found is None or after.verdict in (Verdict.NO, Verdict.SPILLS):
        return None
    if found.steps is None:
        return Message.of("advise.whatif.because.compile-never", seconds=found.seconds.value)
    return Message.of(
        "advise.whatif.because.compile",
        seconds=found.seconds.value,
        elapsed=found.steps * found.step,
        steps=math.ceil(found.steps),
    )


def _remark(after: Report | None) -> Message | None:
    found = after.time.compiling if after is not None else None
    if found is None or found.steps is None:
        return None
    elapsed = found.steps * found.step
    unit = 3600 if elapsed > 7200 else 60 if elapsed > 120 else 1
    return Message.of("advise.whatif.pays", elapsed=round(elapsed / unit) * unit)


def _interval(after: Report | None) -> Interval | None:
    """Return the interval of what a second GPU adds to one."""
    points = after.time.scaling if after is not None else ()
    if not points or points[-1].efficiency.interval is None:
        return None
    spread, count = points[-1].efficiency.interval, points[-1].gpus
    return Interval(count * spread.low - 1, count * spread.high - 1)


def _best_of_each(found: Iterable[WhatIf]) -> list[WhatIf]:
    """Return one of each subject: the fastest that fits, else the first that was tried."""
    best: dict[str, WhatIf] = {}
    for one in found:
        known = best.get(one.subject)
        if known is None or _merit(one) > _merit(known):
            best[one.subject] = one
    return list(best.values())


def _merit(one: WhatIf) -> tuple[bool, float]:
    return one.fits, (one.gain or 0.0) if one.fits else 0.0


def _usefulness(one: WhatIf, plan_fits: bool) -> tuple[int, float]:
    """Return a key that sorts the most useful first."""
    if one.gain is None:
        return 3, 0.0
    if not plan_fits or one.gain >= SAME:
        return 0, -one.gain
    if one.same:
        return (1 if one.kind == "part" else 4), one.memory_bytes or 0.0
    return 5, -one.gain


def _because(before: Report, after: Report, gain: float | None) -> Message:
    """Return the largest reason: memory that is missing, a stage that changes, or what limits."""
    memory = after.memory
    room = {"need": memory.device_used_p95.value, "total": memory.device_total.value}
    if after.verdict in (Verdict.NO, Verdict.SPILLS):
        return Message.of("advise.whatif.because.memory", **room)
    if before.verdict in (Verdict.NO, Verdict.SPILLS):
        id = "fits" if after.fits else "hardly"
        return Message.of(f"advise.whatif.because.{id}", **room)
    if gain is None:
        return Message.of("advise.whatif.because.unpredicted")
    first, then = _shares(before), _shares(after)
    if abs(gain) < SAME or not first:
        return Message.of(f"advise.whatif.because.same.{before.time.bottleneck}")
    names = {**first, **then}
    name = max(names, key=lambda stage: abs(then.get(stage, 0.0) - first.get(stage, 0.0)))
    exchange = next((one for one in after.time.stages if one.name == "communication"), None)
    if exchange is not None and "communication" not in first:
        seconds = exchange.seconds.value
        return Message.of("advise.whatif.because.exchange", seconds=seconds)
    stages = {stage.name: stage for stage in (*after.time.stages, *before.time.stages)}
    unit = "" if "prefill" not in names else "-request"
    return Message.of(
        f"advise.whatif.because.stage{unit}",
        stage=stages[name].seconds.name,
        before=first.get(name, 0.0),
        after=then.get(name, 0.0),
    )


def _shares(report: Report) -> dict[str, float]:
    """Return the seconds of a sample by stage."""
    time = report.time
    if time.samples_per_second is None or time.step_seconds is None:
        return {}
    samples = time.samples_per_second.value * time.step_seconds.value
    shown = [stage for stage in time.stages if not stage.hidden]
    return {stage.name: stage.seconds.value / samples for stage in shown} if samples else {}


def as_json(found: Iterable[WhatIf]) -> list[dict[str, Any]]:
    """Return what-ifs as plain data: ``what_if`` of ``estimate --json --what-if``."""
    return [
        {
            "change": render(one.change, "en"),
            "because": render(one.because, "en"),
            "set": one.patch,
            "kind": one.kind,
            "verdict": one.verdict.value if one.verdict is not None else None,
            "fits": one.fits if one.verdict is not None else None,
            "gain": one.gain,
            "gain_interval90": (
                [one.interval.low, one.interval.high] if one.interval is not None else None
            ),
            "device_used_change_bytes": (
                round(one.memory_bytes) if one.memory_bytes is not None else None
            ),
        }
        for one in found
    ]
