"""Where a setting that the plan fixes follows a common mistake: what the numbers say here."""

from collections.abc import Iterator
from itertools import islice, takewhile
from math import inf
from typing import Any

from trainwright.advise.search import Search, first
from trainwright.advise.walk import Timed
from trainwright.messages import Message
from trainwright.plan.report import Report
from trainwright.workload import Dataset
from trainwright.workload.settings import DIVIDED

_WORTH_SAYING = 0.95
"""A step that is at least 5 % shorter; below that the estimate cannot tell. Assumed."""
_TRIES = 3
"""Replays spent on each fixed key."""
_HOW_DIVIDED = ("strategy", "shard_degree", "shard_offload", "pipeline_stages")
_WORKERS_A_CORE = 2
"""Assumed: above two workers a core each one only costs memory; torch warns above one."""


def mistakes(search: Search, best: Timed, report: Report) -> tuple[Message, ...]:
    """Return what fixed settings cost, largest first, each with this model's numbers."""
    found = [saved for key in search.changeable if (saved := _freed(search, best, key))]
    found.sort(key=lambda pair: pair[0])
    return (
        *_slower_together(search, best),
        *(message for _, message in found),
        *_divided(search, best),
        *_quantised(search, best),
        *_by_rule(search, report),
    )


def _freed(search: Search, best: Timed, key: str) -> tuple[float, Message] | None:
    """Return (seconds against the best, message) if the plan were better without the key."""
    if key == "precision" and search.facts.machine.gpu.record.vendor == "Apple":
        return None  # 16 bits save memory there; published runs show no speed (nanochat #685)
    better = takewhile(
        lambda timed: (
            timed.candidate.effect <= best.candidate.effect
            and timed.seconds < _WORTH_SAYING * best.seconds
        ),
        search.freed(key),
    )
    for timed, report in islice(search.confirmed(islice(better, _TRIES)), 1):
        ratio = timed.seconds / best.seconds
        return ratio, _message(search, best, timed, report, key)
    return None


def _message(search: Search, best: Timed, timed: Timed, report: Report, key: str) -> Message:
    ours, theirs = timed.candidate, best.candidate
    values = {
        "saved": 1 - timed.seconds / best.seconds,
        "used": report.memory.device_used_p95.value,
        "total": report.memory.device_total.value,
    }
    if key == "batch":
        micro = {"micro": theirs.micro_batch, "better": ours.micro_batch}
        return Message.of("advise.mistake.batch", **micro, **values)
    own, better = getattr(theirs, key), getattr(ours, key)
    if (key, theirs.strategy) == ("strategy", "ddp") and search.casts(ours):
        return Message.of("advise.flip.shares", less=values["saved"])
    if key == "checkpointing" and better == "none":
        return Message.of("advise.mistake.checkpointing", own=own, **values)
    record = search.facts.machine.gpu.record
    if key == "precision" and own == "fp32" and record.vendor == "NVIDIA":
        return Message.of("advise.mistake.fp32", better=better, gpu=record.name, **values)
    own, better = (_spelt(value, search.facts.machine.gpu_count) for value in (own, better))
    return Message.of("advise.mistake.other", setting=key, own=own, better=better, **values)


def _spelt(value: Any, gpus: int) -> Any:
    """Return a value as a plan file has it; one copy of the weights is shared by all ``gpus``."""
    if isinstance(value, bool):
        return str(value).lower()
    return gpus if value is None else value


def _divided(search: Search, best: Timed) -> Iterator[Message]:
    """Yield how much shorter a step is in another strategy than the one that the plan fixes."""
    given = search.plan.settings
    if given.strategy not in DIVIDED or given.tensor_degree is not None:
        return
    settings = given.model_copy(update=dict.fromkeys(_HOW_DIVIDED))
    plan = search.plan.model_copy(update={"settings": settings, "chosen": {}})
    answer = first(plan, search.sources)
    if answer is None or answer[1].candidate.effect > best.candidate.effect:
        return
    _, timed, report = answer
    another = timed.candidate.strategy != best.candidate.strategy
    if another and timed.seconds < _WORTH_SAYING * best.seconds:
        yield _message(search, best, timed, report, "strategy")


def _slower_together(search: Search, best: Timed) -> Iterator[Message]:
    """Yield which of several kinds of GPUs is faster without the others.

    Data-parallel GPUs wait for the slowest at each step, and hold what the smallest can.
    """
    plan = search.plan
    if not plan.workload.trains or len(search.facts.machine.gpus) < 2:
        return
    kinds = ((gpu.record.name, one) for gpu, one in zip(
        search.facts.machine.gpus, plan.machine.gpus, strict=False))  # fmt: skip
    settings = plan.settings.model_copy(
        update={"strategy": None, "shard_degree": None, "micro_batch": None, "accumulation": None}
    )
    found = []
    for name, kind in kinds:
        machine = plan.machine.model_copy(update={"gpus": (kind,)})
        alone = plan.model_copy(update={"machine": machine, "settings": settings, "chosen": {}})
        if (answer := first(alone, search.sources)) is not None:
            found.append((answer[1].seconds, name, kind.count, answer[2].memory))
    seconds, name, count, memory = min(found, default=(inf, "", 0, None), key=lambda one: one[0])
    if memory is not None and seconds < _WORTH_SAYING * best.seconds:
        values = {"used": memory.device_used_p95.value, "total": memory.device_total.value}
        saved = 1 - seconds / best.seconds
        yield Message.of("advise.mistake.mixed", gpu=name, gpus=count, saved=saved, **values)


def _quantised(search: Search, best: Timed) -> Iterator[Message]:
    """Yield what training on quantised weights costs, where plain LoRA would do."""
    if search.plan.workload.task != "qlora":
        return
    workload = search.plan.workload.model_copy(update={"task": "lora"})
    settings = search.plan.settings.model_copy(update={"quantization": None})
    changed = {"workload": workload, "settings": settings}
    answer = first(search.plan.model_copy(update=changed), search.sources)
    if answer is None:
        yield Message.of("advise.mistake.qlora-is-slower")
        return
    _, timed, report = answer
    if timed.seconds < _WORTH_SAYING * best.seconds:
        yield Message.of(
            "advise.mistake.qlora-measured",
            saved=1 - timed.seconds / best.seconds,
            used=report.memory.device_used_p95.value,
            total=report.memory.device_total.value,
        )


def _by_rule(search: Search, report: Report) -> Iterator[Message]:
    workload, base = search.plan.workload, search.facts.settings
    if not workload.trains:
        return
    cores, workers = search.facts.machine.cores, search.plan.settings.loader.num_workers
    if workers and cores and workers * search.facts.machine.gpu_count > _WORKERS_A_CORE * cores:
        yield Message.of("advise.mistake.workers", workers=workers, cores=cores)
    step = report.time.step_seconds
    if workers == 0 and isinstance(workload.dataset, Dataset) and step is not None:
        yield Message.of("advise.mistake.no-workers", seconds=step.value)
    if base.precision == "fp16-mixed" and (
        (search.facts.machine.gpu.record.compute_capability or (0, 0)) >= (8, 0)
    ):
        yield Message.of("advise.mistake.fp16")
