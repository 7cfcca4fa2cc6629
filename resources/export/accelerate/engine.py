"""What runs the steps: accelerate, as accelerate.yaml has it."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from accelerate import Accelerator
from networks import Network, placed
from optimizers import build_optimizer
from plan_file import Plan
from selfcheck import Fact, precision_fact
from step import Batch, Loss, StepSettings
from strict import InputError
from world import World

PRECISION = {"bf16-mixed": "bf16", "fp16-mixed": "fp16"}


class Engine:
    """The model as accelerate prepared it, with its optimizer."""

    def __init__(self, plan: Plan, settings: StepSettings, network: Network, world: World) -> None:
        self.plan, self.settings, self.world = plan, settings, world
        self.model = placed(network.model, plan, settings, world.device)
        self.optimizer = build_optimizer(self.model, plan)
        # Gradients are summed by our own count, so accelerate must not divide them.
        self.accelerator = Accelerator(gradient_accumulation_steps=1)
        self._refuse_another_configuration(plan)
        self.scaler = self.accelerator.scaler
        self.runner, self.prepared = self.accelerator.prepare(self.model, self.optimizer)

    def _refuse_another_configuration(self, plan: Plan) -> None:
        """Started without its file, accelerate falls back to its own defaults in silence."""
        state = self.accelerator.state
        wanted = {
            "mixed_precision": PRECISION.get(plan.settings.precision, "no"),
            "dynamo_backend": "INDUCTOR" if plan.settings.compile else "NO",
        }
        backend = state.dynamo_plugin.backend
        found = {"mixed_precision": state.mixed_precision, "dynamo_backend": backend.name}
        for key, value in wanted.items():
            if found[key] != value:
                raise InputError(
                    f"accelerate runs with {key} {found[key]}, the plan says {value}: "
                    "start it with accelerate launch --config_file accelerate.yaml train.py"
                )

    def micro_step(self, batch: Batch, count: float, loss: Loss, *, last: bool) -> torch.Tensor:
        """Run one micro-batch forward and backward; the last one exchanges the gradients."""
        with contextlib.nullcontext() if last else self._alone():
            with self.accelerator.autocast():
                # Gradients are averaged over processes and must be summed: hence count / size.
                value = loss(self.runner(**batch.inputs), batch.labels, count / self.world.size)
            self.accelerator.backward(value)
        return value.detach()

    def update(self) -> None:
        """Clip, move the parameters, drop the gradients."""
        if self.settings.clip:
            self.accelerator.clip_grad_norm_(self.runner.parameters(), self.settings.clip)
        self.prepared.step()
        self.prepared.zero_grad(set_to_none=True)

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the trained weights."""
        return self.model.state_dict()

    def facts(self) -> Iterator[Fact]:
        """Yield what the engine has made of the plan."""
        yield precision_fact(self.plan, self.model, self.scaler, self.world.device)

    def _alone(self) -> contextlib.AbstractContextManager[Any]:
        return self.accelerator.no_sync(self.runner)
