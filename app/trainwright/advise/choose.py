"""The entry points: advice for a plan, and the plan with the advice taken."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from math import inf

from trainwright.advise import aside, experts, learning_rate, loading, pareto, relax, space, waiting
from trainwright.advise.advice import Advice, Choice, Relaxation
from trainwright.advise.mistakes import mistakes
from trainwright.advise.reasons import reasons, worth_compiling
from trainwright.advise.search import Search
from trainwright.advise.sharing import sharded
from trainwright.advise.splitting import split, splittings
from trainwright.advise.staging import WORTH_STAGES, staged, stagings
from trainwright.advise.taking import with_settings
from trainwright.advise.uncompared import SHARDING_HINTS, by_vllm, uncompared
from trainwright.advise.walk import Sources, Timed
from trainwright.advise.wayout import changes
from trainwright.estimate.optimizers import traced_as
from trainwright.estimate.time import fp8
from trainwright.messages import Message, UserError
from trainwright.plan.evaluate import Facts, Pending, resolve, stored
from trainwright.plan.judging import waiting_share
from trainwright.plan.report import Report
from trainwright.plan.rollout import answers_of, with_answers
from trainwright.plan.schema import Plan
from trainwright.plan.serving import WAITS
from trainwright.plan.trace_request import question
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings
from trainwright.workload.settings import SHARDED, Effect

_SAME = 1e-9
"""Relative difference below which two times are the same work."""
_WORTH_NAMING = 0.01
"""Shorter step that is worth naming where it leaves no headroom, as a share. Assumed: below it the
estimate cannot tell."""
_WAITS = 1 / 3
"""Share of a step that GPUs wait for each other, from which on split layers are compared: they wait
too, in every layer. Assumed: where Llama 3.1 8B on 8 H100 waits 24 %, they take 13 % longer."""


def advise(
    plan: Plan,
    facts: Facts,
    *,
    top: int = 5,
    alone: bool = False,
    sources: Sources | None = None,
    wanted: Callable[[], bool] = lambda: True,
) -> Advice:
    """Return the best settings for the keys that the plan leaves free, ranked.

    Minimises the time of the effective batch, which is kept exactly, among settings whose
    p95 of device memory fits. Considers only structures whose profile is at hand, and says
    which it could not consider. ``alone``: the first choice with its reasons, and neither notes
    nor trades: what Make it fit takes. ``wanted`` ends the search for ways out.
    """
    search = Search(plan, loading.with_most_workers(plan, facts), sources or STORED)
    ranked = _ranked(search)
    first = next(ranked, None)  # the others are worked out once it is clear that they count
    own = first[0].candidate.effect if first is not None else None
    if (apart := _apart(search, first, top, alone, wanted)) is not None:
        return apart
    if own is not Effect.SAME and (moved := _aside(search, own, top, alone, wanted)) is not None:
        return moved
    if first is None:
        ways = relax.relaxations(search, wanted)
        compared = any(way.change.id == aside.SHARES_ASIDE or _shards(way) for way in ways)
        others = uncompared(search, shards=not compared)
        return Advice(
            choices=(),
            pareto=(),
            nothing_fits=ways,
            notes=(*others, *_not_considered(search, obeying=False)),
            considered=search.considered,
            short_by_bytes=relax.shortage(search),
        )
    if alone:
        return Advice((_choice(search, *first),), (), (), (), considered=0)
    best, report = first
    choices = tuple(_choice(search, *one) for one in (first, *islice(ranked, top - 1)))
    if report.time.refusal is not None:
        untimed = (Message.of("advise.untimed"), report.time.refusal, *_not_considered(search))
        return Advice(choices, (), (), untimed, search.considered)
    return Advice(
        choices=choices,
        pareto=pareto.front(search, best),
        nothing_fits=(),
        notes=(
            *(note for note in report.notes if note.id == WAITS),
            *by_vllm(search, report),
            *_margin(search, first),
            *waiting.ways(search, best, report),
            *mistakes(search, best, report),
            *worth_compiling(choices[0].reasons),
            *_fp8(search, best),
            *_not_considered(search),
        ),
        considered=search.considered,
    )


def _shards(way: Relaxation) -> bool:
    """Return whether a way out shares out the weights of what was asked, not of a smaller model."""
    other = any(key.startswith(("model.", "workload.")) for key in way.changes)
    return way.changes.get("settings.strategy") == "fsdp2" and not other


def worth_tracing(
    plan: Plan, advice: Advice, by: Callable[[Plan], Facts | Pending] = resolve
) -> Iterator[tuple[str, Pending]]:
    """Yield (what, what must be traced) before the advice can compare it, where that may help.

    Weights shared out, convolutions in channels last, a recipe's step with and without
    checkpointing, and adapters or fewer bits, also of experts, where nothing fits.
    """
    for what, one in _wanted(plan, advice):
        try:
            found = by(one)
        except UserError:  # the model, or the settings, do not go with it
            continue
        if isinstance(found, Pending):
            yield what, found


def advise_and_trace(
    plan: Plan,
    facts: Facts,
    trace: Callable[[Pending], object],
    *,
    top: int = 5,
    alone: bool = False,
) -> Advice:
    """Return the advice after ``trace`` has traced each step that may be better.

    A way out that cannot be traced is named in a note.
    """
    advice, unknown = advise(plan, facts, top=top, alone=alone), list[Message]()
    known = False
    for what, pending in worth_tracing(plan, advice):
        try:
            trace(pending)
            known = True
        except UserError as error:  # a package that only this way out needs, for one
            unknown.append(_untraced(what, error))
    advice = advise(plan, facts, top=top, alone=alone) if known else advice
    for parted in _worth_splitting(plan, facts, advice):
        try:
            found = resolve(parted)
            if isinstance(found, Pending):
                trace(found)
                advice = advise(plan, facts, top=top, alone=alone)
        except UserError:  # the model cannot be split so
            break
        if not _splits(advice, parted.settings.tensor_degree):
            break
    return replace(advice, notes=(*unknown, *advice.notes))


def _wanted(plan: Plan, advice: Advice) -> Iterator[tuple[str, Plan]]:
    shared = aside.sharding(plan) if _would_shard(advice) else None
    if shared is not None:
        yield "fsdp2", shared
    skipped = (note for note in advice.notes if note.id == "advise.not-considered")
    named = [value.values["setting"] for note in skipped for value in note.values["values"]]
    switches = (key for key in ("channels_last", "expanded_heads") if key in named)
    yield from ((key, _with_settings(plan, **{key: True})) for key in switches)
    by_recipe = plan.settings.recipe is not None or plan.workload.objective is not None
    if by_recipe and plan.settings.checkpointing is None:
        for level in ("none", "full"):
            yield f"checkpointing: {level}", _with_settings(plan, checkpointing=level)
    if not advice.choices:
        yield from _one_sample(shared or plan)
        yield from ((one.workload.task, one) for one in relax.smaller_tasks(plan))
        yield from (("separate_experts", one) for one in experts.apart(plan))


def _one_sample(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Yield the plan with one sample a micro-batch, where that is open: a step of its own."""
    given = plan.settings
    if plan.workload.trains and given.micro_batch is None and given.accumulation is None:
        checkpointing = given.checkpointing or "full"
        yield "micro_batch: 1", _with_settings(plan, micro_batch=1, checkpointing=checkpointing)


