"""What runs the steps: a DeepSpeed engine, as ds_config.json has it."""

from collections.abc import Iterator

import deepspeed
import torch
from ds_config import read_configuration
from networks import Network, placed
from optimizers import build_optimizer
from plan_file import Plan
from selfcheck import Fact, precision_fact
from step import Batch, Loss, StepSettings, autocast
from world import World


class Engine:
    """The engine around the model and its optimizer."""

    def __init__(self, plan: Plan, settings: StepSettings, network: Network, world: World) -> None:
        self.plan, self.settings, self.world = plan, settings, world
        self.model = model = placed(network.model, plan, settings, world.device)
        self.optimizer = build_optimizer(model, plan)
        config = read_configuration(plan, world)
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if settings.channels_last:
            # initialize sends weights as flat bytes, which this layout cannot be viewed as.
            model.to(memory_format=torch.contiguous_format)
        self.engine, *_ = deepspeed.initialize(
            model=model, optimizer=self.optimizer, model_parameters=trained, config=config
        )
        if settings.channels_last:
            model.to(memory_format=torch.channels_last)
        if plan.settings.compile:
            self.engine.compile()
        self.scaler = self.engine.torch_autocast_z0_gradscaler

    def micro_step(self, batch: Batch, count: float, loss: Loss, *, last: bool) -> torch.Tensor:
        """Run one micro-batch forward and backward; the engine exchanges at the last one."""
        with autocast(self.settings, self.world.device.type):
            # Gradients are averaged over processes and must be summed: hence count / size.
            value = loss(self.engine(**batch.inputs), batch.labels, count / self.world.size)
        self.engine.backward(value, scale_wrt_gas=False)
        self.engine.step()
        return value.detach()

    def update(self) -> None:
        """Nothing: the engine clips and moves the parameters within the last micro-batch."""

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the trained weights."""
        return self.model.state_dict()

    def facts(self) -> Iterator[Fact]:
        """Yield what the engine has made of the plan."""
        wanted, stage = self.plan.settings.strategy, self.engine.zero_optimization_stage()
        yield "strategy", wanted, f"{type(self.engine).__name__}, stage {stage}", stage == 0
        yield precision_fact(self.plan, self.model, self.scaler, self.world.device)
