"""From what a person fixed to settings with every key decided, or the reason why not.

The rules are the ones that the fields of ``Settings`` state.
"""

from math import lcm
from typing import Any

from trainwright.catalog import GpuRecord, supports
from trainwright.messages import Message, UserError
from trainwright.workload import objectives
from trainwright.workload.engines import check_kernels, served_by
from trainwright.workload.meaning import refuse_meaningless
from trainwright.workload.recipes import by_recipe, implements
from trainwright.workload.settings import (
    USUAL_IMPLEMENTATION,
    Checkpointing,
    FullSettings,
    Implementation,
    Loader,
    Precision,
    Quantization,
    Settings,
    Strategy,
)
from trainwright.workload.sharing import (
    check_sharding,
    divisors,
    pipeline_stages,
    shard_degree,
    tensor_degree,
)
from trainwright.workload.workload import FEWEST_ANSWERS, MOST_ANSWERS, Workload

LARGEST_DEFAULT_BATCH = 8
DEFAULT_WORKERS = 4
"""Where the cores are not known; assumed."""

NOT_YET: dict[tuple[str, str], str] = {
    ("precision", "fp8"): "bf16-mixed",
    ("strategy", "tp"): "fsdp2, with settings.tensor_degree",
    ("strategy", "hybrid"): "fsdp2, with settings.shard_degree",
}
"""(key, value) that plans may name and this release does not plan -> what to use instead."""


def filled(
    settings: Settings,
    workload: Workload,
    record: GpuRecord,
    gpu_count: int = 1,
    cores: int | None = None,
    nodes: int = 1,
) -> FullSettings:
    """Return the settings that an estimate is made for.

    ``gpu_count`` is GPUs of all ``nodes``, ``cores`` the CPU cores that a loader may use.

    Raises:
        UserError: the settings contradict each other, the workload or the GPU, or name
            what is not planned yet; names the key and what to do.
    """
    _refuse_not_yet(settings)
    refuse_meaningless(settings, workload)
    settings = by_recipe(settings, workload)
    objectives.check(settings, workload)
    _check_optimizer(settings)
    precision = _precision(settings, workload, record)
    strategy = _strategy(settings, gpu_count if workload.trains else 1)
    _check_update(settings, precision, strategy)
    check_sharding(settings, strategy)
    copies = shard_degree(settings, strategy, gpu_count, nodes)
    together = tensor_degree(settings, strategy, workload, gpu_count, nodes) or 1
    stages = pipeline_stages(settings, strategy, workload, precision, gpu_count)
    ranks = gpu_count // (together * (stages or 1)) if strategy != "single" else 1
    micro_batch, accumulation = _batches(settings, workload, ranks, stages or 1)
    _check_attention(settings, precision, record)
    workers = _workers(settings.loader, gpu_count, cores)
    quantization = _quantization(settings, workload)
    engine, kv_cache = served_by(settings, workload, quantization, precision, record)
    if settings.generation in ("vllm", "vllm-sleep"):
        check_kernels("vllm", record, "settings.generation")
    decided: dict[str, Any] = {
        "optimizer_implementation": _implementation(settings),
        "precision": precision,
        "quantization": quantization,
        "kv_cache": kv_cache,
        "engine": engine,
        "micro_batch": micro_batch,
        "accumulation": accumulation,
        "checkpointing": _checkpointing(settings, workload),
        "strategy": strategy,
        "shard_degree": copies,
        "pipeline_stages": stages,
        "num_workers": workers,
        "prefetch_factor": settings.loader.prefetch_factor or 2,
        "pin_memory": _pinned(settings.loader, record),
        "persistent_workers": _persistent(settings.loader, workers),
    }
    given = settings.model_dump(exclude={"loader"}, exclude_none=True)
    return FullSettings(**(given | decided))


def _implementation(settings: Settings) -> Implementation | None:
    usual = USUAL_IMPLEMENTATION.get(settings.optimizer or "adamw")
    return settings.optimizer_implementation or usual