def _with_settings(plan: Plan, **changed: object) -> Plan:
    return plan.model_copy(update={"settings": plan.settings.model_copy(update=changed)})


def _untraced(what: str, error: UserError) -> Message:
    """Return that something was not compared, because its step could not be traced."""
    return Message.of("advise.untraced", what=what, problem=error.message)


def _would_shard(advice: Advice) -> bool:
    """Return whether weights shared out may give the same result, and were not compared."""
    if not advice.choices:
        return any(note.id in SHARDING_HINTS for note in advice.notes)
    best = advice.choices[0]
    return best.effect is not Effect.SAME and not best.settings.shards


def _worth_splitting(plan: Plan, facts: Facts, advice: Advice) -> tuple[Plan, ...]:
    """Return the plan with its layers split, where that may do better than the choices.

    The likeliest first: few GPUs a layer wait the least, many need the least memory. Where one is
    no better, those after it are not either.
    """
    found, best = tuple(splittings(plan, facts.machine)), next(iter(advice.choices), None)
    if best is None or best.effect is not Effect.SAME:
        return found[::-1]
    return found if _may_be_split(best.effect, best.estimate) else ()


def _splits(advice: Advice, degree: int | None) -> bool:
    """Return whether the first choice splits layers over so many GPUs."""
    return bool(advice.choices) and advice.choices[0].settings.tensor_degree == degree


