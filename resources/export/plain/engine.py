"""What runs the steps: plain torch, and DistributedDataParallel where several processes train."""

import contextlib
import os
from typing import Any

import torch
import torch.distributed as dist
from plan_file import Plan
from step import Batch, Loss, StepSettings, make_scaler, micro_step, update
from torch import nn
from world import World


def join(plan: Plan, *, cpu: bool) -> World:
    """Return this process's place; torchrun tells it by environment variables."""
    rank, size, local = (
        int(os.environ.get(name, default))
        for name, default in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0))
    )
    found = None if cpu else torch.accelerator.current_accelerator(check_available=True)
    device = torch.device("cpu") if found is None else torch.device(found.type, local)
    if device.type != "cpu":
        torch.accelerator.set_device_index(local)
    if size > 1:
        dist.init_process_group({"cuda": "nccl", "xpu": "xccl"}.get(device.type, "gloo"))
    return World(rank, size, device)


class Engine:
    """The model as the steps call it, with its optimizer."""

    def __init__(
        self,
        plan: Plan,
        settings: StepSettings,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        world: World,
    ) -> None:
        self.settings, self.optimizer, self.world = settings, optimizer, world
        self.scaler = make_scaler(settings, world.device.type)
        if world.size > 1:
            ids = None if world.device.type == "cpu" else [world.device.index]
            model = nn.parallel.DistributedDataParallel(model, device_ids=ids)
        self.runner = torch.compile(model) if plan.settings.compile else model

    def micro_step(self, batch: Batch, count: float, loss: Loss, *, last: bool) -> torch.Tensor:
        """Run one micro-batch forward and backward; the last one exchanges the gradients."""
        with contextlib.nullcontext() if last else self._alone():
            # DDP averages over processes what must be summed: hence count / size.
            share = count / self.world.size
            return micro_step(self.runner, batch, share, loss, self.settings, self.scaler)

    def update(self) -> None:
        """Clip, move the parameters, drop the gradients."""
        update(self.runner, self.optimizer, self.settings, self.scaler)

    def _alone(self) -> contextlib.AbstractContextManager[Any]:
        return self.runner.no_sync() if self.world.size > 1 else contextlib.nullcontext()
