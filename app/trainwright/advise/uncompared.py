"""What would do, or do better, and was not compared, by the terms that are known."""

from collections.abc import Iterator
from dataclasses import replace

from trainwright.advise.relax import by_engine
from trainwright.advise.search import Search, first
from trainwright.advise.space import Candidate
from trainwright.messages import Message
from trainwright.plan.report import Report
from trainwright.plan.serving import NO_TENSOR_PARALLEL, TENSOR_PARALLEL
from trainwright.workload.settings import SHARDED, SHARDED_OPTIMIZERS, Effect

SHARDING_HINTS = ("advise.sharding", "advise.sharding-aside")
_SHARED = ("parameters", "gradients", "optimizer")
"""Terms of the memory that FSDP2 and ZeRO-3 share out."""
_OF_COPIES = ("buckets", "casts")
"""Terms that only whole copies of the weights have."""
_NAMED = ("precision", "optimizer", "micro_batch", "checkpointing")
_LEFT = 0.25
"""Of the gradients where each weight is updated as soon as its own is there: the largest one's, an
embedding's; assumed, Llama 3.1 8B's takes 7 % of the weights, Gemma 3 4B's 16 %."""
_FASTER = 1.2
"""How many times as fast, against transformers: less is within the interval of both; assumed."""
_WITH_EARLY_STEP = ("optimizer", "precision", "checkpointing", "cross_entropy", "allocator")


def uncompared(search: Search, *, shards: bool) -> Iterator[Message]:
    """Yield ways that people go, and that nothing was traced for.

    ``shards``: whether shares of the weights may be among them. Of a denoiser's adapters:
    diffusers: examples/dreambooth/README_flux.md; kohya-ss/sd-scripts: docs, FLUX.1. Of all weights
    on one GPU: torchtune: recipes, full_finetune_single_device.
    """
    yield from _ruled_out(search)
    if shards:
        yield from _sharding(search)
    yield from _early_step(search)
    if search.plan.workload.adapts and '"_class_name"' in search.facts.config:
        yield Message.of("advise.known-ways.denoiser")


def by_vllm(search: Search, report: Report) -> Iterator[Message]:
    """Yield what vLLM would gain where the plan leaves open what writes tokens.

    Nothing where that is hardly faster than transformers' generate.
    """
    yield from _faster_engine(search, report)
    yield from _faster_writer(search, report)


def _faster_engine(search: Search, report: Report) -> Iterator[Message]:
    """Yield the requests that vLLM would answer on the same GPUs."""
    own, plan = report.time.samples_per_second, None
    if search.facts.settings.engine == "transformers":
        plan = by_engine(search.plan, search.facts.machine.gpu.record)
    answer = first(plan, search.sources) if plan is not None else None
    rate = answer[2].time.samples_per_second if answer is not None else None
    if rate is not None and own is not None and rate.value > _FASTER * own.value:
        yield Message.of("advise.engine", engine="vllm", rate=rate.value, own=own.value)


def _faster_writer(search: Search, report: Report) -> Iterator[Message]:
    """Yield what a step takes whose answers a vLLM on the same GPUs writes, where that is less.

    TRL has it in the same process (``use_vllm``), all the time or only while it writes.
    """
    plan, own = search.plan, report.time.step_seconds
    open_ = plan.workload.writes is not None and plan.settings.generation is None
    if not open_ or own is None or search.facts.settings.generation != "transformers":
        return
    for way in ("vllm", "vllm-sleep"):
        settings = plan.settings.model_copy(update={"generation": way})
        answer = first(plan.model_copy(update={"settings": settings}), search.sources)
        step = answer[2].time.step_seconds if answer is not None else None
        if step is not None and _FASTER * step.value < own.value:
            values = {"generation": way, "step": step.value, "own": own.value}
            yield Message.of("advise.generation", **values)
            return