def _may_be_split(effect: Effect, report: Report) -> bool:
    """Return whether split layers may do better: the best changes the result, or its GPUs have one
    sample each and wait for each other.
    """
    settings = report.settings
    if settings.tensor_degree is not None:
        return False
    if effect is not Effect.SAME:
        return True
    waits = waiting_share(report.time)
    alone = settings.micro_batch * settings.accumulation == 1
    return alone and waits is not None and waits > _WAITS


def _apart(
    search: Search,
    first: tuple[Timed, Report] | None,
    top: int,
    alone: bool,
    wanted: Callable[[], bool],
) -> Advice | None:
    """Return the advice for layers that are split or cut into stages, where the best without
    changes the result or is slower.

    They are compared only where they may help, and by profiles that are at hand.
    """
    nobody, found = (lambda: False), list[tuple[float, Advice]]()
    same = first is not None and first[0].candidate.effect is Effect.SAME
    before = first[0].seconds if first is not None and same else inf
    for plan in _divided(search, first, same=same):
        facts = search.sources.resolve(plan) if wanted() else None
        if facts is None:  # its structure has to be traced first
            continue
        advice = advise(plan, facts, top=top, alone=alone, sources=search.sources, wanted=nobody)
        best = next((one for one in advice.choices if one.effect is Effect.SAME), None)
        step = best.estimate.time.step_seconds if best is not None else None
        worth = WORTH_STAGES if plan.settings.strategy == "pp" else 0.0
        if step is not None and step.value < before * (1 - worth):
            found.append((step.value, advice))
    step_seconds, best_advice = min(found, key=lambda one: one[0], default=(inf, None))
    if best_advice is None:
        return None
    less = 1 - step_seconds / before if same else None
    report = best_advice.choices[0].estimate
    stages = report.settings.pipeline_stages
    given = staged(report, less) if stages else split(report.settings, less)
    choices = (replace(one, reasons=(given, *one.reasons)) for one in best_advice.choices)
    return replace(best_advice, choices=tuple(choices))


def _divided(search: Search, first: tuple[Timed, Report] | None, *, same: bool) -> Iterator[Plan]:
    """Yield the plan with its layers divided, in the ways that may do better than the first.

    ``same`` says whether there is a first one and it keeps the result.
    """
    machine = search.facts.machine
    if first is None or _may_be_split(first[0].candidate.effect, first[1]):
        yield from splittings(search.plan, machine)
    waits = waiting_share(first[1].time) if first is not None and same else 1.0
    yield from stagings(search.plan, search.facts, waits or 0.0)


def _aside(
    search: Search, own: Effect | None, top: int, alone: bool, wanted: Callable[[], bool]
) -> Advice | None:
    """Return the advice for shares of the weights in system memory, where it changes less.

    ``own`` is the effect of what fits in the GPUs' memory. Sharding changes no result, but from
    system memory it is slow: it comes after all that keeps the result.
    """
    if next(search.obedient.leanest(), None) is None:  # no profile is at hand
        return None
    plan = aside.sharding(search.plan, aside=True)
    if plan is None or search.facts.machine.memory_bytes is None or not wanted():
        return None
    facts = search.sources.resolve(plan)
    if facts is None:  # its structure has to be traced first, as a note says
        return None
    sources, nobody = search.sources, lambda: False
    found = advise(plan, facts, top=top, alone=alone, sources=sources, wanted=nobody)
    if not found.choices or (own is not None and found.choices[0].effect >= own):
        return None
    given = sharded(search.facts.machine.gpu_count, aside=True)
    choices = (replace(one, reasons=(*given, *one.reasons)) for one in found.choices)
    return replace(found, choices=tuple(choices))


def _choice(search: Search, timed: Timed, report: Report) -> Choice:
    """Return a choice with its reasons, of which some need the time of a step."""
    if report.time.refusal is None:
        report = loading.settled(search, timed, report)
    found = reasons(search, timed, report)
    return Choice(report.settings, report, found, timed.candidate.effect)


def _ranked(search: Search) -> Iterator[tuple[Timed, Report]]:
    """Yield the best that fit, of those that take the same time only the least surprising.

    All have the effect of the first: what trains differently is not a choice where something fits
    that does not.
    """
    chosen: list[Timed] = []

    def others() -> Iterator[Timed]:
        seen = 0
        for effect in Effect:
            if chosen and effect > chosen[0].candidate.effect:
                return
            for timed in search.preferred.within(effect, after=seen):
                seen += 1
                if not any(
                    abs(timed.seconds - one.seconds) <= _SAME * one.seconds for one in chosen
                ):
                    yield timed

    for found in search.best(search.preferred, others()):
        chosen.append(found[0])
        yield found


