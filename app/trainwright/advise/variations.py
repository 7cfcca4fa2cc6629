"""Changes of a plan's settings that are worth a look, one each."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from trainwright.advise.space import convolves_images, may_expand
from trainwright.estimate.input.pipeline import BITS_PER_PIXEL, RESIZED
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts, splits_of
from trainwright.plan.report import Report, Verdict
from trainwright.plan.schema import Plan
from trainwright.workload import Dataset

Patch = dict[str, Any]
"""Dotted keys of the plan -> what they are set to; None frees a key."""

_POWER_SHARE = 0.75
"""Of the board power: where a limit is usually set to save heat and noise; assumed."""
BUYABLE = ("consumer", "workstation", "datacenter")
"""Segments whose cards are bought by themselves."""


@dataclass(frozen=True, slots=True)
class Variation:
    """One change, before anybody has looked what it does."""

    change: Message
    patch: Patch
    kind: Literal["setting", "part"]
    subject: str
    """What is changed; of several values of one subject only the best is worth showing."""


def variations(plan: Plan, facts: Facts, report: Report) -> Iterator[Variation]:
    """Yield other settings that a person may want to try; some of them the plan may refuse."""
    of_task = _training if plan.workload.trains else _serving
    yield from of_task(plan, facts, report)
    yield from _kernels(plan, facts)
    limit = power_limit(facts)
    if limit and not plan.machine.fixed and len(plan.machine.gpus) == 1:
        yield _setting("power", {"machine.gpus[0].power_limit_w": limit}, limit=limit)


def _setting(name: str, patch: Patch, /, *, subject: str = "", **values: object) -> Variation:
    change = Message.of(f"advise.whatif.{name}", **values)
    return Variation(change, patch, "setting", subject or name)


def _training(plan: Plan, facts: Facts, report: Report) -> Iterator[Variation]:
    settings = facts.settings
    gpus = settings.ranks_of(facts.machine.gpu_count) if settings.several else 1
    for factor in (2, 4, 8, 0.5):
        micro = int(settings.micro_batch * factor)
        if micro and settings.accumulation >= factor and not settings.accumulation % factor:
            patch = batch_patch(plan, micro, gpus)
            yield _setting("micro", patch, micro=micro)
    checkpointed = settings.checkpointing != "none"
    off, on = {"settings.checkpointing": "none"}, {"settings.checkpointing": "full"}
    if checkpointed:
        yield _setting("checkpointing-off", off, subject="checkpointing")
    else:
        yield _setting("checkpointing-on", on, subject="checkpointing")
    if plan.workload.task == "lora":
        yield _setting("qlora", {"workload.task": "qlora"})
    whole = settings.optimizer == "adamw" and not plan.workload.adapts
    if whole and report.verdict is not Verdict.FITS:
        yield _setting("optimizer", {"settings.optimizer": "adamw-8bit"}, value="adamw-8bit")
    if settings.update.endswith(("foreach", "for-loop")) and not settings.optimizer_in_backward:
        fused: Patch = {"settings.optimizer_implementation": "fused"}
        yield _setting("optimizer", fused, subject="fused", value=f"{settings.optimizer}, fused")
    yield from _input(plan, report)


def batch_patch(plan: Plan, micro: int, gpus: int) -> Patch:
    """Return the keys that set a micro-batch and keep the effective batch."""
    patch: Patch = {"settings.micro_batch": micro}
    if plan.settings.accumulation is not None and plan.workload.effective_batch is not None:
        patch["settings.accumulation"] = plan.workload.effective_batch // (micro * gpus)
    return patch


def _input(plan: Plan, report: Report) -> Iterator[Variation]:
    """Yield the remedies of a slow input that a plan can say."""
    pipeline, dataset = report.time.pipeline, plan.workload.dataset
    if pipeline is None or not isinstance(dataset, Dataset):
        return
    better, size = pipeline.recommended, plan.workload.inputs.image_size
    side = (size or 0) * RESIZED
    small, raw = side * side * BITS_PER_PIXEL / 8 / 1024, 3 * side * side / 1024
    for remedy, _ in pipeline.remedies:
        match remedy.name:
            case "workers" if better is not None:
                count = better.num_workers
                yield _setting("workers", {"settings.loader.num_workers": count}, count=count)
            case "pinned":
                yield _setting("pinned", {"settings.loader.pin_memory": True})
            case "shards":
                yield _setting("shards", {"workload.dataset.layout": "shards"})
            case "decoder":
                patch: Patch = {"workload.dataset.decoder": "simplejpeg"}
                yield _setting("decoder", patch, value="simplejpeg")
            case "resized" if size:
                patch = {"workload.dataset.sample_kib": round(small, 1)}
                yield _setting("resized", patch, size=round(side))
            case "decoded" if size:
                data = {"layout": "shards", "decode": "none", "sample_kib": round(raw, 1)}
                yield _setting("decoded", {f"workload.dataset.{k}": v for k, v in data.items()})


def _serving(plan: Plan, facts: Facts, report: Report) -> Iterator[Variation]:
    key = "settings.micro_batch" if plan.settings.micro_batch else "workload.inputs.concurrent"
    for factor in (2, 4, 0.5):
        requests = int(facts.settings.micro_batch * factor)
        if requests:
            yield _setting("concurrent", {key: requests}, requests=requests)
    serving = report.serving
    if serving is not None and serving.waiting and serving.whole_share is not None:
        share = serving.whole_share
        yield _setting("memory-share", {"settings.memory_share": share}, share=share)
    for degree in splits_of(plan, facts):
        if degree != facts.settings.tensor_degree:
            yield _setting("tensor-degree", {"settings.tensor_degree": degree}, degree=degree)
    for value in ("fp8", "int8", "int4"):
        if facts.settings.quantization == "none":
            patch = {"settings.quantization": value}
            yield _setting("quantization", patch, value=value)
    if facts.settings.engine == "transformers" and plan.settings.engine is None:
        yield _setting("engine", {"settings.engine": "vllm"}, value="vLLM")
    if facts.settings.kv_cache in ("bf16", "fp16"):
        yield _setting("kv-cache", {"settings.kv_cache": "fp8"}, value="fp8")


def _kernels(plan: Plan, facts: Facts) -> Iterator[Variation]:
    """Yield what makes other kernels of the same work; engines have their own."""
    settings = facts.settings
    if settings.engine != "transformers":
        return
    if settings.precision == "fp32":
        yield _setting("precision", {"settings.precision": "bf16-mixed"}, value="bf16-mixed")
        yield _setting("precision", {"settings.precision": "tf32"}, value="tf32")
    if settings.attention == "eager" and facts.profile.kernels:
        yield _setting("attention", {"settings.attention": "sdpa"}, value="sdpa")
    if may_expand(facts.profile, settings, plan.workload, facts.machine.gpu.record):
        yield _setting("expanded-heads", {"settings.expanded_heads": True})
    if not settings.compile:
        yield _setting("compile", {"settings.compile": True})
    if not settings.channels_last and convolves_images(facts.profile, facts.inputs):
        yield _setting("channels-last", {"settings.channels_last": True})


def power_limit(facts: Facts) -> int | None:
    """Return a limit of the board power that is worth a look; None where there is one."""
    gpu = facts.machine.gpu
    if gpu.record.tdp_w is None or gpu.power_limit_w is not None:
        return None
    if gpu.record.segment not in BUYABLE:
        return None
    return round(_POWER_SHARE * gpu.record.tdp_w.value / 10) * 10
