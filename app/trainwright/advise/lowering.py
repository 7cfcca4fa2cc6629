"""Changes of a plan that may lower the peak of the GPU's memory, or of the system's, one each."""

from collections.abc import Iterator

from trainwright.advise.space import may_expand
from trainwright.advise.variations import Patch, Variation, batch_patch
from trainwright.messages import Message
from trainwright.plan.evaluate import Facts
from trainwright.plan.schema import Plan
from trainwright.workload.settings import Effect, Settings, effect

FEWER = (2, 4, 8, 16)
"""Parts into which a micro-batch, or the requests served at once, are tried to be cut."""
_FEWER_BITS = ("workload.task", "settings.precision")
"""Keys that are only set to QLoRA and to mixed precision here: the same run in fewer bits."""
SMALLER_STATE = ("adamw-8bit", "adafactor")
"""Optimizers with less state than AdamW whose time is known; 4-bit states cost time that is not."""


def lowering(plan: Plan, facts: Facts) -> Iterator[Variation]:
    """Yield what may lower the GPU's peak and is not in place; the plan may refuse some of it.

    In the order in which they are to be tried where they cost the same.
    """
    if facts.settings.allocator == "native" and facts.machine.gpu.record.vendor == "NVIDIA":
        yield _change("lower.expandable", {"settings.allocator": "expandable"})
    if plan.workload.trains:
        yield from _loss(facts)
        yield from _activations(facts)
        yield from _fewer_samples(plan, facts)
        yield from _optimizer(plan, facts)
        yield from _weights(plan, facts)
    else:
        yield from _served(plan, facts)
    if may_expand(facts.profile, facts.settings, plan.workload, facts.machine.gpu.record):
        yield _change("whatif.expanded-heads", {"settings.expanded_heads": True})
    if facts.settings.attention == "eager" and facts.profile.kernels:
        yield _change("whatif.attention", {"settings.attention": "sdpa"}, value="sdpa")


def effect_of(patch: Patch) -> Effect:
    """Return what a change that lowers the peak does to the result of a run."""
    settings = ((key.removeprefix("settings."), value) for key, value in patch.items())
    effects = [effect(name, value) for name, value in settings if name in Settings.model_fields]
    fewer_bits = any(key in _FEWER_BITS for key in patch)
    return max(*effects, Effect.NEARLY if fewer_bits else Effect.SAME, Effect.SAME)


def lowering_host(facts: Facts) -> Iterator[Variation]:
    """Yield what may lower the system memory that a run takes, and is in place now."""
    settings = facts.settings
    workers = settings.num_workers
    while workers > 0:
        workers //= 2
        patch: Patch = {"settings.loader.num_workers": workers}
        yield _change("whatif.workers", patch, count=workers)
    if settings.optimizer_offload == "cpu":
        yield _change("lower.no-optimizer-offload", {"settings.optimizer_offload": "none"})
    if settings.activation_offload:
        yield _change("lower.no-activation-offload", {"settings.activation_offload": False})


def _change(id: str, patch: Patch, /, *, subject: str = "", **values: object) -> Variation:
    """Return a change; all that set the same keys are one subject by default."""
    change = Message.of(f"advise.{id}", **values)
    return Variation(change, patch, "setting", subject or min(patch))


def _fewer_samples(plan: Plan, facts: Facts) -> Iterator[Variation]:
    micro = facts.settings.micro_batch
    gpus = facts.settings.ranks_of(facts.machine.gpu_count) if facts.settings.several else 1
    for parts in FEWER:
        if micro % parts == 0:
            fewer = micro // parts
            patch = batch_patch(plan, fewer, gpus)
            accumulation = facts.settings.accumulation * parts
            yield _change("lower.micro", patch, micro=fewer, accumulation=accumulation)


def _activations(facts: Facts) -> Iterator[Variation]:
    now, apart = facts.settings.checkpointing, not facts.machine.gpu.record.unified_memory
    levels = {"none": ("selective", "every-2", "full"), "full": ()}
    for level in levels.get(now, ("full",)):
        patch: Patch = {"settings.checkpointing": level}
        yield _change("lower.checkpointing", patch, value=level)
    if apart and not facts.settings.activation_offload:
        kept = now if now == "full" or now.startswith("every") else "full"
        patch = {"settings.activation_offload": True, "settings.checkpointing": kept}
        yield _change("lower.activation-offload", patch)


def _loss(facts: Facts) -> Iterator[Variation]:
    """Yield the ways of the loss; each by itself, since Liger's needs another package."""
    if facts.settings.cross_entropy == "full" and "vocabulary" in facts.profile.model:
        plain = "tiled" if facts.settings.recipe == "trl-sft" else "chunked"
        for value in (plain, "fused"):
            patch: Patch = {"settings.cross_entropy": value}
            yield _change(f"lower.{value}-loss", patch, subject=value)


def _optimizer(plan: Plan, facts: Facts) -> Iterator[Variation]:
    settings = facts.settings
    apart = not facts.machine.gpu.record.unified_memory
    if settings.optimizer == "adamw":
        for value in SMALLER_STATE:
            patch: Patch = {"settings.optimizer": value, "settings.optimizer_implementation": None}
            yield _change("whatif.optimizer", patch, value=value)
        if apart and settings.optimizer_offload == "none":
            yield _change("lower.optimizer-offload", {"settings.optimizer_offload": "cpu"})
    if settings.update.endswith("foreach"):
        patch = {"settings.optimizer_implementation": "fused"}
        yield _change("whatif.optimizer", patch, value=f"{settings.optimizer}, fused")
    if not settings.optimizer_in_backward and settings.accumulation == 1:
        yield _change("lower.in-backward", {"settings.optimizer_in_backward": True})


def _weights(plan: Plan, facts: Facts) -> Iterator[Variation]:
    if facts.settings.precision in ("fp32", "tf32"):
        patch: Patch = {"settings.precision": "bf16-mixed"}
        yield _change("whatif.precision", patch, value="bf16-mixed")
    if plan.workload.task == "lora":
        yield _change("whatif.qlora", {"workload.task": "qlora"})


def _served(plan: Plan, facts: Facts) -> Iterator[Variation]:
    settings = facts.settings
    key = "settings.micro_batch" if plan.settings.micro_batch else "workload.inputs.concurrent"
    for parts in FEWER:
        if settings.micro_batch >= parts:
            requests = settings.micro_batch // parts
            yield _change("whatif.concurrent", {key: requests}, requests=requests)
    if settings.kv_cache in ("bf16", "fp16"):
        yield _change("whatif.kv-cache", {"settings.kv_cache": "fp8"}, value="fp8")
    if settings.quantization == "none":
        for value in ("fp8", "int8", "int4"):
            patch: Patch = {"settings.quantization": value}
            yield _change("whatif.quantization", patch, value=value)
    if settings.engine == "transformers" and plan.settings.engine is None:
        yield _change("whatif.engine", {"settings.engine": "vllm"}, value="vLLM")
