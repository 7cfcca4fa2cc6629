"""Runs a program with accelerate, which has FSDP on GPUs alone, and finds CPUs in their place.

``python cpus_as_gpus.py train.py ARGUMENTS``; everything else is accelerate's own.
"""

import os
import runpy
import sys
from typing import Any

import torch
from accelerate.state import DistributedType, PartialState


def backend(*_: Any, **__: Any) -> tuple[str, DistributedType]:
    return "gloo", DistributedType.MULTI_GPU


def device(state: Any) -> None:
    state.device = torch.device("cpu")


# Memory is pinned for a GPU alone.
torch.Tensor.pin_memory = lambda tensor, *_: tensor  # type: ignore[method-assign]
torch.Tensor.is_pinned = lambda *_: True  # type: ignore[method-assign]
PartialState._prepare_backend = backend
PartialState.set_device = device  # type: ignore[method-assign]
sys.argv = sys.argv[1:]
sys.path.insert(0, os.getcwd())
runpy.run_path(sys.argv[0], run_name="__main__")
