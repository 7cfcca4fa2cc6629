"""Tensor parallelism: layers split over processes by torch's own styles.

Every weight becomes a DTensor, those that are not split too: torch's foreach optimizers and the
norm of all gradients take no mixture of DTensors and plain tensors.
"""

from typing import Any

import torch
from splits import SplitError, splits
from strict import InputError
from torch import nn
from torch.distributed.device_mesh import DeviceMesh
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_module
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module


def split(model: nn.Module, mesh: DeviceMesh) -> list[str]:
    """Split the layers of the model's own plan, and return their names.

    Raises:
        InputError: it has no plan, or one that these files do not follow.
    """
    try:
        found = splits(model, mesh.size())
    except SplitError as error:
        raise InputError(f"settings.tensor_degree: the model cannot be split: {error}") from error
    names = shared_names(model)
    for name, how in found.items():
        if how != "heads":
            parallelize_module(model.get_submodule(name), mesh, style(how), src_data_rank=None)
    for name, module in model.named_modules():
        if any(not isinstance(one, DTensor) for one in module.parameters(recurse=False)):
            place = Shard(2) if found.get(name) == "heads" else Replicate()
            on_all(module, mesh, place)
    tie(model, names)
    return [name for name, how in found.items() if how != "heads"]


def style(how: str) -> ColwiseParallel | RowwiseParallel:
    """Return torch's style for a way of splitting."""
    if how == "inputs":
        return RowwiseParallel()
    return ColwiseParallel(output_layouts=Replicate() if how == "gathered" else Shard(-1))


def on_all(module: nn.Module, mesh: DeviceMesh, place: Any) -> None:
    """Keep the module's weights whole in each process; ``place`` is what its input is of the whole.

    Where that is a part of the heads, torch adds up the parts of the weight's gradient.
    """

    def entering(_: nn.Module, given: Any, mesh: DeviceMesh) -> Any:
        return DTensor.from_local(given[0], mesh, [place], run_check=False)

    def leaving(_: nn.Module, result: Any, mesh: DeviceMesh) -> torch.Tensor:
        return result.to_local()

    distribute_module(module, mesh, None, entering, leaving)


def shared_names(model: nn.Module) -> list[list[str]]:
    """Return the names of each weight that has several."""
    names: dict[int, list[str]] = {}
    for name, parameter in model.named_parameters(remove_duplicate=False):
        names.setdefault(id(parameter), []).append(name)
    return [each for each in names.values() if len(each) > 1]


def tie(model: nn.Module, names: list[list[str]]) -> None:
    """Make weights one again that were one before."""
    for first, *others in names:
        for name in others:
            holder, _, own = name.rpartition(".")
            setattr(model.get_submodule(holder), own, model.get_parameter(first))