def _margin(search: Search, first: tuple[Timed, Report]) -> Iterator[Message]:
    """Yield that the first choice is at the edge, or what is faster there."""
    if not first[1].roomy:
        yield Message.of("advise.no-margin", spare=_spare(first[1]))
        return
    fastest = next(search.confirmed(search.preferred), first)
    gain = 1 - fastest[0].seconds / first[0].seconds
    if fastest[1].roomy or gain < _WORTH_NAMING:
        return
    now, then = first[1].settings, fastest[1].settings
    keys = ("strategy", "micro_batch", *space.SAVERS)
    changes = [f"{key}: {getattr(then, key)}".lower() for key in keys
               if getattr(now, key) != getattr(then, key)]  # fmt: skip
    yield Message.of("advise.margin", changes=changes, gain=gain, spare=_spare(fastest[1]))


def _spare(report: Report) -> float:
    """Return the bytes that stay free at p95."""
    return report.memory.device_total.value - report.memory.device_used_p95.value


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


_TRACED = ("precision", "strategy", "attention", "expanded_heads", "channels_last", "cross_entropy")
"""Settings of which each value has a step of its own."""


def _not_considered(search: Search, *, obeying: bool = True) -> tuple[Message, ...]:
    """Return which values had no profile at hand; ``obeying``: of those that the plan allows."""
    base = search.facts.settings
    found = set()
    for candidate in search.uncompared:
        if obeying and candidate.freed:
            continue  # the plan rules it out anyway
        other = [key for key in _TRACED if getattr(candidate, key) != getattr(base, key)]
        recomputes = [one.checkpointing != "none" for one in (candidate, base)]
        differs = base.recipe is not None and recomputes[0] is not recomputes[1]
        if candidate.checkpointing == "selective" or differs:
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
    shares = search.facts.machine.gpu_count > 1 and search.plan.workload.objective is None
    shares = shares and fixed.strategy in (None, *SHARDED)
    moves = fixed.activation_offload is None or fixed.optimizer_offload is None
    left_out = {
        "fused": (
            fixed.cross_entropy is None
            and "vocabulary" in profile.model
            and search.plan.workload.objective is None
        ),
        "selective": fixed.checkpointing is None and profile.blocks > 0,
        "optimizers": fixed.optimizer is None,
        # bitsandbytes 0.50, issue 1633: DTensors end in an illegal memory access.
        "sharded": fixed.optimizer is None and shares,
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


def ways_out(
    plan: Plan, facts: Facts, wanted: Callable[[], bool], sources: Sources | None = None
) -> tuple[Relaxation, ...]:
    """Return what makes a plan fit: its open settings alone where that is enough."""
    advice = advise(plan, facts, alone=True, sources=sources, wanted=wanted)
    if not advice.choices:
        return advice.nothing_fits
    (best,) = advice.choices
    fitted = make_it_fit(plan, advice)
    changed = changes(plan, facts.settings, fitted, best.settings)
    change = Message.of("advise.whatif.fit")
    return (Relaxation(change, fitted, changed, best.effect, best.estimate),)


def with_whole_batch(plan: Plan) -> tuple[Plan, tuple[Message, ...]]:
    """Return the plan with an effective batch that its GPUs share evenly, and what changed.

    The plan itself where nothing must change, or where the search may leave GPUs idle.
    """
    effective = plan.workload.effective_batch
    gpus = plan.machine.gpu_count or 1
    stages = (plan.settings.pipeline_stages or gpus) if plan.settings.strategy == "pp" else 1
    gpus = gpus // ((plan.settings.tensor_degree or 1) * stages) or 1
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
    found = stored(question(plan, settings, facts.machine.gpu.record).spec)
    answers = answers_of(plan.workload, settings, facts.inputs, facts.machine.gpu_count)
    return with_answers(found, answers) if found is not None else None


def at_hand(plan: Plan, by: Callable[[Plan], Facts | Pending] = resolve) -> Facts | None:
    """Return the facts of a plan; None where it cannot be, or would have to be traced."""
    try:
        found = by(plan)
    except UserError:
        return None
    return found if isinstance(found, Facts) else None


STORED = Sources(_stored_profile, at_hand)
"""Shipped and cached profiles."""
