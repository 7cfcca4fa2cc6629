"""How this process finds the others."""

import os

import deepspeed
import torch
from plan_file import Plan
from world import World

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


def join(_plan: Plan, *, cpu: bool) -> World:
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
