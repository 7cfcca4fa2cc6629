"""What the Trainer really does, against what its files ask: nothing is downgraded in silence."""

import os
from collections.abc import Iterator
from typing import Any

import torch
from strict import InputError
from transformers import TrainerCallback

Fact = tuple[str, object, object, bool]
"""Setting, what is asked, what is active, whether that is the same."""

QUANTIZED = {"nf4": "Linear4bit", "fp4": "Linear4bit", "int8": "Linear8bitLt"}


FSDP = "FSDPModule"
ENGINES = {"ddp": "DistributedDataParallel", "fsdp2": FSDP}
"""Strategy -> what the Trainer wraps the model in. On a CPU it has no FSDP, and trains whole models
in silence."""


class Selfcheck(TrainerCallback):
    """Prints a line for each setting when training starts, and ends a run that lacks one."""

    def __init__(self, script: Any, asked: dict[str, Any]) -> None:
        self.script, self.asked = script, asked
        self.trainer: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Check what the Trainer has prepared.

        Raises:
            InputError: a setting is not in force; names all of them.
        """
        lines = [*facts(self.script, self.asked, self.trainer)]
        if args.process_index == 0:
            for name, wanted, found, holds in lines:
                verdict = "ok" if holds else "NOT IN FORCE"
                print(f"{name:14} asked: {wanted!s:18} active: {found!s:32} {verdict}", flush=True)
        broken = [name for name, _, _, holds in lines if not holds]
        if broken:
            raise InputError(f"selfcheck: not in force on this machine: {', '.join(broken)}")


def engine_of_shares(model: Any, trainer: Any, degree: int | None) -> Fact:
    """Return whether each weight is shared, and how many groups are gathered at once.

    ``degree`` processes share one copy; None: all of them.
    """
    from torch.distributed.fsdp import FSDPModule
    from torch.distributed.tensor import DTensor, Replicate, Shard

    parameters = [*model.parameters()]
    degree = degree or trainer.args.world_size
    copies = [Replicate()] * (degree < trainer.args.world_size)
    shared = sum(
        isinstance(one, DTensor)
        and [*one.placements] == [*copies, Shard(0)]
        and one.device_mesh.shape[-1] == degree
        for one in parameters
    )
    groups = sum(isinstance(part, FSDPModule) for part in model.modules())
    found = type(trainer.model_wrapped).__name__
    found = f"{found}: {shared} of {len(parameters)} weights shared by {degree}, {groups} groups"
    return "engine", FSDP, found, shared == len(parameters) and groups > 1


def facts(script: Any, asked: dict[str, Any], trainer: Any) -> Iterator[Fact]:
    """Yield what is asked and what is active."""
    args, model, wrapped = trainer.args, trainer.model, type(trainer.model_wrapped).__name__
    yield "gpus", script.gpus, args.world_size, args.world_size == script.gpus
    # One process that sees several GPUs is wrapped in DataParallel, which copies the model
    # at each step and raises the batch.
    engine = ENGINES.get(script.strategy, type(model).__name__)
    if engine == FSDP:
        yield engine_of_shares(model, trainer, script.shard_degree)
        if script.shard_offload:
            found = {one.device.type for one in model.parameters()}
            yield "shares", "cpu", ", ".join(found), found == {"cpu"}
    else:
        yield "engine", engine, wrapped, wrapped == engine
    parts = (args.train_batch_size, args.gradient_accumulation_steps, args.world_size)
    samples = parts[0] * parts[1] * parts[2]
    yield "batch", script.effective, " x ".join(map(str, parts)), samples == script.effective
    mixed = "bf16" if asked["bf16"] else "fp16" if asked["fp16"] else "no"
    found = trainer.accelerator.mixed_precision
    yield "precision", mixed, found, found == mixed
    if mixed == "no" and asked.get("tf32"):
        fast = torch.cuda.is_available() and torch.backends.cuda.matmul.allow_tf32
        yield "tf32", True, fast, fast
    layers = [part for part in model.modules() if getattr(part, "gradient_checkpointing", False)]
    wanted = asked.get("activation_checkpointing", False)
    yield "checkpointing", wanted, f"{len(layers)} layers", bool(layers) == wanted
    kind = getattr(trainer.optimizer, "optimizer", trainer.optimizer)
    name = type(kind).__name__
    own = name.lower().removesuffix("8bit").removesuffix("4bit") in asked["optim"]
    yield "optimizer", asked["optim"], f"{type(kind).__module__}.{name}", own
    attention = model.config._attn_implementation
    yield "attention", script.attention, attention, attention == script.attention
    packed = QUANTIZED.get(script.quantization)
    count = sum(type(part).__name__ == packed for part in model.modules())
    yield "quantization", script.quantization, f"{count} layers", packed is None or count > 0
    if (wanted := getattr(script, "reference", None)) is not None:
        kept = "precomputed" if getattr(trainer, "precompute_ref_logps", False) else "adapter-off"
        found = "model" if trainer.ref_model is not None else kept
        yield "reference", wanted, found, found == wanted
    expandable = "expandable_segments:True" in os.environ.get("PYTORCH_ALLOC_CONF", "")
    yield "allocator", script.allocator, expandable, expandable or script.allocator == "native"
    trained = sum(one.numel() for one in model.parameters() if one.requires_grad)
    whole = sum(one.numel() for one in model.parameters())
    adapts = script.task not in ("pretrain", "full") or bool(script.frozen)
    yield "task", script.task, f"{trained:,} of {whole:,} weights", (trained < whole) == adapts
