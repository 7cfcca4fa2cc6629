"""How this process finds the others."""

import os

import torch
import torch.distributed as dist
from plan_file import Plan
from strict import InputError
from world import World


def join(plan: Plan, *, cpu: bool) -> World:
    """Return this process's place; torchrun tells it by environment variables.

    Raises:
        InputError: it is alone, and the plan shares weights or layers between several.
    """
    rank, size, local = (
        int(os.environ.get(name, default))
        for name, default in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0))
    )
    if size == 1 and plan.settings.strategy in ("fsdp2", "pp"):
        shared = {"fsdp2": "weights", "pp": "layers"}[plan.settings.strategy]
        raise InputError(
            f"settings.strategy {plan.settings.strategy} shares the {shared} between "
            f"{plan.batch.gpus} processes, and one was started: start train.py with torchrun, as "
            "its first lines say"
        )
    found = None if cpu else torch.accelerator.current_accelerator(check_available=True)
    device = torch.device("cpu") if found is None else torch.device(found.type, local)
    if device.type != "cpu":
        torch.accelerator.set_device_index(local)
    if size > 1:
        backend = {"cuda": "nccl", "xpu": "xccl"}.get(device.type, "gloo")
        if plan.settings.shard_offload and device.type != "cpu":
            backend = f"{device.type}:{backend},cpu:gloo"  # norms are added up where the shares are
        dist.init_process_group(backend)
    stages = plan.settings.pipeline_stages
    key, parts = "pipeline_stages", stages
    if stages is None:
        key, parts = "tensor_degree", plan.settings.tensor_degree or 1
    if size % parts:
        raise InputError(f"settings.{key}: {parts} does not divide {size} processes")
    return World(rank, size, device, parts, apart=stages is not None)
