"""The layers of a model that multiply with a weight: finding, measuring and replacing them."""

from typing import Any

from torch import nn

KINDS = ("Conv1D", "Nf4Linear", "Int8Linear")
"""Classes that are no ``nn.Linear``, and compute what one does."""


def linears(model: nn.Module) -> list[tuple[str, nn.Module]]:
    """Return the layers that compute a matrix product with their weight, and return that alone."""
    return [(name, module) for name, module in model.named_modules() if _multiplies(module)]


def _multiplies(module: nn.Module) -> bool:
    """Return whether a layer is linear; routers that subclass it return what they chose too."""
    name = type(module).__name__
    return name in KINDS or (isinstance(module, nn.Linear) and not name.endswith("Router"))


def features(module: nn.Module) -> tuple[int, int]:
    """Return (inputs, outputs) of a linear layer; GPT-2's ``Conv1D`` stores them swapped."""
    if hasattr(module, "shape"):
        outputs, inputs = module.shape
        return inputs, outputs
    weight: Any = module.weight
    first, second = weight.shape
    return (first, second) if swapped(module) else (second, first)


def swapped(module: nn.Module) -> bool:
    """Return whether the layer stores its weight as (inputs, outputs)."""
    return type(module).__name__ == "Conv1D"


def put(model: nn.Module, name: str, module: nn.Module) -> None:
    """Put a module in the place of that name."""
    parent, _, child = name.rpartition(".")
    setattr(model.get_submodule(parent), child, module)
