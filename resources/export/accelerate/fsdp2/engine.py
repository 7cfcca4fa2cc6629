"""What runs the steps: accelerate, as accelerate.yaml has it, over shares of the weights."""

from collections.abc import Iterator

from accelerate import Accelerator
from making import Outline
from plan_file import Plan
from selfcheck import Fact
from shares import Shares
from step import StepSettings
from strict import InputError
from torch.distributed.fsdp import CPUOffloadPolicy
from world import World


class Engine(Shares):
    """Shares as the plan counts them, which accelerate takes as they are.

    Its own wrapping would reduce gradients in 16 bits, and take what a block is by another rule.
    """

    def __init__(self, plan: Plan, settings: StepSettings, network: Outline, world: World) -> None:
        self.accelerator = Accelerator(gradient_accumulation_steps=1)
        # On a CPU, or without its file, accelerate trains whole models in silence.
        name, *_ = self._active()
        if name != "FSDP2":
            raise InputError(
                f"accelerate runs {name}, the plan says fsdp2: start it on GPUs with accelerate "
                "launch --config_file accelerate.yaml train.py"
            )
        super().__init__(plan, settings, network, world)
        self.runner, _ = self.accelerator.prepare(self.model, self.optimizer)

    def facts(self) -> Iterator[Fact]:
        """Yield what accelerate has made of its file, and what the engine has of the plan."""
        settings = self.plan.settings
        wanted = ("FSDP2", settings.reshard_after_forward, settings.shard_offload)
        name, reshards, offloads = found = self._active()
        active = f"{name}, reshard_after_forward {reshards}, offload {offloads}"
        asked = f"FSDP2, reshard {wanted[1]}, offload {wanted[2]}"
        yield "accelerate", asked, active, found == wanted
        if self.mesh.ndim > 1:
            shape, mesh = [*self.mesh.shape], self.accelerator.state.device_mesh
            made = [*mesh.shape] if mesh is not None else None
            yield "accelerate", f"mesh of {shape}", f"mesh of {made}", made == shape
        yield from super().facts()

    def _active(self) -> tuple[str, bool, bool]:
        """Return how accelerate divides a model, and if it gathers blocks again and offloads."""
        if not self.accelerator.is_fsdp2:
            return self.accelerator.distributed_type.value, False, False
        plugin = self.accelerator.state.fsdp_plugin
        offloads = isinstance(plugin.cpu_offload, CPUOffloadPolicy)
        return "FSDP2", bool(plugin.reshard_after_forward), offloads
