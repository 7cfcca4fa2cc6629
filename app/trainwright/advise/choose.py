"""The entry points: advice for a plan, and the plan with the advice taken."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import dropwhile, islice, takewhile
from math import inf

from trainwright.advise import learning_rate, loading, pareto, relax, space
from trainwright.advise.advice import Advice, Choice, Reason, Relaxation
from trainwright.advise.mistakes import mistakes
from trainwright.advise.reasons import SHARDING_SOURCE, reasons, untimed_reasons
from trainwright.advise.search import Search, Sources, Timed
from trainwright.advise.taking import with_settings
from trainwright.estimate import fp8
from trainwright.estimate.optimizers import traced_as
from trainwright.messages import Message, UserError
from trainwright.plan.evaluate import Facts, resolve, stored
from trainwright.plan.question import question
from trainwright.plan.report import Report, Verdict
from trainwright.plan.schema import Plan
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings
from trainwright.workload.settings import Effect

_SAME = 1e-9
"""Relative difference below which two times are the same work."""
_NEAR = 0.05
"""Longer step that is worth a margin, as a share; less the estimate cannot tell. Assumed."""
_TRIES = 4
"""Replays spent on a choice with a margin; assumed."""


def advise(
    plan: Plan,
    facts: Facts,
    *,
    top: int = 5,
    sources: Sources | None = None,
    wanted: Callable[[], bool] = lambda: True,
) -> Advice:
    """Return the best settings for the keys that the plan leaves free, ranked.

    Minimises the time of the effective batch, which is kept exactly, among settings whose
    p95 of device memory fits. Considers only structures whose profile is at hand, and says
    which it could not consider. ``wanted`` ends the search for ways out.
    """
    search = Search(plan, loading.with_most_workers(plan, facts), sources or STORED)
    ranked = _ranked(search)
    first = next(ranked, None)  # the others are worked out once it is clear that they count
    own = first[0].candidate.effect if first is not None else None
    if own is not Effect.SAME and (shared := _shared(search, own, top, wanted)) is not None:
        return shared
    if first is None:
        ways = relax.relaxations(search, wanted)
        compared = any(way.change.id == relax.SHARES_ASIDE for way in ways)
        hints = () if compared else relax.hints(search)
        return Advice(
            choices=(),
            pareto=(),
            nothing_fits=ways,
            notes=(*hints, *_not_considered(search, obeying=False)),
            considered=search.considered,
            short_by_bytes=relax.shortage(search),
        )
    chosen = [first, *islice(ranked, top - 1)]
    best, report = first
    if report.time.refusal is not None:
        return _by_memory(search, chosen, report.time.refusal)
    return Advice(
        choices=tuple(
            Choice(found.settings, found, reasons(search, timed, found), timed.candidate.effect)
            for timed, found in (
                (timed, loading.settled(search, timed, found)) for timed, found in chosen
            )
        ),
        pareto=pareto.front(search, best),
        nothing_fits=(),
        notes=(
            *_margin(search, first),
            *mistakes(search, best, report),
            *_fp8(search, best),
            *_not_considered(search),
        ),
        considered=search.considered,
    )


def would_shard(advice: Advice) -> bool:
    """Return whether weights shared out may give the same result, and were not compared."""
    if not advice.choices:
        return any(note.id in relax.SHARDING_HINTS for note in advice.notes)
    best = advice.choices[0]
    return best.effect is not Effect.SAME and not best.settings.shards


def _shared(
    search: Search, own: Effect | None, top: int, wanted: Callable[[], bool]
) -> Advice | None:
    """Return the advice for weights shared out, where it changes less of the training.

    ``own`` is the effect of what fits with whole copies. Sharding itself changes no result, and
    neither does a system memory that holds the shares. That one is slow, and comes last.
    """
    if next(search.obedient.leanest(), None) is None:  # no profile is at hand
        return None
    known = search.facts.machine.memory_bytes is not None
    least, best = own, None
    for aside in (False, True) if known else (False,):
        plan = relax.sharding(search.plan, aside=aside)
        if plan is None or not wanted():
            break
        facts = search.sources.resolve(plan)
        if facts is None:  # its structure has to be traced first, as a note says
            break
        found = advise(plan, facts, top=top, sources=search.sources, wanted=lambda: False)
        if found.choices and (least is None or found.choices[0].effect < least):
            least = found.choices[0].effect
            best = _because_shared(found, search.facts.machine.gpu_count, aside=aside)
        if least is Effect.SAME:
            break
    return best


def _because_shared(found: Advice, gpus: int, *, aside: bool) -> Advice:
    """Return the advice with the reason why weights are shared out."""
    because = Message.of("advise.strategy.fsdp2", gpus=gpus)
    given = [Reason("strategy", "fsdp2", because, SHARDING_SOURCE)]
    if aside:
        why = Message.of("advise.shard-offload")
        given.append(Reason("shard_offload", True, why, SHARDING_SOURCE))
    choices = (replace(one, reasons=(*given, *one.reasons)) for one in found.choices)
    return replace(found, choices=tuple(choices))


def _by_memory(search: Search, chosen: list[tuple[Timed, Report]], refused: Message) -> Advice:
    """Return what fits by the memory it takes, where no time is predicted."""
    return Advice(
        choices=tuple(
            Choice(
                found.settings, found, untimed_reasons(search, timed, found), timed.candidate.effect
            )
            for timed, found in chosen
        ),
        pareto=(),
        nothing_fits=(),
        notes=(Message.of("advise.untimed"), refused, *_not_considered(search)),
        considered=search.considered,
    )


def _ranked(search: Search) -> Iterator[tuple[Timed, Report]]:
    """Yield the best that fit, of those that take the same time only the least surprising.

    All have the effect of the first: what trains differently is no choice where something fits
    that does not.
    """
    chosen: list[Timed] = []
    for timed in search.obedient:
        if chosen and timed.candidate.effect > chosen[0].candidate.effect:
            return
        if any(abs(timed.seconds - one.seconds) <= _SAME * one.seconds for one in chosen):
            continue
        for found in search.confirmed([timed]):
            calm = _with_margin(search, found, _SAME, _spares) if not chosen else None
            chosen.append(timed)
            yield calm or found


def _with_margin(
    search: Search,
    first: tuple[Timed, Report],
    longer: float,
    calm: Callable[[Report], bool],
) -> tuple[Timed, Report] | None:
    """Return the fastest that is calm where the first choice has no margin at all, if any.

    Its step is longer than the first one's by the share ``longer`` at most.
    """
    chosen, report = first
    if _spares(report) or chosen.seconds == inf:
        return None

    def near(one: Timed) -> bool:
        alike = one.candidate.departs == chosen.candidate.departs
        return alike and one.seconds <= chosen.seconds * (1 + longer)

    rest = dropwhile(lambda one: one.candidate != chosen.candidate, search.obedient)
    others = islice(takewhile(near, islice(rest, 1, None)), _TRIES)
    return next((one for one in search.confirmed(others) if calm(one[1])), None)


def _margin(search: Search, first: tuple[Timed, Report]) -> Iterator[Message]:
    """Yield what a margin costs where the first choice is tight."""
    calm = _with_margin(search, first, _NEAR, lambda report: report.verdict is Verdict.FITS)
    if calm is None:
        return
    now, then = first[1].settings, calm[1].settings
    keys = ("micro_batch", *space.SAVERS)
    changes = [f"{key}: {getattr(then, key)}".lower() for key in keys
               if getattr(now, key) != getattr(then, key)]  # fmt: skip
    cost = calm[0].seconds / first[0].seconds - 1
    yield Message.of("advise.margin", changes=changes, cost=cost, spare=_spare(calm[1]))


def _spare(report: Report) -> float:
    """Return the bytes that stay free at p95."""
    return report.memory.device_total.value - report.memory.device_used_p95.value


def _spares(report: Report) -> bool:
    """Return whether anything stays free: else cached memory has to be given back at p95."""
    return _spare(report) >= 1


def _fp8(search: Search, best: Timed) -> Iterator[Message]:
    """Yield what fp8 products would gain, which no plan may ask for yet."""
    profile = search.profile(best.candidate)
    workload = search.plan.workload
    if profile is None or not workload.trains or workload.adapts:
        return
    settings, micro = search.settings(best.candidate), best.candidate.micro_batch
    factor = fp8.gain(search.clock(best.candidate), profile, settings, micro)
    if factor is not None:
        gpu = search.facts.machine.gpu.record.name
        ending = "faster" if factor > 1 else "slower"
        factor = max(factor, 1 / factor)
        yield Message.of(f"advise.fp8.{ending}", gpu=gpu, factor=factor)


def _not_considered(search: Search, *, obeying: bool = True) -> tuple[Message, ...]:
    """Return which values had no profile at hand; ``obeying``: of those that the plan allows."""
    base = search.facts.settings
    found = set()
    for candidate in search.uncompared:
        if obeying and candidate.freed:
            continue  # the plan rules it out anyway
        traced = ("precision", "attention", "channels_last", "cross_entropy")
        other = [key for key in traced if getattr(candidate, key) != getattr(base, key)]
        if candidate.checkpointing == "selective":
            other.append("checkpointing")
        if traced_as(candidate.optimizer) != traced_as(base.optimizer):
            other.append("optimizer")
        if len(other) == 1:
            found.add((other[0], str(getattr(candidate, other[0])).lower()))
    named = [Message.of("advise.value", setting=key, value=value) for key, value in sorted(found)]
    untraced = (Message.of("advise.not-considered", values=named),) if named else ()
    by_rule = tuple(_left_out(search))
    return (*untraced, Message.of("advise.not-compared", values=by_rule)) if by_rule else untraced


def _left_out(search: Search) -> Iterator[Message]:
    """Yield what the search never tries, with the reason."""
    fixed, profile = search.plan.settings, search.facts.profile
    if not search.plan.workload.trains:
        return
    moves = fixed.activation_offload is None or fixed.optimizer_offload is None
    left_out = {
        "fused": (
            fixed.cross_entropy is None
            and "vocabulary" in profile.model
            and search.plan.workload.objective is None
        ),
        "selective": fixed.checkpointing is None and profile.blocks > 0,
        "optimizers": fixed.optimizer is None,
        "in-backward": fixed.optimizer_in_backward is None,
        "host-memory": moves and search.facts.machine.memory_bytes is None,
        "compile": fixed.compile is None,
    }
    for name, applies in left_out.items():
        if applies:
            yield Message.of(f"advise.not-compared.{name}")


def make_it_fit(plan: Plan, advice: Advice) -> Plan:
    """Return the plan with the best choice for its open keys; nothing asked for changes.

    The plan itself where nothing fits: a way out is a person's choice.
    """
    if not advice.choices:
        return plan
    best = advice.choices[0]
    return with_settings(plan, best.settings, best.reasons)


def ways_out(plan: Plan, facts: Facts, wanted: Callable[[], bool]) -> tuple[Relaxation, ...]:
    """Return what makes a plan fit: its open settings alone where that is enough."""
    advice = advise(plan, facts, top=1, wanted=wanted)
    if not advice.choices:
        return advice.nothing_fits
    (best,) = advice.choices
    fitted = make_it_fit(plan, advice)
    changes = relax.changes(plan, facts.settings, fitted, best.settings)
    change = Message.of("advise.whatif.fit")
    return (Relaxation(change, fitted, changes, best.effect, best.estimate),)


def with_whole_batch(plan: Plan) -> tuple[Plan, tuple[Message, ...]]:
    """Return the plan with an effective batch that its GPUs share evenly, and what changed.

    The plan itself where nothing must change, or where the search may leave GPUs idle.
    """
    effective = plan.workload.effective_batch
    gpus = plan.machine.gpu_count or 1
    if effective is None or not plan.workload.trains or plan.settings.strategy == "single":
        return plan, ()
    rounded = learning_rate.whole_batch(effective, gpus)
    if rounded == effective:
        return plan, ()
    workload = plan.workload.model_copy(update={"effective_batch": rounded})
    notes = [Message.of("advise.rounded", asked=effective, taken=rounded, gpus=gpus)]
    rate = learning_rate.learning_rate_advice(
        plan.settings.optimizer or "adamw",
        plan.workload.task,
        effective,
        rounded,
        plan.settings.learning_rate,
    )
    if rate is not None:
        notes.append(rate)
    return plan.model_copy(update={"workload": workload}), tuple(notes)


def _stored_profile(plan: Plan, facts: Facts, settings: FullSettings) -> Profile | None:
    return stored(question(plan, settings, facts.machine.gpu.record).spec)


def _resolved(plan: Plan) -> Facts | None:
    try:
        found = resolve(plan)
    except UserError:
        return None
    return found if isinstance(found, Facts) else None


STORED = Sources(_stored_profile, _resolved)
"""Shipped and cached profiles."""
