"""What of the model each process holds: all weights."""

from typing import Any

import torch
from networks import Network, placed
from plan_file import Plan
from step import StepSettings
from torch import nn
from world import World


def part(
    network: Network, plan: Plan, settings: StepSettings, world: World, _config: Any
) -> nn.Module:
    """Return the model; DeepSpeed shares the optimizer state, and with stage 2 the gradients."""
    return placed(network.model, plan, settings, world.device)


def whole_weights(model: nn.Module, _world: World) -> dict[str, torch.Tensor]:
    """Return the state of the model."""
    return model.state_dict()
