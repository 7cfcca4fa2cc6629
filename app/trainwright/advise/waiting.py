"""What GPUs that wait for each other could do instead, with this plan's numbers."""

from collections.abc import Iterator
from dataclasses import replace

from trainwright.advise.search import Search, first
from trainwright.advise.walk import Timed
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts, evaluate, time_of
from trainwright.plan.judging import waiting_share
from trainwright.plan.report import Report

_WAITS = 0.1
"""Share of a step that GPUs wait for each other, from which on that is worth a word; assumed."""
_WORTH = 0.02
"""Shorter step that is worth a word, as a share. Assumed: below it the estimate cannot tell."""
_ALL_FEW = 1.5
"""Efficiency over the number of computers below which one of them may be faster alone: it would
have to reach it at no more than 1.5 times the rate of a GPU by itself. Assumed."""
_HOW_SHARED = ("strategy", "shard_degree", "pipeline_stages", "tensor_degree")
_TIMES = 4
"""By how much a larger batch is tried; assumed."""


def ways(search: Search, best: Timed, report: Report) -> Iterator[Message]:
    """Yield what would shorten a step: weights kept, a larger batch; and what split layers cost."""
    yield from _one_node(search, best, report)
    yield from _split(search, best)
    step, waits = report.time.step_seconds, waiting_share(report.time)
    if report.settings.several and step is not None and waits is not None and waits > _WAITS:
        yield from _kept(search, best, report, step.value)
        yield from _larger(search, best, report, step.value)


def _one_node(search: Search, best: Timed, report: Report) -> Iterator[Message]:
    """Yield that one of several computers alone is faster, with its best settings."""
    nodes, now = search.facts.machine.nodes, report.time.samples_per_second
    if nodes < 2 or now is None or not report.time.scaling:
        return
    if report.time.scaling[-1].efficiency.value > _ALL_FEW / nodes:
        return  # whatever one of them does, together they are faster
    machine = search.plan.machine.model_copy(update={"nodes": 1, "network": None})
    settings = search.plan.settings.model_copy(update=dict.fromkeys(_HOW_SHARED))
    one = search.plan.model_copy(update={"machine": machine, "settings": settings})
    found = first(one, search.sources)
    alone = found[2].time.samples_per_second if found is not None else None
    if found is None or alone is None or alone.value < now.value:
        return
    yield Message.of(
        "advise.fewer-nodes",
        gpus=search.facts.machine.gpu_count // nodes,
        strategy=Message.of(f"ui.strategy.{found[2].settings.strategy}"),
        alone=alone.value,
        together=now.value,
        nodes=nodes,
    )


def _kept(search: Search, best: Timed, report: Report, now: float) -> Iterator[Message]:
    """Yield what keeping gathered weights for the backward pass saves, where that fits."""
    settings, given = report.settings, search.plan.settings
    if settings.strategy != "fsdp2" or given.reshard_after_forward is not None:
        return
    facts = _facts(search, best, report, reshard_after_forward=False)
    seconds = time_of(search.plan, facts).step_seconds
    if seconds is None or (less := 1 - seconds.value / now) < _WORTH:
        return
    kept = evaluate(search.plan, facts)
    if kept.fits and kept.roomy:
        used, total = kept.memory.device_used_p95.value, kept.memory.device_total.value
        yield Message.of("advise.waiting.kept", less=less, used=used, total=total)


def _larger(search: Search, best: Timed, report: Report, now: float) -> Iterator[Message]:
    """Yield what a larger batch by more accumulation gains, as samples a second."""
    effective, steps = search.plan.workload.effective_batch, report.settings.accumulation
    if effective is None:
        return
    workload = search.plan.workload.model_copy(update={"effective_batch": _TIMES * effective})
    plan = search.plan.model_copy(update={"workload": workload})
    facts = _facts(search, best, report, accumulation=_TIMES * steps)
    seconds = time_of(plan, facts).step_seconds
    if seconds is not None and (more := _TIMES * now / seconds.value - 1) >= _WORTH:
        strategy = report.settings.strategy
        ending = f"-{strategy}" if strategy in ("fsdp2", "pp") else ""
        yield Message.of(f"advise.waiting.larger{ending}", batch=_TIMES * effective, more=more)


def _split(search: Search, best: Timed) -> Iterator[Message]:
    """Yield how long a step takes with whole layers, where the plan fixes that they are split."""
    degree, given = search.plan.settings.tensor_degree, search.plan.settings
    if degree is None:
        return
    whole = given.model_copy(update={"tensor_degree": None})
    found = first(search.plan.model_copy(update={"settings": whole}), search.sources)
    if found is None or found[1].candidate.effect > best.candidate.effect:
        return
    longer = best.seconds / found[1].seconds - 1
    ending = "longer" if longer > 0 else "shorter"
    yield Message.of(f"advise.waiting.split-{ending}", degree=degree, share=abs(longer))


def _facts(search: Search, best: Timed, report: Report, **changed: object) -> Facts:
    """Return the facts of the choice with other settings, of the same profile."""
    profile = search.profile(best.candidate)
    assert profile is not None, "what was chosen has a profile"
    settings = report.settings.model_copy(update=changed)
    return replace(search.facts, settings=settings, profile=profile)
