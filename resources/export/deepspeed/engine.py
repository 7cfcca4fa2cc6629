"""What runs the steps: a DeepSpeed engine, as ds_config.json has it."""

import json
import os
from pathlib import Path
from typing import Any

import deepspeed
import torch
from plan_file import Plan
from step import Batch, Loss, StepSettings, autocast
from strict import InputError
from torch import nn
from world import World

CONFIG = Path(__file__).parent / "ds_config.json"
SHARED_MEMORY = "deepspeed_shm_comm"
"""Name of the op with which processes on a CPU exchange gradients faster."""
ALONE = {
    "RANK": "0",
    "LOCAL_RANK": "0",
    "WORLD_SIZE": "1",
    "MASTER_ADDR": "127.0.0.1",
    "MASTER_PORT": "29500",
}
"""What a launcher sets; without one, this process is the only one."""


def join(plan: Plan, *, cpu: bool) -> World:
    """Return this process's place; torchrun or deepspeed tell it by environment variables."""
    if cpu:
        os.environ["DS_ACCELERATOR"] = "cpu"
        # Trying it out needs no kernel of DeepSpeed's own, which takes a compiler minutes.
        deepspeed.ops.__compatible_ops__[SHARED_MEMORY] = False
    for name, value in ALONE.items():
        os.environ.setdefault(name, value)
    accelerator = deepspeed.get_accelerator()
    local = int(os.environ["LOCAL_RANK"])
    accelerator.set_device(local)
    deepspeed.init_distributed(accelerator.communication_backend_name(), verbose=False)
    device = torch.device(accelerator.device_name(local) if not cpu else "cpu")
    return World(int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"]), device)


class Engine:
    """The engine around the model and its optimizer."""

    def __init__(
        self,
        plan: Plan,
        settings: StepSettings,
        model: nn.Module,
        optimizer: torch.optim.Optimizer,
        world: World,
    ) -> None:
        self.settings, self.optimizer, self.world = settings, optimizer, world
        config = _configuration(plan, world)
        trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
        if settings.channels_last:
            # initialize sends weights as flat bytes, which this layout cannot be viewed as.
            model.to(memory_format=torch.contiguous_format)
        self.engine, *_ = deepspeed.initialize(
            model=model, optimizer=optimizer, model_parameters=trained, config=config
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


def _configuration(plan: Plan, world: World) -> dict[str, Any]:
    """Return ds_config.json with the accumulation that this number of processes needs.

    Raises:
        InputError: it contradicts plan.json.
    """
    config = json.loads(CONFIG.read_text(encoding="utf-8"))
    batch = plan.batch
    wanted = {
        "train_batch_size": batch.effective,
        "train_micro_batch_size_per_gpu": batch.micro,
        "gradient_clipping": plan.schedule.clip_norm,
    }
    for key, value in wanted.items():
        if config.get(key) != value:
            raise InputError(f"ds_config.json: {key} {config.get(key)}, but plan.json says {value}")
    rounds = batch.effective // (world.size * batch.micro)
    return config | {"gradient_accumulation_steps": rounds}
