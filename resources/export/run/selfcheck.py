"""What is really active, against what the plan says: nothing is downgraded in silence."""

import os
from collections.abc import Iterator
from functools import partial
from typing import Any

import torch
from plan_file import Plan
from step import AUTOCAST, InBackward, StepSettings, autocast, blocks
from strict import InputError
from torch import nn


def report(plan: Plan, engine: Any, world: Any, rounds: int) -> None:
    """Print a line for each setting.

    Raises:
        InputError: a setting is not in force; names all of them.
    """
    lines = [*_facts(plan, engine, world, rounds)]
    if world.rank == 0:
        for name, wanted, found, holds in lines:
            verdict = "ok" if holds else "NOT IN FORCE"
            print(f"{name:14} plan: {wanted!s:12} active: {found!s:32} {verdict}", flush=True)
    broken = [name for name, _, _, holds in lines if not holds]
    if broken:
        raise InputError(f"selfcheck: not in force on this machine: {', '.join(broken)}")


Fact = tuple[str, object, object, bool]
"""Setting, value in the plan, what is active, whether that is the same."""

OPTIMIZERS = {
    "adamw": "AdamW",
    "adamw-8bit": "AdamW8bit",
    "paged-adamw-8bit": "PagedAdamW8bit",
    "adamw-8bit-torchao": "AdamW8bit",
    "adamw-4bit": "AdamW4bit",
    "sgd": "SGD",
    "adafactor": "Adafactor",
    "lion": "Lion",
    "muon": "Muon",
}


def _facts(plan: Plan, engine: Any, world: Any, rounds: int) -> Iterator[Fact]:
    settings, model, device = plan.settings, engine.model, world.device
    yield "gpus", plan.batch.gpus, f"{world.size} x {device}", world.size == plan.batch.gpus
    effective = plan.batch.micro * rounds * world.groups
    yield (
        "batch",
        plan.batch.effective,
        f"{plan.batch.micro} x {rounds} x {world.groups}",
        (effective == plan.batch.effective),
    )
    yield from engine.facts()
    yield _checkpointing(plan, model)
    optimizer = engine.optimizer
    early = isinstance(optimizer, InBackward)
    kind = type(optimizer.parts[0] if early else optimizer)
    offloaded = kind.__name__ == "CPUOffloadOptimizer"
    own = offloaded or kind.__name__ == OPTIMIZERS[settings.optimizer]
    yield "optimizer", settings.optimizer, f"{kind.__module__}.{kind.__name__}", own
    wanted = settings.optimizer_in_backward
    yield "optimizer_in_backward", wanted, early, early == wanted
    where = "cpu" if offloaded else "none"
    yield (
        "optimizer_offload",
        settings.optimizer_offload,
        where,
        where == settings.optimizer_offload,
    )
    yield _attention(plan, model)
    yield _layout(plan, model)
    yield _offloading(plan, model)
    yield _quantization(plan, model)
    wanted = settings.allocator == "expandable"
    active = "expandable_segments:True" in os.environ.get("PYTORCH_ALLOC_CONF", "")
    yield (
        "allocator",
        settings.allocator,
        "expandable" if active else "native",
        active or not wanted,
    )
    # A weight that DeepSpeed has taken apart says its number of values itself.
    sizes = [(p.requires_grad, getattr(p, "ds_numel", p.numel())) for p in model.parameters()]
    trainable, total = sum(own for trains, own in sizes if trains), sum(own for _, own in sizes)
    adapts = plan.task not in ("pretrain", "full") or bool(plan.frozen)
    yield "task", plan.task, f"{trainable:,} of {total:,} weights", (trainable < total) == adapts


def precision_fact(plan: Plan, model: nn.Module, scaler: Any, device: torch.device) -> Fact:
    """Return what a matrix product comes out as, where torch's autocast has the choice."""
    precision = plan.settings.precision
    dtypes = {str(p.dtype).removeprefix("torch.") for p in model.parameters() if p.requires_grad}
    probe = torch.ones(2, 2, device=device, dtype=next(model.parameters()).dtype)
    with autocast(StepSettings(precision=precision), device.type):
        product = (torch.ones_like(probe, dtype=torch.float32) @ torch.eye(2, device=device)).dtype
    found = f"weights {'+'.join(sorted(dtypes))}, products {str(product).removeprefix('torch.')}"
    scaled = (scaler is not None) == (precision == "fp16-mixed")
    holds = product == AUTOCAST.get(precision, torch.float32) and scaled
    if precision == "tf32":
        fast = device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)
        found, holds = f"{found}, tf32 {'on' if fast else 'off'}", holds and fast
    if precision == "bf16":
        holds = "bfloat16" in dtypes
    return "precision", precision, found, holds


def _checkpointing(plan: Plan, model: nn.Module) -> Fact:
    wanted = plan.settings.checkpointing
    parts = blocks(model)
    wrapped = sum(map(_recomputes, parts))
    every = int(wanted.removeprefix("every-")) if wanted.startswith("every-") else 1
    goal = 0 if wanted == "none" else -(-len(parts) // every)
    holds = wrapped == goal and (wrapped > 0 or wanted == "none")
    return "checkpointing", wanted, f"{wrapped} of {len(parts)} blocks", holds


def _recomputes(module: nn.Module) -> bool:
    forward = module.__dict__.get("forward")
    return isinstance(forward, partial) and "checkpoint" in repr((forward.func, forward.args[:1]))


def _offloading(plan: Plan, model: nn.Module) -> Fact:
    wanted = plan.settings.activation_offload
    wrapped = [block.__dict__.get("forward") for block in blocks(model)]
    found = any("_offloaded" in repr(getattr(one, "func", None)) for one in wrapped)
    return "activation_offload", wanted, found, found == wanted


def _attention(plan: Plan, model: nn.Module) -> Fact:
    wanted = plan.settings.attention
    found = getattr(getattr(model, "config", None), "_attn_implementation", None)
    kernels = torch.backends.cuda
    flash = kernels.flash_sdp_enabled() and not kernels.math_sdp_enabled()
    if wanted == "flash":
        return "attention", wanted, "flash kernel alone" if flash else "any kernel", flash
    if found is None:
        return "attention", wanted, "as the model has it", True
    if plan.settings.expanded_heads and wanted == "sdpa":
        return "attention", "sdpa, heads repeated", found, found == "sdpa_expanded"
    return "attention", wanted, found, found == wanted


def _layout(plan: Plan, model: nn.Module) -> Fact:
    images = [p for p in model.parameters() if p.ndim == 4]
    active = any(
        p.is_contiguous(memory_format=torch.channels_last) and not p.is_contiguous() for p in images
    )
    wanted = plan.settings.channels_last
    return "channels_last", wanted, active, active or not wanted


def _quantization(plan: Plan, model: nn.Module) -> Fact:
    wanted = plan.settings.quantization
    kinds = {"nf4": "Linear4bit", "int8": "Linear8bitLt"}
    count = sum(type(module).__name__ == kinds.get(wanted) for module in model.modules())
    return "quantization", wanted, f"{count} layers", wanted == "none" or count > 0
