"""The optimizer of the plan: those of torch, and those of other libraries."""

from functools import partial
from typing import Any

import torch
from plan_file import Plan
from step import StepSettings, make_optimizer
from strict import InputError
from torch import nn

OTHERS = {
    "adamw-8bit": ("bitsandbytes", "AdamW8bit"),
    "paged-adamw-8bit": ("bitsandbytes", "PagedAdamW8bit"),
    "paged-adamw": ("bitsandbytes", "PagedAdamW"),
    "lion": ("bitsandbytes", "Lion"),
    "adamw-8bit-torchao": ("torchao", "AdamW8bit"),
    "adamw-4bit": ("torchao", "AdamW4bit"),
}
"""Name in the plan -> library, and its class."""


def build_optimizer(model: nn.Module, plan: Plan) -> torch.optim.Optimizer:
    """Return the optimizer over the trainable parameters.

    Raises:
        InputError: it needs a library that is not installed, or cannot run here.
    """
    settings, schedule = plan.settings, plan.schedule
    if settings.optimizer_offload == "cpu":
        return _on_cpu(model, plan)
    make = None
    if settings.optimizer in OTHERS:
        kind = _kind(*OTHERS[settings.optimizer])
        options = {"lr": schedule.learning_rate, "weight_decay": schedule.weight_decay}
        make = partial(kind, **options)
    optimizer = make_optimizer(
        model,
        StepSettings(
            optimizer=settings.optimizer,
            implementation=settings.optimizer_implementation or "",
            momentum=settings.momentum,
            learning_rate=schedule.learning_rate,
            in_backward=settings.optimizer_in_backward,
        ),
        make,
    )
    for group in optimizer.param_groups:
        group["weight_decay"] = schedule.weight_decay
    return optimizer


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    """Set the learning rate of all groups; torchao keeps it as a tensor."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def _on_cpu(model: nn.Module, plan: Plan) -> torch.optim.Optimizer:
    """Return torchao's optimizer on the CPU; gradients stay on the GPU until the step."""
    kind: Any = _kind("torchao", "CPUOffloadOptimizer")
    kinds = {"adamw": torch.optim.AdamW, "sgd": partial(torch.optim.SGD, momentum=0.9)}
    options = {"lr": plan.schedule.learning_rate, "weight_decay": plan.schedule.weight_decay}
    try:
        return kind(model.parameters(), kinds[plan.settings.optimizer], **options)
    except (AssertionError, AttributeError) as error:
        raise InputError(
            "settings.optimizer_offload cpu: torchao offloads from CUDA and XPU devices only"
        ) from error


def _kind(library: str, name: str) -> Any:
    try:
        module = __import__(f"{library}.optim", fromlist=[name])
    except ImportError as error:
        raise InputError(f"{name} needs {library}: pip install {library}") from error
    return getattr(module, name)
