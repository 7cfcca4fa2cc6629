"""What runs the steps: a DeepSpeed engine whose processes share what ds_config.json says."""

import dataclasses
from collections.abc import Iterator

import deepspeed
import torch
from ds_config import read_configuration
from networks import Network
from optimizers import build_optimizer
from parting import part, whole_weights
from plan_file import Plan
from selfcheck import Fact
from step import PURE, Batch, Loss, StepSettings
from strict import InputError
from world import World

COMPUTED = {"bf16-mixed": "bf16", "fp16-mixed": "fp16"}
"""Precision of the plan -> of the step: weights are in 16 bits, and shared masters in fp32."""


class Engine:
    """The engine around the model and its optimizer."""

    scaler = None
    """DeepSpeed scales the loss of fp16 itself."""

    def __init__(self, plan: Plan, settings: StepSettings, network: Network, world: World) -> None:
        if world.size == 1:
            raise InputError(
                f"settings.strategy {plan.settings.strategy} shares state between "
                f"{plan.batch.gpus} processes, and one was started: start train.py with torchrun, "
                "as its first lines say"
            )
        self.plan, self.world = plan, world
        precision = COMPUTED.get(settings.precision, settings.precision)
        self.settings = dataclasses.replace(settings, precision=precision)
        config = read_configuration(plan, world)
        self.model = part(network, plan, self.settings, world, config)
        self.optimizer = build_optimizer(self.model, plan)
        trained = [one for one in self.model.parameters() if one.requires_grad]
        self.engine, *_ = deepspeed.initialize(
            model=self.model, optimizer=self.optimizer, model_parameters=trained, config=config
        )
        if plan.settings.compile:
            self.engine.compile()

    def micro_step(self, batch: Batch, count: float, loss: Loss, *, last: bool) -> torch.Tensor:
        """Run one micro-batch forward and backward; the engine exchanges at the last one."""
        # Gradients are averaged over processes and must be summed: hence count / size.
        value = loss(self.engine(**batch.inputs), batch.labels, count / self.world.size)
        self.engine.backward(value, scale_wrt_gas=False)
        self.engine.step()
        return value.detach()

    def update(self) -> None:
        """Nothing: the engine clips and moves the parameters within the last micro-batch."""

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the trained weights, in the type of the step."""
        return whole_weights(self.model, self.world)

    def facts(self) -> Iterator[Fact]:
        """Yield what DeepSpeed has made of its file."""
        wanted, stage = self.plan.settings.strategy, self.engine.zero_optimization_stage()
        owner, bucket = type(self.engine.optimizer).__name__, self.engine.zero_reduce_bucket_size()
        active = f"stage {stage}, {owner}, buckets of {bucket:,}"
        yield "strategy", wanted, active, wanted == f"zero{stage}"
        parameters = [*self.model.parameters()]
        parted = sum(hasattr(one, "ds_tensor") for one in parameters)
        goal = len(parameters) if wanted == "zero3" else 0
        yield "weights", wanted, f"{parted} of {len(parameters)} in parts", parted == goal
        precision, found = self.plan.settings.precision, parameters[0].dtype
        expected = PURE.get(self.settings.precision, torch.float32)
        yield "precision", precision, f"weights in {found}", found == expected
