"""Nothing fits: changes of what was asked for after which something does, each confirmed."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from math import inf

from trainwright.advise import aside, experts
from trainwright.advise.advice import Relaxation
from trainwright.advise.search import Search, first
from trainwright.advise.wayout import OPENED, used, way_out
from trainwright.catalog import GpuRecord
from trainwright.catalog.precision import peak_flops
from trainwright.catalog.query import list_gpus
from trainwright.estimate.serving.engines import ENGINES
from trainwright.machine.machine import Machine
from trainwright.machine.network import Network, NetworkKind
from trainwright.machine.peers import has_board_nvlink
from trainwright.messages import Message
from trainwright.plan.schema import GpuChoice, MachineChoice, Plan
from trainwright.profile.presets import presets
from trainwright.workload import ModelSource
from trainwright.workload.engines import WEIGHTS
from trainwright.workload.settings import WEIGHTS_SHARED, Effect

_NEXT_TASK = {"pretrain": "lora", "full": "lora", "lora": "qlora"}
_STEP = 128
"""Tokens; kernels pad lengths to multiples of it."""
_GPUS_TRIED = 4
_MORE = 1.1
"""Memory of the next GPU that is tried, against the one before; assumed."""
_NODES_TRIED = (2, 4, 8)
_JOINED_BY: NetworkKind = "infiniband-ndr"
"""What joins servers of which the plan names one; assumed, as in DGX H100's reference design."""
_TRIED = 3
"""Ways of one kind that are looked at for one with headroom; assumed: each is a search."""
_FEWER_BITS = ("fp8", "int8", "int4", "nf4", "q8_0", "q6_k", "q4_k_m")
"""Weights that are served, by what they keep; an engine takes only its own. Engines have kernels
for int4 (AWQ, GPTQ), and unpack nf4."""
_OWN = "mxfp4"
_EFFECTS: dict[tuple[str, str], Effect] = {("lora", "qlora"): Effect.NEARLY}
"""Frozen weights in 4 bits train the same adapters; any other change of task trains others."""


def relaxations(
    search: Search, wanted: Callable[[], bool] = lambda: True
) -> tuple[Relaxation, ...]:
    """Return the ways out, the cheapest first: without other hardware, by effect, by time.

    Of those that train differently, another model comes after all that keep the model.
    An engine that splits layers over the GPUs, a larger share of the GPU for one, shares of the
    weights or activations in system memory, a fixed setting given up, weights in fewer bits or
    adapters instead of all weights, experts in 4 bits, a shorter sequence, a smaller model of the
    family, more system memory, more of the same computers, a GPU with more memory: of each the
    best, of adapters two.
    ``wanted`` is asked before each kind, and ends the work.
    """
    steps = (
        _by_engine,
        _larger_share,
        aside.shares,
        aside.activations,
        _without_a_key,
        _fewer_bits,
        _other_tasks,
        _experts_apart,
        _shorter,
        _smaller_preset,
        aside.more,
        _more_nodes,
        _bigger_gpu,
    )
    kinds = (step(search) if step is _other_tasks else _best_of(step(search)) for step in steps)
    found = [way for kind in kinds if wanted() for way in kind]
    if not any(way.change.id == "advise.relax.setting" for way in found) and wanted():
        found += _without_savers(search)
    return tuple(sorted(found, key=_cheapness))


def _best_of(ways: Iterator[Relaxation]) -> Iterator[Relaxation]:
    """Yield the first way with headroom, or else the first: what a driver takes may differ."""
    tried = list[Relaxation]()
    for way in islice(ways, _TRIED):
        tried.append(way)
        if way.estimate is None or way.estimate.roomy:
            yield way
            return
    yield from tried[:1]


