"""One GPU's part of a model whose layers are split, with the collectives at their edges.

It allocates what torch's ``ColwiseParallel`` and ``RowwiseParallel`` leave of a model on each GPU
(torch 2.13, ``distributed/tensor/parallel/style.py``): a part of each split weight, local tensors
between them, a new tensor of each sum. ``tests/accuracy/test_sharded.py`` compares both.
"""

from typing import Any

import torch
from refusal import Refusal
from splits import SplitError, side, splits
from torch import nn

_library = torch.library.Library("trainwright", "FRAGMENT")
_library.define("all_reduce(Tensor part) -> Tensor")
_library.define("all_gather(Tensor part, int degree) -> Tensor")


@torch.library.register_fake("trainwright::all_reduce", lib=_library)
def _reduced(part: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(part, memory_format=torch.contiguous_format)


@torch.library.register_fake("trainwright::all_gather", lib=_library)
def _gathered(part: torch.Tensor, degree: int) -> torch.Tensor:
    return part.new_empty((degree * part.shape[0], *part.shape[1:]))


class _Entering(torch.autograd.Function):
    """All GPUs have the input; each makes a part of its gradient."""

    @staticmethod
    def forward(ctx: Any, given: torch.Tensor) -> torch.Tensor:
        return given.view_as(given)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return torch.ops.trainwright.all_reduce(gradient)


class _Summed(torch.autograd.Function):
    """Each GPU has a part of the sum; all need the sum."""

    @staticmethod
    def forward(ctx: Any, part: torch.Tensor) -> Any:
        return torch.ops.trainwright.all_reduce(part)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return gradient


class _Gathered(torch.autograd.Function):
    """Each GPU has some of the columns; all need them side by side."""

    @staticmethod
    def forward(ctx: Any, part: torch.Tensor, degree: int) -> torch.Tensor:
        ctx.degree = degree
        rows = torch.ops.trainwright.all_gather(part, degree)
        return torch.cat(rows.chunk(degree), dim=-1)

    @staticmethod
    def backward(ctx: Any, gradient: torch.Tensor) -> Any:
        return gradient.chunk(ctx.degree, dim=-1)[0].clone(), None


def split(model: nn.Module, degree: int) -> None:
    """Leave in the model what the first of ``degree`` GPUs holds of it.

    Raises:
        Refusal: it has no plan for that, or one that is not known here.
    """
    try:
        found = splits(model, degree)
    except SplitError as error:
        raise Refusal(f"worker.tensor-{error.why}", **error.values) from error
    for name, how in found.items():
        module = model.get_submodule(name)
        if how == "heads":
            continue
        _narrow(module, side(how, module), degree)
        if isinstance(module, nn.Linear) and how != "inputs":
            module.register_forward_pre_hook(lambda _, given: (_Entering.apply(given[0]),))
        if how == "inputs":
            module.register_forward_hook(lambda _, given, part: _Summed.apply(part))
        elif how == "gathered":
            module.register_forward_hook(lambda _, given, part: _Gathered.apply(part, degree))


def _narrow(module: nn.Module, dimension: int, degree: int) -> None:
    """Keep a part of the weight, and of the bias where it has an element for each output."""
    for name, parameter in list(module.named_parameters(recurse=False)):
        if dimension < parameter.ndim:
            part = parameter.chunk(degree, dimension)[0].detach().clone()
            setattr(module, name, nn.Parameter(part, parameter.requires_grad))