def _refuse_not_yet(settings: Settings) -> None:
    for (key, value), instead in NOT_YET.items():
        if getattr(settings, key) == value:
            id = "workload.fp8-training" if value == "fp8" else "workload.not-yet"
            raise UserError.of(id, key=f"settings.{key}", value=value, instead=instead)


def _precision(settings: Settings, workload: Workload, record: GpuRecord) -> Precision:
    if settings.precision is None:
        best = best_precision(record)
        return best if workload.trains else _IN_16_BITS.get(best, best)
    if (reason := unsupported_precision(settings.precision, record)) is not None:
        raise UserError(reason)
    return settings.precision


_IN_16_BITS: dict[Precision, Precision] = {"bf16-mixed": "bf16", "fp16-mixed": "fp16"}
"""Of what is served: no fp32 weights are kept next to those in 16 bits."""


def best_precision(record: GpuRecord) -> Precision:
    """Return the precision that the GPU trains best in.

    bf16 needs no loss scaling and has tensor cores from compute capability 8.0 on, fp16
    from 7.0 on (NVIDIA's Transformer Engine and CUDA matrices of supported types). PyTorch's mps
    device has autocast in both (pytorch #99272, #139390) and loss scaling since 2.8 (#142397).
    """
    if record.vendor == "Apple":
        return "bf16-mixed" if supports(record, "bf16-mixed") is True else "fp16-mixed"
    if record.compute_capability is None:
        return "bf16-mixed" if "bf16_fp32" in record.flops else "fp32"
    if record.compute_capability >= (8, 0):
        return "bf16-mixed"
    return "fp16-mixed" if record.compute_capability >= (7, 0) else "fp32"


def unsupported_precision(precision: Precision, record: GpuRecord) -> Message | None:
    """Return why the GPU does not compute in the precision, or None where it does.

    torch emulates bf16 on older GPUs and says that it is supported
    (``torch.cuda.is_bf16_supported``); it is slower than fp32 there.
    """
    capability = record.compute_capability
    if capability is None:
        if precision != "tf32" or supports(record, precision) is True:
            return None
        values = {"value": precision, "gpu": record.name, "instead": best_precision(record)}
        return Message.of("workload.no-tf32", key="settings.precision", **values)
    if capability >= (8, 0) or precision not in ("bf16", "bf16-mixed", "tf32"):
        return None
    return Message.of(
        "workload.no-hardware",
        key="settings.precision",
        value=precision,
        gpu=record.name,
        capability=".".join(map(str, capability)),
        instead=best_precision(record),
    )


def _checkpointing(settings: Settings, workload: Workload) -> Checkpointing:
    offloads = bool(settings.activation_offload)
    chosen = settings.checkpointing or ("full" if offloads else "none")
    if workload.task == "prefix" and chosen != "none":
        key = "activation_offload" if settings.checkpointing is None else "checkpointing"
        raise UserError.of("workload.prefix-checkpointing", key=f"settings.{key}")
    if offloads and chosen in ("none", "selective"):
        raise UserError.of(
            "workload.offload-of-what", key="settings.activation_offload", checkpointing=chosen
        )
    return chosen


def _quantization(settings: Settings, workload: Workload) -> Quantization:
    chosen = settings.quantization
    if workload.task == "qlora":
        if chosen not in (None, "nf4", "fp4", "int8"):
            raise UserError.of("workload.qlora-needs-bits", key="settings.quantization")
        return chosen or "nf4"
    if workload.trains and chosen not in (None, "none"):
        raise UserError.of(
            "workload.quantized", key="settings.quantization", value=chosen, task=workload.task
        )
    if workload.task == "infer" and settings.engine in ("ollama", "llama.cpp"):
        # What most tags of Ollama's library hold (assumed), and llama.cpp's -hf takes by default
        # (llama.cpp: tools/server/README.md).
        return chosen or "q4_k_m"
    return chosen or "none"


def _strategy(settings: Settings, gpu_count: int) -> Strategy:
    match settings.strategy:
        case "single" | "ddp" | "fsdp2" | "zero1" | "zero2" | "zero3" | "pp" as chosen:
            return chosen
        case _:
            return "ddp" if gpu_count > 1 else "single"


