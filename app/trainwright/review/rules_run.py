"""Rules about the run: batch against GPUs, precision against the GPU, what does not go together."""

from collections.abc import Iterator
from typing import Any

from trainwright.machine.choice import MOST_PIECES
from trainwright.plan.serving_gpus import copies_on
from trainwright.review.case import Case, found
from trainwright.review.derived import (
    OBJECTIVES,
    checkpointing,
    processes,
    replicas,
    says_processes,
    strategy,
    task,
)
from trainwright.review.facts import AUTO
from trainwright.review.finding import Change, Finding, Level
from trainwright.review.kinds import KINDS
from trainwright.review.kinds.huggingface import TRL_KINDS
from trainwright.workload.defaults import best_precision
from trainwright.workload.engines import FROM, SHARING, runs_on

SHARDED = ("fsdp2", "fsdp2-no-reshard", "hybrid", "zero3")
_TRL_AND_TRAINER = ("training-arguments", *TRL_KINDS)
HF_TRAINERS = (*_TRL_AND_TRAINER, "llamafactory")
_WHOLE = ("full", "pretrain")
"""Tasks that train the model's own weights."""
SEVERAL = ("ddp", "zero1", "zero2", *SHARDED)
_BF16_FROM, _FP8_FROM, _FP16_FROM = (8, 0), (8, 9), (7, 0)
"""Compute capabilities: NVIDIA's tables of supported types; fp16 at 1/64 on consumer Pascal."""
_FP8_WEIGHTS_FROM = (7, 5)
"""Marlin's kernels, which unpack fp8 weights where no unit multiplies them: vLLM's table of
supported hardware, quantization/supported_hardware."""
_CLIPPING = ("ollama", "llama.cpp")
"""Engines that take the model's own length with a warning."""
_HIGHEST_SHARE = 0.95
"""Of GPU memory for an engine; above it, CUDA graphs and other programs lack room. Assumed."""
_HIGHEST = {"sglang": 0.92}
"""SGLang's share is that of weights and cache alone: activations and graphs come on top. Its
documentation starts at 0.8 to 0.9."""
_BUCKET_SHARE = 0.03
"""Of the GPU's memory: buckets below that are not worth a word; assumed."""


def rules(case: Case) -> Iterator[Finding]:
    """Yield what is wrong with the run that the files describe."""
    if task(case.facts) == "infer":
        yield from _serving(case)
        yield from _precision(case)
        yield from _gpus(case)
        return
    for rule in (_batch, _gpus, _precision, _attention, _quantized, _sharding, _recomputing):
        yield from rule(case)
    yield from _offload(case)
    yield from _loader(case)
    yield from _updating(case)
    yield from _padding(case)
    yield from _generating(case)


def _batch(case: Case) -> Iterator[Finding]:
    """Yield where micro-batch x accumulation x GPUs is not the batch that is asked for."""
    whole = case.given("global_batch")
    if whole is None or whole.value == AUTO:
        return
    gpus, facts = replicas(case.facts), case.facts
    if not says_processes(facts) and whole.kind == "deepspeed" and case.machine is not None:
        gpus = case.machine.gpu_count  # its launcher starts one process on each
    micro, steps = facts.first("micro_batch"), facts.first("accumulation")
    if micro is None:
        return
    if steps is not None and steps.given and whole.kind != "torchtitan":
        product = micro.value * steps.value * gpus
        if product != whole.value:
            yield found(
                "batch-product",
                "error",
                whole,
                case.rewriting(whole, product),
                batch=whole.value,
                micro=micro.value,
                accumulation=steps.value,
                gpus=gpus,
                product=product,
            )
    elif whole.value % (micro.value * gpus):
        yield found("batch-divides", "error", whole, batch=whole.value, unit=micro.value * gpus)


