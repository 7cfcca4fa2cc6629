"""Plans near one whose step ran out of memory, that fit in what there was."""

from collections.abc import Iterator
from dataclasses import replace

from trainwright.advise.advice import Relaxation
from trainwright.advise.choose import advise, make_it_fit
from trainwright.estimate.memory.livebytes import live_peak_bytes
from trainwright.messages import Message
from trainwright.plan.evaluate import stored
from trainwright.plan.schema import Plan
from trainwright.plan.trial import PROCESS, Trial
from trainwright.plan.verified import Outcome
from trainwright.profile import store
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings

MOST = 3
"""Plans that are shown."""


def nearest(outcome: Outcome) -> tuple[Relaxation, ...]:
    """Return plans that fit in the memory that ran out, nearest first; empty where none is known.

    On a GPU they are the search's; on a CPU, smaller micro-batches and checkpointing, whose
    living bytes and the process around them stay below the limit.
    """
    gone, trial = outcome.ran_out, outcome.trial
    if gone is None:
        return ()
    if trial.facts is not None:
        return tuple(_searched(trial))[:MOST] if gone.side == "device" else ()
    return tuple(_smaller(trial, gone.limit))[:MOST] if gone.limit is not None else ()


def _searched(trial: Trial) -> Iterator[Relaxation]:
    """Yield the search's choices among settings that the step leaves free, then its relaxations."""
    assert trial.facts is not None
    free = {"micro_batch": None, "accumulation": None, "checkpointing": None}
    plan = trial.plan.model_copy(update={"settings": trial.plan.settings.model_copy(update=free)})
    advice = advise(plan, trial.facts, top=MOST)
    for choice in advice.choices:
        chosen = make_it_fit(plan, replace(advice, choices=(choice,)))
        yield Relaxation(_change(choice.settings), chosen)
    yield from advice.nothing_fits


def _smaller(trial: Trial, limit: int) -> Iterator[Relaxation]:
    settings = trial.settings
    share = settings.micro_batch * settings.accumulation
    room = limit - PROCESS[1]
    policies = dict.fromkeys((settings.checkpointing, "full"))
    for micro in (m for m in range(settings.micro_batch, 0, -1) if share % m == 0):
        profile = _profile(trial, micro)
        for policy in policies:
            changed = settings.model_copy(
                update={
                    "micro_batch": micro,
                    "accumulation": share // micro,
                    "checkpointing": policy,
                }
            )
            if profile is None or changed == settings or not profile.answers(micro, trial.length):
                continue
            if live_peak_bytes(profile, changed, micro, trial.length) <= room:
                yield Relaxation(_change(changed), _with(trial.plan, changed))


def _profile(trial: Trial, micro: int) -> Profile | None:
    """Return the profile of the step with another micro-batch; batch 1 is its own structure.

    A model that was traced at one point only is traced at those of a fit: somebody waits for an
    answer whose step did not fit, and a smaller one cannot be told otherwise.
    """
    spec = replace(trial.spec, single=micro == 1)
    if trial.profile.exact and spec == trial.spec:
        return trial.profile
    known = stored(spec)
    if known is not None and known.answers(micro, trial.length):
        return known
    if spec == trial.spec and micro == trial.settings.micro_batch:
        return trial.profile
    return store.trace(spec) if micro > 1 else None


def _with(plan: Plan, settings: FullSettings) -> Plan:
    names = ("micro_batch", "accumulation", "checkpointing")
    changed = {name: getattr(settings, name) for name in names}
    if plan.settings.strategy not in (None, "single"):
        del changed["accumulation"]
    return plan.model_copy(update={"settings": plan.settings.model_copy(update=changed)})


def _change(settings: FullSettings) -> Message:
    return Message.of(
        "verify.fits",
        micro=settings.micro_batch,
        steps=settings.accumulation,
        checkpointing=settings.checkpointing,
    )
