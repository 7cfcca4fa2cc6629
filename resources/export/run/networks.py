"""The model of the plan with the loss, the samples and the collation that go with it."""

import argparse
import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from folders import open_images
from freezing import UnknownNameError, frozen
from made import Pictures
from plan_file import Plan
from step import Loss, StepSettings, prepare
from strict import InputError
from torch import nn

State = Mapping[str, torch.Tensor]
"""Of a whole model, by name."""


@dataclass(frozen=True)
class Network:
    """A model and how it is fed."""

    model: nn.Module
    loss: Loss
    dataset: Any
    collate: Callable[[list[Any]], dict[str, Any]]
    save: Callable[[Path, State], None]
    """Writes the trained model below the folder, as its own library reads it."""


Maker = Callable[[Plan, argparse.Namespace], Network]
"""What builds networks of one kind."""


def build(plan: Plan, options: argparse.Namespace, makers: Mapping[str, Maker]) -> Network:
    """Return the network, its weights untrained or loaded as the plan says.

    Raises:
        InputError: a model of another kind, no dataset, no weights to adapt, or a library is
            missing.
    """
    if plan.model.kind not in makers:
        raise InputError(
            f"model.kind: these files train {', '.join(makers)}, not {plan.model.kind}; "
            "export the plan again"
        )
    if plan.data.path is None and not options.synthetic:
        raise InputError("no dataset: name one with --data PATH, or try it with --synthetic")
    try:
        network = makers[plan.model.kind](plan, options)
    except ImportError as error:
        raise InputError(f"{error}; install it: see made_for in plan.json") from error
    freeze(network.model, plan.frozen)
    return network


def freeze(model: nn.Module, names: list[str]) -> None:
    """Leave the named weights as they are.

    Raises:
        InputError: a name stands for nothing.
    """
    weights = dict(model.named_parameters(remove_duplicate=False))
    try:
        found = frozen(weights, names)
    except UnknownNameError as error:
        raise InputError(f"frozen: {error}") from None
    for path in found:
        weights[path].requires_grad_(False)


def placed(
    model: nn.Module, plan: Plan, settings: StepSettings, device: torch.device | str
) -> nn.Module:
    """Return the model ready to train there, as the settings of the step have it."""
    if plan.lora is not None:
        # Adapters stay fp32 beside a bf16 base, which has its type already.
        settings = dataclasses.replace(settings, precision="fp32")
    return prepare(model, settings, device)


def frozen_dtype(plan: Plan) -> torch.dtype:
    """Return the type of weights under LoRA: they need no fp32 copy, the adapters have that."""
    halves = {
        "bf16": torch.bfloat16,
        "bf16-mixed": torch.bfloat16,
        "fp16-mixed": torch.float16,
        "fp16": torch.float16,
    }
    return halves.get(plan.settings.precision, torch.float32)


def pictures(plan: Plan, options: argparse.Namespace, name: str, classes: int) -> Any:
    """Return pictures and their classes, made up where no data are asked for."""
    size = plan.inputs.image_size or 224
    if options.synthetic:
        return Pictures(name, size, classes, plan.run.seed)
    return open_images(Path(plan.data.path), name, size, plan.run.seed)


def saver(model: Any) -> Callable[[Path, State], None]:
    """Return what writes the model as its library reads it."""
    return lambda folder, weights: model.save_pretrained(folder / "model", state_dict=weights)


def save_weights(folder: Path, weights: State) -> None:
    """Write the weights alone."""
    torch.save(dict(weights), folder / "model.pt")
