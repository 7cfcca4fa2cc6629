"""What runs the steps: plain torch on one device."""

from collections.abc import Iterator

import torch
from networks import Network, placed
from optimizers import build_optimizer
from plan_file import Plan
from selfcheck import Fact, precision_fact
from step import Batch, Loss, StepSettings, make_scaler, micro_step, update
from world import World


class Engine:
    """The model as the steps call it, with its optimizer."""

    def __init__(self, plan: Plan, settings: StepSettings, network: Network, world: World) -> None:
        self.plan, self.settings, self.world = plan, settings, world
        self.model = placed(network.model, plan, settings, world.device)
        self.optimizer = build_optimizer(self.model, plan)
        self.scaler = make_scaler(settings, world.device.type)
        self.runner = torch.compile(self.model) if plan.settings.compile else self.model

    def micro_step(self, batch: Batch, count: float, loss: Loss, *, last: bool) -> torch.Tensor:
        """Run one micro-batch forward and backward."""
        return micro_step(self.runner, batch, count, loss, self.settings, self.scaler)

    def update(self) -> None:
        """Clip, move the parameters, drop the gradients."""
        update(self.model, self.optimizer, self.settings, self.scaler)

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the trained weights."""
        return self.model.state_dict()

    def facts(self) -> Iterator[Fact]:
        """Yield what the engine has made of the plan."""
        yield precision_fact(self.plan, self.model, self.scaler, self.world.device)
