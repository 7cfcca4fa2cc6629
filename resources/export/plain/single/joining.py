"""Where this process trains."""

import os

import torch
from plan_file import Plan
from strict import InputError
from world import World


def join(plan: Plan, *, cpu: bool) -> World:
    """Return the device to train on.

    Raises:
        InputError: several processes were started, which would all do the same.
    """
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        raise InputError(
            "this plan trains on one GPU: start it with python train.py, or export it again with "
            "settings.strategy ddp"
        )
    found = None if cpu else torch.accelerator.current_accelerator(check_available=True)
    return World(torch.device("cpu") if found is None else torch.device(found.type, 0))
