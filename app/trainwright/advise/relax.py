"""Nothing fits: the smallest changes beside the free settings that would, each confirmed."""

from collections.abc import Iterator
from itertools import islice

from trainwright.advise.advice import Relaxation
from trainwright.advise.search import Search, Timed, first
from trainwright.catalog import GpuRecord
from trainwright.catalog.precision import peak_flops
from trainwright.catalog.query import list_gpus
from trainwright.messages import Message
from trainwright.plan.report import Report
from trainwright.plan.schema import GpuChoice, MachineChoice, Plan
from trainwright.profile.presets import presets
from trainwright.workload import FullSettings, ModelSource

_NEXT_TASK = {"pretrain": "lora", "full": "lora", "lora": "qlora"}
_STEP = 128
"""Tokens; kernels pad lengths to multiples of it."""
_GPUS_TRIED = 3
_WORTH_A_HINT = 0.1
"""Share of the peak from which scores are worth a word; assumed."""


def relaxations(search: Search) -> tuple[Relaxation, ...]:
    """Return changes that make the plan fit, the smallest first.

    First a fixed setting given up, then a shorter sequence, adapters instead of all
    weights, a smaller model of the family, a GPU with more memory.
    """
    steps = (_without_a_key, _shorter, _other_task, _smaller_preset, _bigger_gpu)
    return tuple(found for step in steps for found in islice(step(search), 1))


def shortage(search: Search) -> float | None:
    """Return the bytes that the settings of the smallest peak lack at p95."""
    smallest = _smallest(search)
    if smallest is None:
        return None
    memory = search.report(smallest.candidate).memory
    return max(memory.device_used_p95.value - memory.device_total.value, 0.0)


def hints(search: Search) -> Iterator[Message]:
    """Yield what would help and cannot be confirmed, because it would have to be traced."""
    smallest = _smallest(search)
    if smallest is None or not search.plan.workload.trains:
        return
    if search.facts.settings.cross_entropy == "full" and "vocabulary" in search.facts.profile.model:
        memory = search.report(smallest.candidate).memory
        scores = sum(term.value for term in memory.terms if term.role == "logits")
        if scores > _WORTH_A_HINT * memory.allocated_peak.value:
            yield Message.of("advise.chunked-loss", bytes=scores)


def _smallest(search: Search) -> Timed | None:
    """Return the candidate with the smallest quick peak."""
    return min(search.obedient, key=lambda t: search.peak(t.candidate), default=None)


def _without_a_key(search: Search) -> Iterator[Relaxation]:
    """Yield the plan with one fixed setting changed; the fastest such first."""
    freed = [timed for key in search.held for timed in search.timed.get(key, ())]
    freed.sort(key=lambda timed: timed.rank)
    for timed, report in search.confirmed(freed):
        key = timed.candidate.freed
        names = ("micro_batch", "accumulation") if key == "batch" else (key,)
        better = {name: getattr(timed.candidate, name) for name in names}
        settings = search.plan.settings.model_copy(update=better)
        change = Message.of(
            "advise.relax.setting",
            setting="micro_batch" if key == "batch" else key,
            value=better[names[0]],
            **_cost(report),
        )
        plan = search.plan.model_copy(update={"settings": settings})
        yield Relaxation(change, applied(plan, search, timed))


def _shorter(search: Search) -> Iterator[Relaxation]:
    """Yield the longest multiple of 128 tokens that fits, by halving the range."""
    inputs = search.plan.workload.inputs
    key = "sequence_length" if search.plan.workload.trains else "prompt_tokens"
    length = search.sequence
    if length < 2 * _STEP or not search.facts.profile.exact:
        return

    def at(tokens: int) -> Plan:
        return _with_workload(search.plan, inputs=inputs.model_copy(update={key: tokens}))

    low, high, found = 1, (length - 1) // _STEP, None
    while low <= high:
        middle = (low + high) // 2
        answer = first(at(middle * _STEP), search.sources)
        if answer is None:
            high = middle - 1
        else:
            found, low = (middle * _STEP, *answer), middle + 1
    if found is not None:
        tokens, shorter, timed, report = found
        change = Message.of("advise.relax.sequence", length=length, tokens=tokens, **_cost(report))
        yield Relaxation(change, applied(shorter.plan, shorter, timed))


