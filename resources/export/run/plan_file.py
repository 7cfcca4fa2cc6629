"""What plan.json may say."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from strict import InputError, read


@dataclass(frozen=True)
class Model:
    """What is trained."""

    kind: Literal["hf", "timm", "diffusers", "builtin", "python"]
    where: str
    """hf, diffusers: folder of config.json. timm, builtin: name. python: file.py:factory."""
    weights: str | None
    """hf: folder or hub id of pretrained weights; timm: "pretrained"; null starts from random."""
    arguments: dict[str, Any]
    """python: keyword arguments of the factory."""


@dataclass(frozen=True)
class Inputs:
    """Shape of one sample; null where the model has no such side."""

    sequence_length: int | None
    image_size: int | None
    packed: bool
    """Whether samples follow each other in rows of sequence_length tokens."""


@dataclass(frozen=True)
class Lora:
    """Low-rank adapters; no targets means every linear layer except the output head."""

    rank: int
    alpha: float
    targets: list[str]
    variant: Literal["lora", "rslora", "dora"]
    dropout: float


@dataclass(frozen=True)
class BatchSizes:
    """effective = micro x accumulation x gpus samples an optimizer step."""

    effective: int
    micro: int
    accumulation: int
    gpus: int


@dataclass(frozen=True)
class Settings:
    """How a step is computed."""

    precision: Literal["fp32", "tf32", "fp16-mixed", "bf16-mixed", "bf16", "fp16"]
    quantization: Literal["none", "int8", "nf4", "fp4"]
    double_quantization: bool
    """Whether the scales of 4-bit weights are quantised too."""
    kbit_preparation: Literal["none", "all", "norms"]
    """What of the weights that are not quantised is cast to fp32."""
    adapter_dtype: Literal["fp32", "weights"]
    input_gradients: bool
    """Whether the output of frozen embeddings gets a gradient."""
    checkpointing: str
    activation_offload: bool
    """Whether what checkpointed blocks keep waits in pinned host memory."""
    optimizer: Literal[
        "adamw",
        "adamw-8bit",
        "paged-adamw-8bit",
        "paged-adamw",
        "adamw-8bit-torchao",
        "adamw-4bit",
        "sgd",
        "adafactor",
        "lion",
        "muon",
    ]
    optimizer_implementation: Literal["fused", "foreach", "for-loop"] | None
    """How torch runs AdamW and SGD; null where the optimizer has no choice."""
    momentum: float
    """Of sgd."""
    optimizer_in_backward: bool
    """Move each parameter, and drop its gradient, as soon as backward has it."""
    optimizer_offload: Literal["none", "cpu"]
    """cpu: state and step on the CPU, by torchao's CPUOffloadOptimizer."""
    attention: Literal["eager", "sdpa", "flash"]
    expanded_heads: bool
    """Of sdpa: whether keys and values are repeated for each query head."""
    cross_entropy: Literal["full", "chunked"]
    """chunked: the scores of all tokens are never there at once."""
    compile: bool
    channels_last: bool
    allocator: Literal["native", "expandable"]
    strategy: Literal["single", "ddp", "fsdp2", "zero1", "zero2", "zero3", "pp"]
    """What several processes share: nothing, or weights, gradients and optimizer state, or the
    layers, some on each."""
    reshard_after_forward: bool
    """Of fsdp2: whether a block's weights are gathered again for its backward pass."""
    shard_degree: int | None
    """Of fsdp2: processes that share one copy of the weights; null: all of them."""
    tensor_degree: int | None
    """Of fsdp2: processes that split each layer; null: none is split."""
    pipeline_stages: int | None
    """Of pp: processes that the layers are cut for; null without."""
    shard_offload: bool
    """Of fsdp2: whether shares lie in pinned host memory, where the CPU moves them."""


@dataclass(frozen=True)
class Schedule:
    """Linear warm-up, then a cosine down to ``final_ratio`` of the learning rate."""

    learning_rate: float
    warmup_steps: int | None
    """null: 3 % of the steps."""
    epochs: float
    steps: int | None
    """Optimizer steps; null: from the epochs and the size of the dataset."""
    final_ratio: float
    weight_decay: float
    clip_norm: float
    """Largest norm of all gradients together; 0: they are not clipped."""


@dataclass(frozen=True)
class Data:
    """Where samples come from, and the DataLoader."""

    path: str | None
    tokenizer: str | None
    """Folder or hub id; needed for text that is not tokenised yet."""
    num_workers: int
    prefetch_factor: int
    pin_memory: bool
    persistent_workers: bool


@dataclass(frozen=True)
class Run:
    """Seed, and what is written where and when."""

    seed: int
    output: str
    save_every: int
    """Optimizer steps between checkpoints; the last step is always saved."""
    keep: int
    """Checkpoints kept; older ones are removed."""


@dataclass(frozen=True)
class Plan:
    """The whole file."""

    format: int
    name: str
    made_for: dict[str, str]
    task: Literal["pretrain", "full", "lora", "qlora", "prompt", "prefix"]
    model: Model
    inputs: Inputs
    lora: Lora | None
    frozen: list[str]
    """Parts of the model whose weights are left as they are: a name or part of one."""
    virtual_tokens: int
    """Trained tokens before the text; 0 where the task is neither prompt nor prefix."""
    batch: BatchSizes
    settings: Settings
    schedule: Schedule
    data: Data
    run: Run


