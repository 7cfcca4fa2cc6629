"""What of the model each process holds: its part of each weight."""

from typing import Any

import deepspeed
import torch
from making import Outline, tied
from networks import placed
from plan_file import Plan
from step import StepSettings
from torch import nn
from world import World


def part(
    network: Outline, plan: Plan, settings: StepSettings, world: World, config: Any
) -> nn.Module:
    """Return the model, made layer by layer from what the first process holds."""
    model = placed(network.model, plan, settings, "meta")
    known: dict[nn.Parameter, nn.Parameter] = {}
    for path, module in reversed([*model.named_modules()]):
        own = [*module.named_parameters(prefix=path, recurse=False)]
        buffers = [*module.named_buffers(prefix=path, recurse=False)]
        for name, outline in own:
            parameter = known.get(outline)
            if parameter is None:  # else another layer has the same
                value = torch.empty_like(outline, device=world.device)
                if world.rank == 0:
                    value.copy_(network.weights[name])
                parameter = nn.Parameter(value, requires_grad=outline.requires_grad)
                known[outline] = parameter
            setattr(module, name.rpartition(".")[2], parameter)
        for name, outline in buffers:
            value = torch.empty_like(outline, device=world.device)
            if world.rank == 0:
                value.copy_(network.buffers[name])
            deepspeed.comm.broadcast(value, 0)
            setattr(module, name.rpartition(".")[2], value)
        # Takes the first process's values to the others, and keeps a part in each.
        deepspeed.zero.Init(module=module, config_dict_or_path=config)
    return model


def whole_weights(model: nn.Module, world: World) -> dict[str, torch.Tensor]:
    """Return the weights in the first process, gathered one after the other."""
    state = {name: value for name, value in model.state_dict().items() if value.numel()}
    for name, parameter in model.named_parameters():
        with deepspeed.zero.GatheredParameters([parameter]):
            if world.rank == 0:
                state[name] = parameter.detach().cpu().clone()
    return tied(model, state)