def _other_task(search: Search) -> Iterator[Relaxation]:
    task = search.plan.workload.task
    while (task := _NEXT_TASK.get(task, "")) != "":  # type: ignore[assignment]
        answer = first(_with_workload(search.plan, task=task), search.sources)
        if answer is not None:
            other, timed, report = answer
            change = Message.of("advise.relax.task", task=task, **_cost(report))
            yield Relaxation(change, applied(other.plan, other, timed))


def _smaller_preset(search: Search) -> Iterator[Relaxation]:
    """Yield the next smaller presets of the family, the largest first."""
    own = presets().get(search.plan.model.preset or "")
    if own is None:
        return
    family = [
        preset
        for preset in presets().values()
        if preset.family == own.family and preset.parameters < own.parameters
    ]
    for preset in sorted(family, key=lambda one: -one.parameters):
        model = ModelSource(preset=preset.id)
        answer = first(search.plan.model_copy(update={"model": model}), search.sources)
        if answer is not None:
            other, timed, report = answer
            change = Message.of("advise.relax.preset", preset=preset.name, **_cost(report))
            yield Relaxation(change, applied(other.plan, other, timed))


def _bigger_gpu(search: Search) -> Iterator[Relaxation]:
    """Yield the smallest GPU of the catalog that fits, of the same maker."""
    short, machine = shortage(search), search.facts.machine
    if short is None:
        return
    needed = machine.gpu.total.value + short
    own = machine.gpu.record
    records = [
        record
        for record in list_gpus(vendor=own.vendor, sort="memory")
        if record.memory_bytes.value >= needed
        and record.segment in ("consumer", "workstation", "datacenter")
    ]
    records.sort(key=lambda record: (record.memory_bytes.value, -_speed(record), record.id))
    for record in records[:_GPUS_TRIED]:
        gpu = GpuChoice(id=record.id, count=machine.gpu_count)
        choice = MachineChoice(gpus=(gpu,), system=machine.system)
        answer = first(search.plan.model_copy(update={"machine": choice}), search.sources)
        if answer is not None:
            other, timed, report = answer
            change = Message.of("advise.relax.gpu", gpu=record.name, **_cost(report))
            yield Relaxation(change, applied(other.plan, other, timed))


def _speed(record: GpuRecord) -> float:
    fact = peak_flops(record, "bf16-mixed") or peak_flops(record, "fp16-mixed")
    return fact.value if fact is not None else 0.0


def _with_workload(plan: Plan, **changed: object) -> Plan:
    workload = plan.workload.model_copy(update=changed)
    return plan.model_copy(update={"workload": workload})


def _cost(report: Report) -> dict[str, float]:
    memory = report.memory
    return {"used": memory.device_used_p95.value, "total": memory.device_total.value}


def applied(plan: Plan, search: Search, timed: Timed) -> Plan:
    """Return the plan with the candidate's values in its free keys."""
    return with_settings(plan, search.settings(timed.candidate))


def with_settings(plan: Plan, chosen: FullSettings) -> Plan:
    """Return the plan with free keys taken from complete settings; fixed ones stay."""
    own = plan.settings
    training = ("micro_batch", "accumulation", "checkpointing", "optimizer")
    names = (*_ALWAYS, *(training if plan.workload.trains else ()))
    settings = {name: getattr(chosen, name) for name in names if getattr(own, name) is None}
    return plan.model_copy(update={"settings": own.model_copy(update=settings)})


_ALWAYS = (
    *("precision", "strategy", "attention", "channels_last", "allocator"),
    *("quantization", "compile"),
)