def _gpus(case: Case) -> Iterator[Finding]:
    wanted = processes(case.facts)
    on_each = -(-wanted // (case.facts.value("nodes", 1)))
    if case.machine is not None and case.machine.gpu_count < min(on_each, MOST_PIECES):
        fact = case.given("processes") or case.given("devices") or case.given("tensor")
        changes = (
            case.rewriting(fact, case.machine.gpu_count) if fact and fact.name != "tensor" else ()
        )
        yield found("gpus", "error", fact, changes, wanted=on_each, there=case.machine.gpu_count)
    nodes = case.facts.value("nodes", 1)
    total = case.given("processes")
    if total is not None and nodes > 1 and total.value % nodes:
        values = {"processes": total.value, "nodes": nodes}
        yield found("processes-nodes", "error", total, **values)
    yield from _allotted(case, on_each, nodes)
    tensor, heads = case.facts.value("tensor", 1), case.of_model("heads")
    if tensor > 1 and heads and heads % tensor:
        yield found("heads", "error", case.given("tensor"), tensor=tensor, heads=heads)
    spread = case.given("device_map")
    several = wanted > 1 or strategy(case.facts) in SEVERAL
    trains = task(case.facts) != "infer"
    if spread is not None and trains and strategy(case.facts) == "zero3":
        yield found("device-map-zero3", "error", spread, key=spread.key)
    elif spread is not None and spread.value == "auto" and several and trains:
        yield found("device-map", "error", spread, gpus=wanted)
    given = case.given("strategy")
    if given is not None and given.value == "ddp" and wanted == 1 and case.given("devices"):
        yield found("ddp-alone", "risk", given, key=given.key)


def _allotted(case: Case, on_each: int, nodes: int) -> Iterator[Finding]:
    """Yield what a job or a container gets that is less, or more, than what it starts."""
    one, all_of_them = case.given("allotted"), case.given("allotted_in_all")
    fact = one or all_of_them
    if fact is None or not says_processes(case.facts):
        return
    there = fact.value if one is not None else fact.value // nodes
    if there < on_each:
        yield found("gpus-allotted", "error", fact, key=fact.key, wanted=on_each, there=there)
    elif there > on_each:
        yield found("gpus-idle", "risk", fact, key=fact.key, processes=on_each, there=there)


def _precision(case: Case) -> Iterator[Finding]:
    fact, capability, record = case.facts.first("precision"), case.capability, case.record
    if fact is None or capability is None or record is None:
        return
    shown = ".".join(map(str, capability))
    values: dict[str, Any] = {"gpu": record.name, "capability": shown}
    better: str = best_precision(record)
    serves = task(case.facts) == "infer"
    if fact.value in ("bf16-mixed", "bf16") and capability < _BF16_FROM:
        better = {"fp16-mixed": "fp16"}.get(better, better) if serves else better
        changes = _to_precision(case, better)
        if not changes and (changes := case.rewriting(fact, "fp32")):
            better = "fp32"  # as torchtune knows no fp16
        yield found("no-bf16", "error", fact, changes, better=better, **values)
    elif fact.value == "fp8" and capability < _FP8_FROM:
        yield found("no-fp8", "error", fact, better=better, **values)
    elif fact.value in ("fp16-mixed", "fp16") and capability < _FP16_FROM:
        yield found("no-fp16", "error", fact, _to_precision(case, "fp32"), better="fp32", **values)
    elif fact.value == "fp16-mixed" and capability >= _BF16_FROM:
        changes = _to_precision(case, "bf16-mixed")
        yield found("fp16-overflows", "risk", fact, changes, **values)
    weights = case.facts.value("weights_dtype")
    if fact.value == "fp16-mixed" and weights == "fp16" and task(case.facts) in _WHOLE:
        yield found("fp16-weights", "error", case.given("weights_dtype"))
    tf32 = case.given("tf32")
    if tf32 is not None and tf32.value and capability < _BF16_FROM:
        yield found("no-tf32", "error", tf32, case.rewriting(tf32, False), **values)
    kept = case.facts.value("checkpoint_dtype")
    if fact.value == "fp16-mixed" and kept == "bf16" and capability < _BF16_FROM:
        yield found("fp16-of-bf16", "risk", fact)


def _to_precision(case: Case, wanted: str) -> tuple[Change, ...]:
    """Return the changes of the switches that say the precision."""
    given = [fact for fact in case.facts.given("precision") if fact.value != AUTO]
    if not given:
        return case.setting("precision", wanted)
    fact = given[0]
    if changes := case.rewriting(fact, wanted):
        return changes
    off = case.rewriting(fact, "fp32")
    other = tuple(_SWITCHES.get(str(part), part) for part in fact.place)
    if not off or not wanted.endswith("-mixed") or other == fact.place:
        return ()
    return (*off, Change(fact.file, other, True))


_SWITCHES = {"fp16": "bf16", "bf16": "fp16"}
"""Switches of precision: where one goes off, the other goes on."""


def _attention(case: Case) -> Iterator[Finding]:
    fact = case.given("attention")
    if fact is None or fact.value != "flash":
        return
    precision = case.facts.value("precision")
    weights = case.facts.value("weights_dtype")
    if precision in ("fp32", "tf32") and weights in (None, "fp32"):
        yield found("flash-fp32", "error", fact)
    if case.capability is not None and case.record is not None and case.capability < _BF16_FROM:
        yield found("flash-gpu", "error", fact, gpu=case.record.name)


def _quantized(case: Case) -> Iterator[Finding]:
    facts = case.facts
    fact = case.given("quantization") or case.given("packed")
    adapter = facts.value("adapter", "none")
    # utils/schemas/validation.py of axolotl 0.19
    if adapter == "qlora" and facts.value("quantization") != "nf4" and case.has("axolotl"):
        yield found("qlora-whole", "error", case.given("adapter"))
    if fact is None:
        return
    if adapter in ("none", "freeze") and not case.has("model-config"):
        alone = case.has("bitsandbytes", "from-pretrained") and not case.has(*_TRL_AND_TRAINER)
        if not alone:
            yield found("quantized-whole", "error", fact, key=fact.key)
    if strategy(facts) == "zero3":
        yield found("quantized-zero3", "error", fact, key=fact.key)
    elif strategy(facts) in SHARDED and str(facts.value("storage_dtype", "")).endswith("uint8"):
        yield found("quantized-storage", "error", case.given("storage_dtype"))
    elif strategy(facts) in SHARDED and fact.value == "int8" and not case.has("axolotl"):
        # monkeypatch/fsdp2_qlora.py of axolotl 0.19 has FSDP shard them.
        yield found("int8-sharded", "error", fact, key=fact.key)


def _sharding(case: Case) -> Iterator[Finding]:
    facts, word = case.facts, strategy(case.facts)
    others = case.has("own-script") and not case.has("deepspeed")  # Megatron-LM shares too
    auto = any(fact.value == AUTO for fact in facts.given("bucket_size"))
    if word in ("zero1", "zero2", "zero3") and not auto and not others:
        size = facts.first("bucket_size")
        elements = size.value if size is not None else 500_000_000
        # Elements of 2 bytes, as gradients are in 16 bits.
        total = case.machine.gpu.total.value if case.machine is not None else None
        if 2 * elements > _BUCKET_SHARE * (total or 24e9):
            where = case.given("bucket_size") or case.given("strategy") or case.given("stage")
            changes = case.setting("bucket_size", 50_000_000)
            yield found("bucket", "risk", where, changes, elements=elements, memory=2.0 * elements)
    if word in SHARDED and processes(facts) == 1 and case.given("processes"):
        yield found("sharded-alone", "risk", case.given("processes"), strategy=str(word))
    fact = case.given("checkpointing")
    fsdp = word is not None and word.startswith(("fsdp2", "hybrid"))
    if fsdp and fact is not None and fact.value == "full":
        if facts.value("fsdp_checkpointing"):
            yield found("checkpointed-twice", "error", fact, key=fact.key)
        elif case.has(*HF_TRAINERS):
            yield found("fsdp-checkpointing", "risk", fact, key=fact.key)
    if fsdp and case.has("accelerate") and facts.value("fsdp_version", 1) == 1:
        where = case.given("sharding") or case.given("strategy")
        yield found("fsdp1", "risk", where)
    unused = case.given("find_unused")
    recomputes = facts.value("checkpointing") == "full" and facts.value("reentrant")
    if unused is not None and unused.value and recomputes and word in (None, "ddp"):
        yield found("unused-reentrant", "error", unused)


def _updating(case: Case) -> Iterator[Finding]:
    """An update within backward leaves no gradients to accumulate; torchtune refuses it."""
    within, steps = case.given("optimizer_in_backward"), case.facts.value("accumulation", 1)
    if within is not None and within.value and steps > 1:
        yield found("in-backward", "error", within, key=within.key, steps=steps)


def _recomputing(case: Case) -> Iterator[Finding]:
    facts = case.facts
    if checkpointing(facts) in (None, "none"):
        return
    cache = case.given("use_cache")
    if cache is not None and cache.value:
        yield found("cache", "risk", cache, case.rewriting(cache, False), key=cache.key)
    reentrant = case.given("reentrant")
    if reentrant is not None and reentrant.value:
        changes = case.rewriting(reentrant, False)
        # axolotl has the inputs need gradients, ``loaders/adapter.py``.
        frozen = task(facts) in ("lora", "qlora") and not case.has("axolotl")
        rule = "reentrant-frozen" if frozen else "reentrant"
        yield found(rule, "risk", reentrant, changes)


def _offload(case: Case) -> Iterator[Finding]:
    facts = case.facts
    optimizer, params = case.given("offload_optimizer"), case.given("offload_params")
    fact = next((f for f in (optimizer, params) if f and f.value not in (False, "none")), None)
    if fact is None:
        return
    update = facts.value("optimizer")
    if (
        fact.name == "offload_optimizer"
        and update not in (None, "adamw")
        and case.given("optimizer")
        and case.given("deepspeed_optimizer") is None  # DeepSpeed's file makes its own
        and facts.value("any_optimizer") is not True
    ):
        yield found("offload-optimizer", "error", case.given("optimizer"), optimizer=str(update))
    stage = strategy(facts)
    if params is not None and params.value and stage in ("ddp", "zero1", "zero2"):
        yield found("offload-stage", "risk", params, key=params.key)
    parameters = _parameters(case)
    memory = case.machine.memory_bytes if case.machine is not None else None
    if parameters and memory and task(facts) in ("full", "pretrain"):
        # fp32 weights, gradients and both moments: 16 bytes; optimizer state alone 12.
        need = (16 if params and params.value else 12) * parameters
        if need > memory:
            yield found("offload-memory", "error", fact, need=float(need), there=float(memory))
    elif parameters and not memory:
        yield found("offload-unknown", "risk", fact)


def _parameters(case: Case) -> int | None:
    from trainwright.profile import presets

    preset = case.plan.model.preset if case.plan is not None else None
    return presets.find(preset).parameters if preset is not None else None


def _loader(case: Case) -> Iterator[Finding]:
    fact = case.facts.first("num_workers")
    cores = case.machine.cores if case.machine is not None else None
    if fact is None:
        return
    if fact.value == 0 and (fact.given or not case.has("torchtune", "axolotl")):
        changes = case.setting("num_workers", 4 if not cores else min(4, max(2, cores // 2)))
        yield found("no-workers", "risk" if fact.given else "gain", fact, changes)
    elif fact.given and cores and fact.value * processes(case.facts) > 2 * cores:
        values = {"workers": fact.value, "gpus": processes(case.facts), "cores": cores}
        yield found("workers-cores", "risk", fact, **values)


def _padding(case: Case) -> Iterator[Finding]:
    facts = case.facts
    packing = case.given("packing")
    # axolotl's packing keeps samples apart with any attention that the file names.
    apart = ("flash", "sdpa", "eager") if case.has("axolotl") else ("flash",)
    packs = packing is not None and packing.value and facts.value("attention") not in apart
    if packs and case.has("trl-sft", "axolotl"):
        yield found("packing-mixes", "risk", packing)
    padded = case.given("padded")
    if padded is not None and padded.value and not facts.value("packing"):
        # axolotl packs no pairs (validation.py, check_sample_packing_w_rl).
        packs = facts.value("objective") in OBJECTIVES
        changes = case.setting("packing", True) if packs else case.setting("padded", False)
        yield found("padded" if packs else "padded-pairs", "risk", padded, changes, key=padded.key)
    if (auto := case.given("auto_find_batch")) and auto.value:
        yield found("auto-batch", "risk", auto, key=auto.key)


def _generating(case: Case) -> Iterator[Finding]:
    """``grpo_config.py``, __post_init__: whole groups of completions in each batch of them.

    ``kto_trainer.py``, __init__: the divergence is that to the other samples of a batch.
    """
    facts = case.facts
    alone, loss = case.given("micro_batch"), facts.value("kto_loss", "kto")
    if case.has("trl-kto") and alone is not None and alone.value == 1 and loss == "kto":
        yield found("kto-batch", "error", alone, key=alone.key)
    group = facts.first("generations")
    if not case.has("trl-grpo") or group is None:
        return
    micro, steps = facts.value("micro_batch", 8), facts.value("accumulation", 1)
    whole = facts.value("generation_batch") or micro * processes(facts) * facts.value(
        "generation_steps", steps
    )
    if group.value and whole % group.value:
        yield found("generations-divide", "error", group, batch=whole, group=group.value)


def _serving(case: Case) -> Iterator[Finding]:
    share = case.given("memory_share")
    if share is not None and share.value > 1:
        yield found("share-above-one", "error", share, value=share.value)
    elif share is not None and share.value > _HIGHEST.get(
        case.facts.value("engine"), _HIGHEST_SHARE
    ):
        yield found("share-high", "risk", share, value=share.value)
    context, most = case.given("context"), case.of_model("positions")
    if context is not None and most is not None and context.value > most:
        level: Level = "risk" if case.facts.value("engine") in _CLIPPING else "error"
        yield found("context-long", level, context, context=context.value, most=most)
    yield from _engine(case)
    yield from _unsplit(case)
    layers = case.given("layers_on_gpu")
    if layers is not None and layers.value == 0:
        yield found("no-layers", "risk", layers)


def _unsplit(case: Case) -> Iterator[Finding]:
    """Yield that a server leaves GPUs alone: its model is not split, or it runs too few copies."""
    report, engine = case.report, case.facts.first("engine")
    if report is None or engine is None or engine.value not in SHARING or case.machine is None:
        return
    if engine.kind == "tgi":  # its launcher shards over all GPUs that it sees
        return
    tool, degree = KINDS[engine.kind].tool, report.settings.tensor_degree
    if degree is not None and processes(case.facts) == 1:
        split = case.by_hand("tensor", degree) or f"tensor_degree={degree}"
        changes = case.setting("tensor", degree)
        yield found("unsplit", "error", engine, changes, degree=degree, option=split, engine=tool)
        return
    copies = copies_on(report.settings, case.machine)
    option = case.by_hand("replicas", copies)
    if copies > case.facts.value("replicas", 1) and option is not None:
        changes = case.setting("replicas", copies)
        yield found("few-copies", "risk", engine, changes, copies=copies, option=option,
                    engine=tool)  # fmt: skip


def _engine(case: Case) -> Iterator[Finding]:
    """Yield what the engine's kernels lack on the GPU."""
    capability, record, engine = case.capability, case.record, case.facts.first("engine")
    if record is None or engine is None:
        return
    tool = KINDS[engine.kind].tool
    if capability is None:
        if not runs_on(engine.value, record):
            yield found("engine-elsewhere", "error", engine, engine=tool, gpu=record.name)
        return
    shown = ".".join(map(str, capability))
    values: dict[str, Any] = {"gpu": record.name, "capability": shown}
    if not runs_on(engine.value, record):
        least = ".".join(map(str, FROM[engine.value]))
        yield found("engine-gpu", "error", engine, engine=tool, least=least, **values)
    for name, from_ in (("kv_cache", _FP16_FROM), ("weights", _FP8_WEIGHTS_FROM)):
        fact = case.given(name)
        if fact is not None and fact.value == "fp8" and capability < from_:
            yield found("no-fp8", "error", fact, better="auto", **values)
