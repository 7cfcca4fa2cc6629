"""The network, with weights in the first process alone: host memory holds them once."""

import argparse
import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from networks import Network, build
from plan_file import Plan
from source import MAKERS
from torch import nn
from world import World


@dataclass(frozen=True)
class Outline(Network):
    """A network whose model has shapes and no memory, and the values that belong there."""

    weights: Mapping[str, torch.Tensor] | None
    """The state of the model; empty in all processes but the first. None where each has its own."""
    buffers: Mapping[str, torch.Tensor]
    """Those that a state leaves out too; empty in all processes but the first."""


def make(plan: Plan, options: argparse.Namespace, world: World) -> Outline:
    """Return the network; the first process makes or loads its weights, on the CPU.

    Weights in 4 bits have scales beside them, which nothing sends: each process loads them.
    """
    if plan.settings.quantization != "none":
        return Outline(**vars(build(plan, options, MAKERS)), weights=None, buffers={})
    weights, buffers = {}, {}
    if world.rank == 0:
        whole = build(plan, options, MAKERS).model
        weights, buffers = whole.state_dict(), dict(whole.named_buffers())
    shapes = dataclasses.replace(plan, model=dataclasses.replace(plan.model, weights=None))
    options = argparse.Namespace(**vars(options) | {"random_weights": True})
    with torch.device("meta"):
        network = build(shapes, options, MAKERS)
    return Outline(**vars(network), weights=weights, buffers=buffers)


def tied(model: nn.Module, state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Return the state with one tensor for each weight, also where it has several names."""
    first = {id(parameter): name for name, parameter in model.named_parameters()}
    every = model.named_parameters(remove_duplicate=False)
    again = {name: first[id(parameter)] for name, parameter in every}
    return state | {name: state[own] for name, own in again.items() if own in state}
