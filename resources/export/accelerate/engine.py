"""What runs the steps: accelerate, as accelerate.yaml has it."""

import contextlib
from typing import Any

import torch
from accelerate import Accelerator, PartialState
from plan_file import Plan
from step import Batch, Loss, StepSettings
from strict import InputError
from torch import nn
from world import World

PRECISION = {"bf16-mixed": "bf16", "fp16-mixed": "fp16"}


def join(plan: Plan, *, cpu: bool) -> World:
    """Return this process's place, as ``accelerate launch`` made it."""
    state = PartialState(cpu=cpu)
    return World(state.process_index, state.num_processes, state.device)


class Engine:
    """The model as accelerate prepared it, with its optimizer."""

    def __init__(
        self,
        plan: Plan,
        settings: StepSettings,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        world: World,
    ) -> None:
        self.settings, self.optimizer, self.world = settings, optimizer, world
        # Gradients are summed by our own count, so accelerate must not divide them.
        self.accelerator = Accelerator(gradient_accumulation_steps=1)
        self._refuse_another_configuration(plan)
        self.scaler = self.accelerator.scaler
        self.runner, self.prepared = self.accelerator.prepare(model, optimizer)

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

    def _alone(self) -> contextlib.AbstractContextManager[Any]:
        return self.accelerator.no_sync(self.runner)