def read_plan(path: Path) -> Plan:
    """Return the plan in the file.

    Raises:
        InputError: as ``strict.read`` does, or numbers contradict each other.
    """
    plan = read(Plan, path)
    try:
        _check_numbers(plan)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    return plan


def _check_numbers(plan: Plan) -> None:
    batch, schedule, data = plan.batch, plan.schedule, plan.data
    positive = {
        "batch.effective": batch.effective,
        "batch.micro": batch.micro,
        "batch.accumulation": batch.accumulation,
        "batch.gpus": batch.gpus,
        "schedule.learning_rate": schedule.learning_rate,
        "schedule.epochs": schedule.epochs,
        "schedule.steps": 1 if schedule.steps is None else schedule.steps,
        "data.prefetch_factor": data.prefetch_factor,
        "run.save_every": plan.run.save_every,
        "run.keep": plan.run.keep,
    }
    for key, value in positive.items():
        if value <= 0:
            raise InputError(f"{key}: {value} is not above 0")
    for key, value in {
        "data.num_workers": data.num_workers,
        "schedule.warmup_steps": schedule.warmup_steps or 0,
        "schedule.final_ratio": schedule.final_ratio,
        "schedule.weight_decay": schedule.weight_decay,
        "schedule.clip_norm": schedule.clip_norm,
    }.items():
        if value < 0:
            raise InputError(f"{key}: {value} is negative")
    together = (plan.settings.tensor_degree or 1) * (plan.settings.pipeline_stages or 1)
    product = batch.micro * batch.accumulation * batch.gpus // together
    if product != batch.effective:
        raise InputError(
            f"batch: micro {batch.micro} x accumulation {batch.accumulation} x gpus "
            f"{batch.gpus} = {product}, but effective is {batch.effective}; change one of them"
        )
    _check_checkpointing(plan.settings.checkpointing)
    _check_update(plan)
    _check_shares(plan)
    if plan.frozen and plan.task not in ("pretrain", "full"):
        raise InputError(f"frozen: task {plan.task} freezes the whole model; remove the names")
    if (plan.task in ("prompt", "prefix")) != (plan.virtual_tokens > 0):
        raise InputError(
            f"virtual_tokens: must be above 0 for prompt and prefix alone, but task is {plan.task}"
        )
    if plan.task == "prefix" and plan.settings.checkpointing != "none":
        raise InputError("settings.checkpointing: a prefix does not go with it; set none")
    if (plan.task in ("lora", "qlora")) != (plan.lora is not None):
        raise InputError(f"lora: must be given for lora and qlora alone, but task is {plan.task}")


def _check_shares(plan: Plan) -> None:
    degree, gpus = plan.settings.shard_degree, plan.batch.gpus
    if degree is not None and (degree < 2 or gpus % degree):
        raise InputError(f"settings.shard_degree: {degree} is no share of {gpus} GPUs")
    stages, several = plan.settings.pipeline_stages, plan.batch.accumulation
    if (plan.settings.strategy == "pp") != (stages is not None):
        raise InputError("settings.pipeline_stages: goes with strategy pp, and pp needs it")
    if stages is not None and (gpus % stages or several < stages):
        raise InputError(
            f"settings.pipeline_stages: {stages} must divide {gpus} GPUs, and be no more than the "
            f"{several} micro-batches of a step"
        )
    parts = plan.settings.tensor_degree
    if parts is None:
        return
    if parts < 2 or gpus % parts:
        raise InputError(f"settings.tensor_degree: {parts} does not divide {gpus} GPUs")
    if plan.settings.strategy != "fsdp2" or plan.settings.cross_entropy != "full":
        raise InputError("settings.tensor_degree: goes with fsdp2 and cross_entropy full alone")


def _check_update(plan: Plan) -> None:
    """Refuse what needs all gradients, where they do not wait for each other."""
    settings = plan.settings
    early = {
        "settings.optimizer_in_backward": settings.optimizer_in_backward,
        "settings.optimizer_offload": settings.optimizer_offload == "cpu",
    }
    if all(early.values()):
        raise InputError("settings.optimizer_offload: cpu excludes optimizer_in_backward")
    for key in (key for key, on in early.items() if on):
        if plan.batch.gpus > 1:
            raise InputError(f"{key}: works on one GPU only; set batch.gpus to 1")
        if plan.schedule.clip_norm:
            raise InputError(f"{key}: cannot clip by the norm; set schedule.clip_norm to 0")
        if settings.precision == "fp16-mixed":
            raise InputError(f"{key}: excludes the loss scaling of fp16-mixed; use bf16-mixed")
    if settings.optimizer_in_backward and plan.batch.accumulation > 1:
        raise InputError("settings.optimizer_in_backward: set batch.accumulation to 1")
    if settings.optimizer_offload == "cpu" and settings.optimizer not in ("adamw", "sgd"):
        raise InputError("settings.optimizer_offload: cpu goes with adamw and sgd")


def _check_checkpointing(mode: str) -> None:
    every = mode.removeprefix("every-")
    if mode not in ("none", "full", "selective") and not (
        mode.startswith("every-") and every.isdigit() and int(every) >= 2
    ):
        raise InputError(
            f"settings.checkpointing: {mode!r} is not none, full, selective or every-K"
        )
