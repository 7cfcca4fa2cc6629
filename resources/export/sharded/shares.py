"""What runs the steps: torch's fully_shard, each process with its share of the weights.

Before a block computes, its weights are gathered from all processes; its gradients are added up
over all as soon as it has them, and each process keeps its share of the sum. Where some processes
share a copy and others share another (HSDP), the copies add up their shares once a step.
"""

import dataclasses
from collections.abc import Iterator
from typing import Any

import torch
import torch.distributed as dist
from making import Outline, tied
from networks import State, placed
from optimizers import build_optimizer
from plan_file import Plan
from selfcheck import Fact
from step import (
    AUTOCAST,
    PURE,
    Batch,
    Loss,
    StepSettings,
    blocks,
    make_scaler,
    micro_step,
    update,
)
from torch import nn
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    set_model_state_dict,
)
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import (
    CPUOffloadPolicy,
    FSDPModule,
    MixedPrecisionPolicy,
    fully_shard,
)
from torch.distributed.tensor import DTensor, Replicate, Shard
from world import World

COMPUTED = {"bf16-mixed": "bf16", "fp16-mixed": "fp16"}
"""Precision of the plan -> of the step: blocks compute in 16 bits without autocast."""


class Shares:
    """The model as the steps call it, with its optimizer; an engine is made of it."""

    def __init__(self, plan: Plan, settings: StepSettings, network: Outline, world: World) -> None:
        precision = COMPUTED.get(settings.precision, settings.precision)
        self.plan, self.world = plan, world
        self.settings = dataclasses.replace(settings, precision=precision)
        self.mesh = self.meshed(plan, world)
        made = placed(
            network.model, plan, settings, "meta" if network.weights is not None else "cpu"
        )
        self.model = self.shared(made)
        if network.weights is not None:
            fill(self.model, network.weights, network.buffers, world, self._home)
        # Only now are the parameters those that the optimizer moves.
        self.optimizer = build_optimizer(self.model, plan)
        self.scaler = make_scaler(settings, world.device.type)
        self.runner = torch.compile(self.model) if plan.settings.compile else self.model

    def meshed(self, plan: Plan, world: World) -> DeviceMesh:
        """Return the processes: in a row that shares one copy, or in rows that share one each."""
        degree = plan.settings.shard_degree or world.size
        if degree == world.size:
            return init_device_mesh(world.device.type, (degree,))
        shape = (world.size // degree, degree)
        return init_device_mesh(world.device.type, shape, mesh_dim_names=("replicate", "shard"))

    def shared(self, model: nn.Module) -> nn.Module:
        """Return the model with its weights shared out."""
        return shard(model, self.plan, self.mesh)

    @property
    def shards(self) -> int:
        """Processes that share one copy of what each holds."""
        return self.mesh.shape[-1]

    def holds(self, weight: DTensor) -> bool:
        """Whether this process has a share of the weight, as the mesh says."""
        return weight.placements == (*[Replicate()] * (self.mesh.ndim - 1), Shard(0))

    @property
    def _home(self) -> torch.device:
        """Where shares lie while no block computes."""
        return torch.device("cpu") if self.plan.settings.shard_offload else self.world.device

    def micro_step(self, batch: Batch, count: float, loss: Loss, *, last: bool) -> torch.Tensor:
        """Run one micro-batch forward and backward.

        Each micro-batch adds up its gradients over the processes, not only the last one: waiting
        would keep whole gradients in fp32 in every process, which the plan has no memory for.
        Between copies only the last one does, since shares are what waits there.
        """
        self.model.set_requires_all_reduce(last)
        # The sum is divided by the number of processes: hence count / size. Processes that split
        # layers count the same samples, each for itself.
        share = count / self.world.size
        return micro_step(self.runner, batch, share, loss, self.settings, self.scaler)

    def update(self) -> None:
        """Clip by the norm of all shares together, move the parameters, drop the gradients."""
        update(self.model, self.optimizer, self.settings, self.scaler)

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the trained weights, whole, in the first process; nothing in the others.

        Beside adapters the others are left out: they are as they came.
        """
        adapts = self.plan.lora is not None
        options = StateDictOptions(
            full_state_dict=True, cpu_offload=True, ignore_frozen_params=adapts
        )
        return tied(self.model, get_model_state_dict(self.model, options=options))

    def facts(self) -> Iterator[Fact]:
        """Yield what the engine has made of the plan."""
        parameters = [*self.model.parameters()]
        shared = sum(isinstance(one, DTensor) and self.holds(one) for one in parameters)
        groups = [part for part in self.model.modules() if isinstance(part, FSDPModule)]
        wanted = len(blocks(self.model)) + 1
        yield (
            "strategy",
            "fsdp2",
            f"{shared} of {len(parameters)} weights shared, {len(groups)} groups",
            shared == len(parameters) and len(groups) == wanted,
        )
        parts = self.plan.settings.tensor_degree or 1
        degree = self.plan.settings.shard_degree or self.plan.batch.gpus // parts
        where = {one.device for one in parameters}
        yield "shares", self._home, ", ".join(map(str, where)), where == {self._home}
        found = " x ".join(map(str, self.mesh.shape))
        yield "shard_degree", degree, f"mesh of {found}", self.shards == degree
        precision, found = self.plan.settings.precision, computed(groups[-1])
        goal = (AUTOCAST | PURE).get(precision, torch.float32)
        yield "precision", precision, f"blocks compute in {found}", found == goal


def shard(model: nn.Module, plan: Plan, mesh: DeviceMesh) -> nn.Module:
    """Return the model with each block a group that is gathered at once, and the rest another."""
    policy = MixedPrecisionPolicy()
    if (computed := AUTOCAST.get(plan.settings.precision)) is not None:
        # Masters and sums of gradients stay fp32.
        policy = MixedPrecisionPolicy(param_dtype=computed, reduce_dtype=torch.float32)
    # None drops a block's weights after its forward pass, and keeps those outside of blocks.
    kept = None if plan.settings.reshard_after_forward else False
    options: dict[str, Any] = {"mesh": mesh, "mp_policy": policy, "reshard_after_forward": kept}
    if plan.settings.shard_offload:
        options["offload_policy"] = CPUOffloadPolicy(pin_memory=mesh.device_type != "cpu")
    for part in (*blocks(model), model):
        fully_shard(part, **options)
    return model


def fill(model: nn.Module, weights: State, buffers: State, world: World, home: Any) -> None:
    """Give each process its share of the weights that the first one holds; buffers are whole.

    ``home`` is where shares lie.
    """
    model.to_empty(device=home)
    options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)
    set_model_state_dict(model, dict(weights), options=options)
    for name, buffer in model.named_buffers():
        if world.rank == 0:
            buffer.copy_(buffers[name])
        dist.broadcast(buffer, src=0)
    for part in model.modules():
        for name, buffer in part.named_buffers(recurse=False):
            setattr(part, name, buffer.to(world.device))


def computed(group: FSDPModule) -> torch.dtype:
    """Return the type that a group's weights have while it computes."""
    group.unshard()
    try:
        return next(group.parameters()).dtype
    finally:
        group.reshard()