def _sharding(search: Search) -> Iterator[Message]:
    """Yield what weights shared out over the GPUs would take."""
    smallest, count = search.smallest, search.facts.machine.gpu_count
    if smallest is None or count < 2:
        return
    if not search.plan.workload.trains:
        ids = (TENSOR_PARALLEL, NO_TENSOR_PARALLEL)
        yield from (one for one in search.report(smallest).notes if one.id in ids)
        return
    if smallest.strategy in SHARDED or search.plan.workload.objective is not None:
        # It was compared, and takes the least memory; pairs are not sharded.
        return
    room, (rest, whole, _) = search.room(smallest), _terms(search, smallest)
    for id, kept in zip(SHARDING_HINTS, (whole / count, 0.0), strict=True):
        need = rest + kept
        if need <= room:
            task = search.plan.workload.task
            yield Message.of(id, gpus=count, task=task, need=need, room=room, host=whole)
            return


def _terms(search: Search, point: Candidate) -> tuple[float, float, float]:
    """Return what each GPU keeps of a step, what FSDP2 shares out, and a reference; in bytes."""
    terms = {one.role: one.value for one in search.report(point).memory.allocated_peak.parts}
    reference = terms.get("reference", 0.0)
    shared = sum(terms.get(role, 0.0) for role in _SHARED)
    gone = sum(terms.get(role, 0.0) for role in _OF_COPIES)
    return search.peak(point) - shared - reference - gone, shared, reference


def _early_step(search: Search) -> Iterator[Message]:
    """Yield that the optimizer's step within backward would do, where that is not compared.

    The whole batch goes through at once then: gradients are not summed up.
    """
    plan, smallest = search.plan, search.smallest
    given, workload = plan.settings, plan.workload
    if smallest is None or not workload.trains or workload.adapts or workload.objective is not None:
        return
    if smallest.strategy != "single" or given.optimizer_in_backward is not None:
        return
    if given.accumulation not in (None, 1) or given.micro_batch is not None:
        return
    batch = workload.effective_batch or 1
    at_once = replace(smallest, micro_batch=batch, accumulation=1)
    parts = search.report(smallest).memory.allocated_peak.parts
    saved = (1 - _LEFT) * sum(one.value for one in parts if one.role == "gradients")
    need, room = search.peak(at_once) - saved, search.room(smallest)
    if need <= room < search.peak(smallest):
        now = search.facts.settings
        taken = {key: getattr(smallest, key) for key in _WITH_EARLY_STEP}
        others = {key: value for key, value in taken.items() if value != getattr(now, key)}
        keys = [f"settings.{key}: {value}" for key, value in others.items()]
        task = Message.of(f"ui.task.{workload.task}")
        values = {"task": task, "batch": batch, "settings": keys}
        yield Message.of("advise.early-step", need=need, room=room, saved=saved, **values)


def _ruled_out(search: Search) -> Iterator[Message]:
    """Yield what shares of the weights would take where an objective rules them out.

    The least change of the training that does. TRL shares a reference too (trl 1.16, models/utils:
    ``prepare_fsdp``, ``prepare_deepspeed`` with stage 3).
    """
    plan, count = search.plan, search.facts.machine.gpu_count
    if plan.workload.objective is None or count < 2 or plan.settings.strategy is not None:
        return
    for effect in Effect:
        points = [
            one
            for one in search.obedient.leanest(effect)
            if one.strategy == "ddp" and one.optimizer in SHARDED_OPTIMIZERS
        ]
        # Where the state is shared, what a sample takes decides: the peak of today does not tell.
        points.sort(key=lambda one: (one.micro_batch, search.peak(one)))
        if points and (found := _shared(search, points[0], count)) is not None:
            yield found
            return


def _shared(search: Search, point: Candidate, count: int) -> Message | None:
    """Return what a step takes with its weights over the GPUs; None where it does not fit so."""
    rest, shared, reference = _terms(search, point)
    need, room = rest + (shared + reference) / count, search.room(point)
    if need > room:
        return None
    workload = search.plan.workload
    return Message.of(
        "advise.sharding-reference" if reference else "advise.sharding-objective",
        task=Message.of(f"ui.task.{workload.task}"),
        objective=workload.objective,
        gpus=count,
        need=need,
        whole=rest + shared / count + reference,
        room=room,
        settings=[f"settings.{key}: {getattr(point, key)}" for key in _NAMED],
    )