def _batches(settings: Settings, workload: Workload, gpus: int, stages: int = 1) -> tuple[int, int]:
    """Return micro-batch and accumulation whose product over the GPUs is the effective batch.

    Pipeline stages need a micro-batch each: torch's ``Schedule1F1B`` refuses fewer.
    """
    micro, steps = _counted_batches(settings, workload, gpus, stages)
    if steps < stages:
        effective = workload.effective_batch
        raise _inexact(
            "workload.stages-batches",
            effective or 0,
            gpus * stages * (settings.micro_batch or 1),
            key="settings.accumulation",
            stages=stages,
            value=steps,
        )
    return micro, steps


def _counted_batches(
    settings: Settings, workload: Workload, gpus: int, stages: int
) -> tuple[int, int]:
    if not workload.trains:
        return _served(settings, workload), 1
    effective = workload.effective_batch
    assert effective is not None, "the schema requires it for training"
    micro, steps = settings.micro_batch, settings.accumulation
    group = objectives.group_unit(workload)
    unit = lcm(gpus * (micro or 1) * (steps or 1), group)
    if effective % group:
        raise _ungrouped(workload, effective, unit, given=micro is not None and steps is not None)
    if settings.optimizer_in_backward:
        return _all_at_once(settings, effective), 1
    if effective % gpus:
        raise _inexact("workload.batch-over-gpus", effective, unit, gpus=gpus)
    share = effective // gpus
    if micro is not None and steps is not None:
        if micro * steps != share:
            raise UserError.of(
                "workload.batch-product",
                micro=micro,
                accumulation=steps,
                count=gpus,
                product=micro * steps * gpus,
                effective=effective,
            )
        return micro, steps
    for key, given in (("micro_batch", micro), ("accumulation", steps)):
        if given is not None and share % given:
            raise _inexact(
                "workload.batch-inexact",
                effective,
                lcm(given * gpus, group),
                key=f"settings.{key}",
                value=given,
                count=gpus,
                divisors=_near_divisors(share, given),
            )
    if micro is None:
        most = max(min(LARGEST_DEFAULT_BATCH, share // stages), 1)
        micro = share // steps if steps is not None else largest_divisor(share, most)
    return micro, share // micro


def _ungrouped(workload: Workload, effective: int, unit: int, *, given: bool) -> UserError:
    """Return the error of answers that are not whole groups.

    It names batches that the GPUs and the given micro-batch divide as well, and sizes of groups.
    Where micro-batch and accumulation are given, they fix the batch.
    """
    writes = workload.writes
    assert writes is not None, "only its answers come in groups"
    sizes = _near_divisors(effective * writes.updates, writes.generations)
    groups = [size for size in sizes if FEWEST_ANSWERS <= size <= MOST_ANSWERS]
    said = "" if not groups else "-fixed" if given else "-or"
    values = {"key": "workload.effective_batch", "group": writes.generations, "groups": groups}
    return _inexact(f"workload.whole-groups{said}", effective, unit, **values)


def _all_at_once(settings: Settings, effective: int) -> int:
    """Return the micro-batch where gradients do not live long enough to add up."""
    for name, given, needed in (
        ("accumulation", settings.accumulation, 1),
        ("micro_batch", settings.micro_batch, effective),
    ):
        if given not in (None, needed):
            raise UserError.of(
                "workload.in-backward-accumulation", key=f"settings.{name}", needed=needed
            )
    return effective


def _served(settings: Settings, workload: Workload) -> int:
    """Return the requests served at once."""
    concurrent, batch = workload.inputs.concurrent, settings.micro_batch
    if concurrent is not None and batch is not None and concurrent != batch:
        raise UserError.of("workload.served-twice", concurrent=concurrent, batch=batch)
    return concurrent or batch or 1


def _inexact(id: str, effective: int, step: int, **values: object) -> UserError:
    """Return the error with the nearest effective batches that would be exact."""
    below, above = effective // step * step, -(-effective // step) * step
    nearest = [below, above] if below else [above]
    return UserError.of(id, effective=effective, nearest=nearest, **values)


def _near_divisors(share: int, wanted: int) -> list[int]:
    """Return the divisors of the share next below and above what was wanted."""
    known = divisors(share)
    below = [divisor for divisor in known if divisor < wanted]
    above = [divisor for divisor in known if divisor > wanted]
    return [*below[-1:], *above[:1]]


def largest_divisor(share: int, limit: int = LARGEST_DEFAULT_BATCH) -> int:
    """Return the largest divisor of the share that is at most the limit."""
    return next(d for d in range(min(limit, share), 0, -1) if share % d == 0)


OFFLOADED = ("adamw", "sgd")
"""Optimizers that are planned on the CPU: torch's own, whose state is large."""


def _check_optimizer(settings: Settings) -> None:
    """Refuse what the optimizer does not have."""
    optimizer = settings.optimizer or "adamw"
    offloads = settings.optimizer_offload == "cpu"
    for key, there, instead in (
        ("momentum", optimizer == "sgd" and not offloads, ["sgd"]),
        ("optimizer_implementation", implements(optimizer), list(USUAL_IMPLEMENTATION)),
    ):
        if getattr(settings, key) is not None and not there:
            raise UserError.of(
                "workload.of-optimizer", key=f"settings.{key}", optimizer=optimizer, instead=instead
            )


def _check_update(settings: Settings, precision: Precision, strategy: Strategy) -> None:
    """Refuse what an update within backward, or on the CPU, cannot go with.

    Both move parameters while gradients still come: nothing can look at all gradients
    before, as loss scaling and the averaging over GPUs must. torchao's offloading is of one
    GPU by its own words.
    """
    for key, on in (
        ("optimizer_in_backward", settings.optimizer_in_backward),
        ("optimizer_offload", settings.optimizer_offload == "cpu"),
    ):
        if on and precision == "fp16-mixed":
            raise UserError.of("workload.update-scaled", key=f"settings.{key}")
        if on and strategy != "single":
            raise UserError.of("workload.update-alone", key=f"settings.{key}")
    if settings.optimizer_offload != "cpu":
        return
    if settings.optimizer_in_backward:
        raise UserError.of("workload.update-twice", key="settings.optimizer_offload")
    if (settings.optimizer or "adamw") not in OFFLOADED:
        raise UserError.of(
            "workload.offload-of",
            key="settings.optimizer_offload",
            value=settings.optimizer,
            instead=list(OFFLOADED),
        )


def _check_attention(settings: Settings, precision: Precision, record: GpuRecord) -> None:
    """Flash attention computes in 16 bits, on compute capability 8.0 and later.

    Source: torch's ``sdp_utils.cpp`` (``check_sm_version``, ``check_tensor_dtype``).
    """
    if settings.attention != "flash":
        return
    if precision in ("fp32", "tf32"):
        raise UserError.of("workload.flash-precision", key="settings.attention", value=precision)
    capability = record.compute_capability
    if capability is not None and capability < (8, 0):
        raise UserError.of("workload.flash-gpu", key="settings.attention", gpu=record.name)


def _workers(loader: Loader, gpu_count: int, cores: int | None) -> int:
    if loader.num_workers is not None:
        if loader.num_workers == 0 and loader.prefetch_factor is not None:
            raise UserError.of("workload.no-workers", key="settings.loader.prefetch_factor")
        return loader.num_workers
    if cores is None:
        return DEFAULT_WORKERS
    return min(8, max(2, cores // gpu_count - 1))


def _pinned(loader: Loader, record: GpuRecord) -> bool:
    """Return whether batches wait in pinned memory, of which PyTorch's mps device has none."""
    return record.vendor != "Apple" if loader.pin_memory is None else loader.pin_memory


def _persistent(loader: Loader, workers: int) -> bool:
    if loader.persistent_workers and workers == 0:
        raise UserError.of("workload.no-workers", key="settings.loader.persistent_workers")
    return workers > 0 if loader.persistent_workers is None else loader.persistent_workers