def _cheapness(way: Relaxation) -> tuple[bool, Effect, bool, bool, float]:
    smaller = way.change.id == "advise.relax.preset"
    gpus = way.change.id in ("advise.relax.gpu", "advise.relax.nodes")
    step = way.estimate.time.step_seconds if way.estimate is not None else None
    return way.buys, way.effect, smaller, gpus, step.value if step is not None else inf


def shortage(search: Search) -> float | None:
    """Return the bytes that the settings of the smallest peak lack at p95."""
    smallest = search.smallest
    if smallest is None:
        return None
    memory = search.report(smallest).memory
    return max(memory.device_used_p95.value - memory.device_total.value, 0.0)


def by_engine(plan: Plan, record: GpuRecord) -> Plan | None:
    """Return a plan that names no engine as vLLM serves it; None where vLLM does not.

    It needs Linux, and compute capability 7.0 or CDNA 2: vLLM, docs, Installation.
    """
    given = plan.settings
    cdna = record.architecture.startswith(("CDNA 2", "CDNA 3", "CDNA 4"))
    if plan.workload.trains or given.engine is not None or plan.machine.system != "linux":
        return None
    runs = cdna or (record.compute_capability or (0, 0)) >= (7, 0)
    if not runs or given.quantization not in (None, *WEIGHTS["vllm"]):
        return None
    settings = given.model_copy(update={"engine": "vllm"})
    return plan.model_copy(update={"settings": settings})


def _by_engine(search: Search) -> Iterator[Relaxation]:
    """Yield the plan as an engine serves it, that splits its layers over several GPUs."""
    if search.facts.settings.engine != "transformers":
        return
    plan = by_engine(search.plan, search.facts.machine.gpu.record)
    if plan is not None and (answer := first(plan, search.sources)) is not None:
        change = Message.of("advise.relax.engine", engine="vllm", **used(answer[2]))
        yield way_out(change, plan, search, answer, Effect.SAME)


def _larger_share(search: Search) -> Iterator[Relaxation]:
    """Yield the plan whose serving engine may take as much of the memory as it needs to start."""
    if search.smallest is None:
        return
    serving = search.report(search.smallest).serving
    if serving is None or serving.starts or serving.least_share is None:
        return
    settings = search.plan.settings.model_copy(update={"memory_share": serving.least_share})
    plan = search.plan.model_copy(update={"settings": settings})
    if (answer := first(plan, search.sources)) is not None:
        values = {"setting": "memory_share", "value": f"{serving.least_share:g}"}
        change = Message.of("advise.relax.setting", **values, **used(answer[2]))
        yield way_out(change, plan, search, answer, Effect.SAME)


def _without_a_key(search: Search) -> Iterator[Relaxation]:
    """Yield the plan with one fixed setting changed; the fastest such first."""
    found = [next(search.best(search.freed(key)), None) for key in search.changeable]
    ranked = sorted((one for one in found if one), key=lambda one: one[0].rank)
    for timed, report in ranked:
        key = timed.candidate.freed
        names = ("micro_batch", "accumulation") if key == "batch" else (key,)
        better = {name: getattr(timed.candidate, name) for name in names}
        if better.get(key, 0) is None:  # shard_degree: all GPUs
            better[key] = search.facts.machine.gpu_count
        settings = search.plan.settings.model_copy(update=better)
        change = Message.of(
            "advise.relax.setting",
            setting="micro_batch" if key == "batch" else key,
            value=better[names[0]],
            **used(report),
        )
        plan = search.plan.model_copy(update={"settings": settings})
        yield way_out(change, plan, search, (search, timed, report), timed.candidate.effect)


def _without_savers(search: Search) -> Iterator[Relaxation]:
    """Yield the plan with all settings left open that cost only time to save memory."""
    plan = _opened(search.plan)
    if plan != search.plan and (answer := first(plan, search.sources)) is not None:
        change = Message.of("advise.relax.opened", **used(answer[2]))
        yield way_out(change, plan, search, answer, Effect.SAME)


