"""What runs the steps: plain torch, each process with a whole model of its own."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from networks import Network, placed
from optimizers import build_optimizer
from plan_file import Plan
from selfcheck import Fact, precision_fact
from step import Batch, Loss, StepSettings, make_scaler, micro_step, update
from torch import nn
from world import World


class Engine:
    """The model as the steps call it, with its optimizer."""

    def __init__(self, plan: Plan, settings: StepSettings, network: Network, world: World) -> None:
        self.plan, self.settings, self.world = plan, settings, world
        self.model = placed(network.model, plan, settings, world.device)
        self.optimizer = build_optimizer(self.model, plan)
        self.scaler = make_scaler(settings, world.device.type)
        self.wrapped = self.model
        if world.size > 1:
            ids = None if world.device.type == "cpu" else [world.device.index]
            self.wrapped = nn.parallel.DistributedDataParallel(self.model, device_ids=ids)
        self.runner = torch.compile(self.wrapped) if plan.settings.compile else self.wrapped

    def micro_step(self, batch: Batch, count: float, loss: Loss, *, last: bool) -> torch.Tensor:
        """Run one micro-batch forward and backward; the last one exchanges the gradients."""
        with contextlib.nullcontext() if last else self._alone():
            # DDP averages over processes what must be summed: hence count / size.
            share = count / self.world.size
            return micro_step(self.runner, batch, share, loss, self.settings, self.scaler)

    def update(self) -> None:
        """Clip, move the parameters, drop the gradients."""
        update(self.model, self.optimizer, self.settings, self.scaler)

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the trained weights."""
        return self.model.state_dict()

    def facts(self) -> Iterator[Fact]:
        """Yield what the engine has made of the plan."""
        wrapped = type(self.wrapped).__name__
        yield "strategy", "ddp", wrapped, wrapped == "DistributedDataParallel"
        yield precision_fact(self.plan, self.model, self.scaler, self.world.device)

    def _alone(self) -> contextlib.AbstractContextManager[Any]:
        return self.wrapped.no_sync() if self.world.size > 1 else contextlib.nullcontext()
