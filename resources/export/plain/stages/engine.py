"""What runs the steps: torch's pipeline of stages, a forward and a backward pass in turn (1F1B).

Each process has some of the layers. Those with the same number in other copies of the pipeline add
up their gradients with it after the last backward pass of a step.
"""

import dataclasses
from collections.abc import Iterator

import torch
import torch.distributed as dist
from networks import Network, placed
from optimizers import build_optimizer
from plan_file import Plan
from selfcheck import Fact, precision_fact
from stages import Stage, keep, padded, whole_name
from step import IGNORED, Batch, Loss, StepSettings, blocks, update
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.pipelining import PipelineStage, Schedule1F1B
from world import World


class Engine:
    """The stage of this process, with its optimizer."""

    def __init__(self, plan: Plan, settings: StepSettings, network: Network, world: World) -> None:
        self.plan, self.settings, self.world = plan, settings, world
        self.layers = len(blocks(network.model))
        self.number = world.rank // world.groups
        self.first, self.last = self.number == 0, self.number == world.parts - 1
        self.begin = keep(network.model, self.number, world.parts)
        self.model = placed(network.model, plan, settings, world.device)
        self.optimizer = build_optimizer(self.model, plan)
        self.scaler = None
        self.mesh = init_device_mesh(
            world.device.type, (world.parts, world.groups), mesh_dim_names=("stage", "copy")
        )
        self.stage = Stage(self.model, settings, network.loss)
        self.waiting: list[Batch] = []
        self.schedule = Schedule1F1B(
            PipelineStage(
                self.stage,
                self.number,
                world.parts,
                world.device,
                group=self.mesh["stage"].get_group(),
            ),
            plan.batch.effective // (world.groups * plan.batch.micro),
            # The last stage returns the loss, which is divided by the count of the whole step.
            loss_fn=lambda loss, _: loss,
            scale_grads=False,
        )

    def micro_step(self, batch: Batch, count: float, loss: Loss, *, last: bool) -> torch.Tensor:
        """Keep the micro-batch; with the last one, run them all through the pipeline."""
        self.waiting.append(batch)
        nothing = torch.zeros((), device=self.world.device)
        if not last:
            return nothing
        batches, self.waiting = self.waiting, []
        # All stages of a pipeline have counted the same samples.
        self.stage.count = count / self.world.parts
        given, wanted, losses = (), {}, []
        if self.first:
            given = (padded([one.inputs["input_ids"] for one in batches], self.plan, 0),)
        if self.last:
            labels = padded([one.labels for one in batches], self.plan, IGNORED)
            wanted = {"labels": labels, "target": labels[:, 0], "losses": losses}
        del batches, batch
        # Without the argument the last stage would keep what it returns of all micro-batches.
        self.schedule.step(*given, **wanted, return_outputs=False)
        return self.world.size * torch.stack(losses).sum() if self.last else nothing

    def update(self) -> None:
        """Add up the copies' gradients, clip by the norm of all stages, move the parameters."""
        gradients = [one.grad for one in self.model.parameters() if one.grad is not None]
        if self.world.groups > 1:
            for gradient in gradients:
                dist.all_reduce(gradient, group=self.mesh["copy"].get_group())
        if self.settings.clip:
            square = torch.nn.utils.get_total_norm(gradients) ** 2
            dist.all_reduce(square, group=self.mesh["stage"].get_group())
            torch.nn.utils.clip_grads_with_norm_(
                self.model.parameters(), self.settings.clip, square.sqrt()
            )
        update(self.model, self.optimizer, dataclasses.replace(self.settings, clip=0.0))

    def weights(self) -> dict[str, torch.Tensor]:
        """Return the trained weights of all stages in the first process; nothing in the others."""
        own = {}
        if self.world.group == 0:
            state = self.model.state_dict().items()
            own = {whole_name(name, self.begin): value.cpu() for name, value in state}
        parts = [own] * self.world.size if self.world.rank == 0 else None
        dist.gather_object(own, parts)
        return {name: value for part in parts or () for name, value in part.items()}

    def facts(self) -> Iterator[Fact]:
        """Yield what the engine has made of the plan."""
        own = (self.number, len(blocks(self.model))) if self.world.group == 0 else None
        stages = [one for one in self.world.gathered(own) if one is not None]
        there = sum(layers for _, layers in stages)
        kind = type(self.schedule).__name__
        yield (
            "strategy",
            "pp",
            f"{kind}, {there} of {self.layers} layers in {len(stages)} stages",
            kind == "Schedule1F1B" and there == self.layers and len(stages) == self.world.parts,
        )
        wanted = self.plan.settings.pipeline_stages
        yield "pipeline_stages", wanted, self.world.parts, self.world.parts == wanted
        yield precision_fact(self.plan, self.model, self.scaler, self.world.device)