def _opened(plan: Plan) -> Plan:
    """Return the plan without the batch and the savers that it fixes."""
    opened = dict.fromkeys(OPENED)
    return plan.model_copy(update={"settings": plan.settings.model_copy(update=opened)})


def _shorter(search: Search) -> Iterator[Relaxation]:
    """Yield the longest multiple of 128 tokens that fits, by halving the range."""
    inputs = search.plan.workload.inputs
    key = "sequence_length" if search.plan.workload.trains else "prompt_tokens"
    length = search.sequence
    if length < 2 * _STEP or not search.facts.profile.exact:
        return

    for plan in _roomier(search.plan):
        low, high, found = 1, (length - 1) // _STEP, None
        while low <= high:
            middle = (low + high) // 2
            tried = _with_workload(plan, inputs=inputs.model_copy(update={key: middle * _STEP}))
            answer = first(tried, search.sources)
            if answer is None or not answer[2].roomy:
                high = middle - 1
            else:
                found, low = (middle * _STEP, tried, answer), middle + 1
        if found is not None:
            tokens, shorter, answer = found
            cost = used(answer[2])
            change = Message.of("advise.relax.sequence", length=length, tokens=tokens, **cost)
            yield way_out(change, shorter, search, answer, Effect.DIFFERENT)


def _roomier(plan: Plan) -> Iterator[Plan]:
    """Yield a plan as it is; then with the engine's usual share of memory, if it fixes less."""
    yield plan
    given, engine = plan.settings.memory_share, plan.settings.engine
    usual = ENGINES[engine].policy.share if engine is not None else None
    if given is not None and usual is not None and given < usual:
        settings = plan.settings.model_copy(update={"memory_share": usual})
        yield plan.model_copy(update={"settings": settings})


def fewer_bits(plan: Plan, config: str = "") -> Iterator[Plan]:
    """Yield the plan that serves weights of fewer bits, the most bits first; nothing if it trains.

    gpt-oss, as its ``config`` says, is published in MXFP4: there they are the model itself.
    """
    if plan.workload.trains or plan.settings.quantization not in (None, "none"):
        return
    for value in (*((_OWN,) if '"gpt_oss"' in config else ()), *_FEWER_BITS):
        settings = plan.settings.model_copy(update={"quantization": value})
        yield plan.model_copy(update={"settings": settings})


def _fewer_bits(search: Search) -> Iterator[Relaxation]:
    """Yield the plan that serves weights of fewer bits, as many as fit."""
    if search.facts.settings.quantization != "none":
        return
    for served in fewer_bits(search.plan, search.facts.config):
        value = served.settings.quantization
        for plan in _roomier(served):
            if (answer := first(plan, search.sources)) is not None:
                values = {"setting": "quantization", "value": value}
                change = Message.of("advise.relax.setting", **values, **used(answer[2]))
                effect = Effect.SAME if value == _OWN else Effect.NEARLY
                yield way_out(change, plan, search, answer, effect)


def smaller_tasks(plan: Plan) -> Iterator[Plan]:
    """Yield the plan with adapters in place of all weights, then over weights in 4 bits."""
    task = plan.workload.task
    while (task := _NEXT_TASK.get(task, "")) != "":  # type: ignore[assignment]
        yield _with_workload(plan, task=task)


def _other_tasks(search: Search) -> Iterator[Relaxation]:
    """Yield adapters in place of all weights, each with what the plan fixes, or else without."""
    asked, found = search.plan.workload.task, set[str]()
    for plan in (*smaller_tasks(search.plan), *smaller_tasks(_opened(search.plan))):
        task = plan.workload.task
        if task not in found and (answer := first(plan, search.sources)) is not None:
            found.add(task)
            change = Message.of("advise.relax.task", task=task, **used(answer[2]))
            effect = _EFFECTS.get((asked, task), Effect.DIFFERENT)
            yield way_out(change, plan, search, answer, effect)


