"""Quick answers: where the profile of a step is not stored, that of one which hardly differs.

Nothing is traced, so that a misfit and its ways out are known at once.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from trainwright.advise.advice import Choice, Relaxation
from trainwright.advise.choose import advise, at_hand, make_it_fit, ways_out
from trainwright.advise.walk import Sources
from trainwright.advise.wayout import changes
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts, Pending, evaluate, resolve
from trainwright.plan.profiles import nearest, stored
from trainwright.plan.report import Report
from trainwright.plan.schema import Plan
from trainwright.plan.trace_request import question
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings

NOTE = "plan.note.nearest"
"""The note of facts that rest on a nearby step; its values are what they leave out, and by
which share of memory that may matter."""


def resolved(plan: Plan) -> Facts | Pending:
    """Return the facts of a plan, of a nearby step where its own is not stored.

    Raises:
        UserError: as ``plan.evaluate.resolve`` does.
    """
    found = resolve(plan)
    if isinstance(found, Facts):
        return found
    near = nearest(found.spec, checkpointed=found.settings.checkpointing == "full")
    if near is None:
        return found
    facts = found.answered(near.profile)
    note = Message.of(NOTE, keys=near.left_out, share=near.share)
    return replace(facts, notes=(note, *facts.notes))


def answered(plan: Plan) -> Report | None:
    """Return what evaluating the plan says; None where a trace must come first."""
    facts = resolved(plan)
    return evaluate(plan, facts) if isinstance(facts, Facts) else None


def ways(plan: Plan, facts: Facts, wanted: Callable[[], bool]) -> tuple[Relaxation, ...]:
    """Return what makes a plan fit that fixes everything, as files of other trainers do.

    First smaller micro-batches, with the checkpointing as it is and with that of all blocks: the
    same result. Where neither fits, what changes more of what was asked for.
    """
    if not plan.workload.trains:
        return tuple(_against(plan, facts, way) for way in ways_out(plan, facts, wanted, NEARBY))
    found: list[Relaxation] = []
    others: tuple[Relaxation, ...] = ()
    levels = tuple(dict.fromkeys((facts.settings.checkpointing, "full")))
    if NEARBY.resolve(plan) is None:  # of another task or model a step may be stored
        others = advise(plan, facts, alone=True, sources=NEARBY, wanted=wanted).nothing_fits
        return tuple(_against(plan, facts, way) for way in others)
    for level in reversed(levels):
        open_ = {"micro_batch": None, "accumulation": None, "checkpointing": level}
        held = open_ | {"cross_entropy": facts.settings.cross_entropy}
        freed = plan.model_copy(update={"settings": plan.settings.model_copy(update=held)})
        known = NEARBY.resolve(freed) if wanted() else None
        if known is None:
            continue
        going_on = (lambda: False) if found else wanted
        advice = advise(freed, known, alone=True, sources=NEARBY, wanted=going_on)
        if not advice.choices:  # with fewer checkpoints it needs more: only the rest is left
            others = advice.nothing_fits
            break
        found[:0] = [_smaller(make_it_fit(freed, advice), one) for one in advice.choices]
    return tuple(_against(plan, facts, way) for way in found or others)


def _smaller(plan: Plan, choice: Choice) -> Relaxation:
    chosen = choice.settings
    change = Message.of(
        "verify.fits",
        micro=chosen.micro_batch,
        steps=chosen.accumulation,
        checkpointing=chosen.checkpointing,
    )
    return Relaxation(change, plan, effect=choice.effect, estimate=choice.estimate)


def _against(plan: Plan, facts: Facts, way: Relaxation) -> Relaxation:
    """Return a way out with its changes of the plan itself."""
    if way.estimate is None:
        return way
    return replace(way, changes=changes(plan, facts.settings, way.plan, way.estimate.settings))


def _profile(plan: Plan, facts: Facts, settings: FullSettings) -> Profile | None:
    spec = question(plan, settings, facts.machine.gpu.record).spec
    if (own := stored(spec)) is not None:
        return own
    near = nearest(spec)
    return None if near is None else near.profile


NEARBY = Sources(_profile, partial(at_hand, by=resolved))
"""Stored profiles, and nearby ones in place of those that are not."""
