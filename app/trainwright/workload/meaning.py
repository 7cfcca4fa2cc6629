"""Which settings mean something to a task: those of other tasks, formats and engines do not."""

from collections.abc import Iterator
from typing import Any

from trainwright.messages import UserError
from trainwright.workload import objectives
from trainwright.workload.settings import FullSettings, Settings
from trainwright.workload.workload import Workload

ONLY_TRAINING = (
    "settings.accumulation",
    "settings.checkpointing",
    "settings.activation_offload",
    "settings.recipe",
    "settings.optimizer",
    "settings.optimizer_implementation",
    "settings.momentum",
    "settings.kbit_preparation",
    "settings.adapter_dtype",
    "settings.input_gradients",
    "settings.loss_in_model",
    "settings.expanded_heads",
    "settings.separate_experts",
    "settings.position_tables",
    "settings.reentrant",
    "settings.softmax_inputs",
    "settings.output_kept",
    "settings.gradients_cleared",
    "settings.optimizer_in_backward",
    "settings.optimizer_offload",
    "settings.reshard_after_forward",
    "settings.shard_degree",
    "settings.pipeline_stages",
    "settings.shard_offload",
    "settings.cross_entropy",
    "settings.learning_rate",
    "settings.warmup",
    "workload.effective_batch",
    "workload.epochs",
    "workload.inputs.mean_tokens",
    "workload.inputs.batching",
)
"""Keys that mean nothing without a backward pass."""

ONLY_INFERENCE = (
    "settings.kv_cache",
    "settings.engine",
    "workload.inputs.concurrent",
)
"""Keys that mean nothing to training. Which of those of generating do, an objective says."""

_OF_THE_LOADER = ("num_workers", "prefetch_factor", "pin_memory", "persistent_workers")
"""Settings of what feeds a training; serving has no data loader."""

_OF_PYTORCH = ("attention", "compile", "channels_last", "allocator", "scores_upcast", "framework")
"""Settings of a run in PyTorch alone: a serving engine has kernels and an allocator of its own."""


def meaningless(settings: Settings, workload: Workload) -> Iterator[str]:
    """Yield the keys that are given and mean nothing to the task."""
    yield from objectives.meaningless(settings, workload)
    given = {"settings": settings, "workload": workload, "workload.inputs": workload.inputs}
    for key in ONLY_INFERENCE if workload.trains else ONLY_TRAINING:
        section, _, name = key.rpartition(".")
        if getattr(given[section], name) is not None:
            yield key
    if workload.trains and workload.task != "qlora":
        for key in ("kbit_preparation", "double_quantization"):
            if getattr(settings, key) is not None:
                yield f"settings.{key}"
    packed = settings.quantization in ("nf4", "fp4")
    if not workload.trains and settings.double_quantization is not None and not packed:
        yield "settings.double_quantization"
    if not workload.trains and settings.scores_upcast in ("shifted", "none"):
        yield "settings.scores_upcast"
    if workload.trains and not workload.adapts and settings.input_gradients is not None:
        yield "settings.input_gradients"
    plain = workload.trains and workload.task not in ("lora", "qlora")
    if plain and settings.adapter_dtype is not None:
        yield "settings.adapter_dtype"
    if workload.lora is not None and workload.task not in ("lora", "qlora"):
        yield "workload.lora"
    if workload.frozen and workload.task not in ("pretrain", "full"):
        yield "workload.frozen"
    if workload.virtual_tokens is not None and not workload.prompted:
        yield "workload.virtual_tokens"
    if not workload.trains and workload.inputs.sequence_length is not None:
        yield "workload.inputs.sequence_length"


def meaningful(settings: FullSettings, workload: Workload) -> dict[str, Any]:
    """Return the decided settings that mean something to the task."""
    others = ONLY_INFERENCE if workload.trains else (*ONLY_TRAINING, *_OF_THE_LOADER)
    left_out = {key.removeprefix("settings.") for key in others}
    left_out |= {*objectives.idle(settings, workload), *_idle(settings, workload)}
    return {name: value for name, value in settings.model_dump().items() if name not in left_out}


def _idle(settings: FullSettings, workload: Workload) -> Iterator[str]:
    """Yield the decided settings of other tasks, formats and engines."""
    if not workload.trains:
        yield "strategy"  # copies of a served model are runs of their own
    if not workload.trains and settings.engine != "transformers":
        yield from _OF_PYTORCH
    packed = workload.task == "qlora" or settings.quantization in ("nf4", "fp4")
    if not packed or settings.engine != "transformers":
        yield from ("double_quantization", "kbit_preparation")


def refuse_meaningless(settings: Settings, workload: Workload) -> None:
    """Refuse a plan that gives a key which means nothing to its task.

    Raises:
        UserError: names the first such key, and why it means nothing.
    """
    for key in meaningless(settings, workload):
        if key == "workload.inputs.sequence_length":
            raise UserError.of("workload.length-of-inference", key=key)
        if key == "workload.rollout" and workload.task in objectives.TASKS:
            raise UserError.of("workload.needs-objective", key=key, objective="grpo")
        raise UserError.of("workload.meaningless", key=key, task=workload.task)