def _experts_apart(search: Search) -> Iterator[Relaxation]:
    """Yield adapters over 4 bits of a mixture whose experts are layers, and packed too."""
    for plan in experts.apart(search.plan):
        if (answer := first(plan, search.sources)) is not None:
            change = Message.of("advise.relax.experts-apart", **used(answer[2]))
            yield way_out(change, plan, search, answer, experts.effect(search.plan))


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
        plan = search.plan.model_copy(update={"model": model})
        if (answer := first(plan, search.sources)) is not None:
            change = Message.of("advise.relax.preset", preset=preset.name, **used(answer[2]))
            yield way_out(change, plan, search, answer, Effect.DIFFERENT)


def _more_nodes(search: Search) -> Iterator[Relaxation]:
    """Yield the fewest of the same servers whose GPUs hold the shares, as InfiniBand joins them."""
    plan, machine = search.plan, search.facts.machine
    shared = plan if plan.settings.strategy in WEIGHTS_SHARED else aside.sharding(plan)
    if shared is None or not has_board_nvlink(machine.gpu.record):
        return
    for times in _NODES_TRIED:
        nodes, network = times * machine.nodes, _joining(machine)
        choice = shared.machine.model_copy(update={"nodes": nodes, "network": network})
        more = shared.model_copy(update={"machine": choice})
        if (answer := first(more, search.sources)) is not None:
            gpus = nodes * machine.gpus_each
            values = {"nodes": nodes, "gpus": gpus, "network": network.kind, **used(answer[2])}
            change = Message.of("advise.relax.nodes", **values)
            way = way_out(change, more, search, answer, Effect.SAME, buys=True)
            if way.effect is Effect.SAME:
                yield way


def _joining(machine: Machine) -> Network:
    """Return what joins more of the same computers: their own network, or one that is assumed."""
    rented = machine.cloud.network if machine.cloud is not None else None
    if machine.network is None and rented is not None:
        return Network.model_validate(rented.model_dump())
    return machine.network or Network(kind=_JOINED_BY)


def _bigger_gpu(search: Search) -> Iterator[Relaxation]:
    """Yield the smallest GPU of the catalog that fits, of the same maker, the same kind first.

    Those that change the training come last.
    """
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

    def order(record: GpuRecord) -> tuple[float, bool, float, str]:
        other = record.segment != own.segment
        return record.memory_bytes.value, other, -round(_speed(record), -12), record.id

    records.sort(key=order)
    others = list[Relaxation]()
    for record in islice(_steps_of_memory(records), _GPUS_TRIED):
        gpu = GpuChoice(id=record.id, count=machine.gpu_count)
        choice = search.plan.machine.model_copy(update={"gpus": (gpu,)})
        if choice.local:  # what was read of this computer says no other card
            choice = MachineChoice(gpus=(gpu,), system=machine.system)
        plan = search.plan.model_copy(update={"machine": choice})
        if (answer := first(plan, search.sources)) is not None:
            change = Message.of("advise.relax.gpu", gpu=record.name, **used(answer[2]))
            way = way_out(change, plan, search, answer, Effect.SAME, buys=True)
            if way.effect is Effect.SAME:
                yield way
            else:
                others.append(way)
    yield from others


def _steps_of_memory(records: Iterable[GpuRecord]) -> Iterator[GpuRecord]:
    """Yield the first of the records of each size, that is clearly more than the one before."""
    last = 0.0
    for record in records:
        if record.memory_bytes.value >= _MORE * last:
            yield record
            last = record.memory_bytes.value


def _speed(record: GpuRecord) -> float:
    fact = peak_flops(record, "bf16-mixed") or peak_flops(record, "fp16-mixed")
    return fact.value if fact is not None else 0.0


def _with_workload(plan: Plan, **changed: object) -> Plan:
    workload = plan.workload.model_copy(update=changed)
    return plan.model_copy(update={"workload": workload})
