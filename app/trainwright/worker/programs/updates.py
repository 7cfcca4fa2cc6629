"""The optimizers of the training step, by name: torch's own, alone or several as one.

A part of ``step.py``, which hands its names on. Plain torch and the standard library only.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import nn

Make = Callable[[list[nn.Parameter]], torch.optim.Optimizer]
"""Parameters -> an optimizer over them."""


def make_optimizer(
    model: nn.Module, settings: Any, make: Make | None = None
) -> torch.optim.Optimizer:
    """Return the optimizer over the trainable parameters; ``make`` builds those of other libraries.

    Raises:
        ValueError: the name is not known.
    """
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    hidden = {id(matrix) for matrix in hidden_matrices(model)}
    make = make or partial(_optimizer, settings=settings, hidden=hidden)
    if settings.in_backward:
        return InBackward([make([parameter]) for parameter in trainable])
    return make(trainable)


def _optimizer(
    parameters: list[nn.Parameter], settings: Any, hidden: set[int]
) -> torch.optim.Optimizer:
    rate = settings.learning_rate
    match settings.optimizer:
        case "adamw":
            return torch.optim.AdamW(parameters, lr=rate, **_run(settings))
        case "sgd":
            momentum = settings.momentum
            return torch.optim.SGD(parameters, lr=rate, momentum=momentum, **_run(settings))
        case "adafactor":
            return torch.optim.Adafactor(parameters, lr=rate)
        case "muon":
            return _muon(parameters, rate, hidden)
        case name:
            raise ValueError(f"unknown optimizer {name}")


def _run(settings: Any) -> dict[str, bool]:
    """Return how torch is asked to run its AdamW and SGD."""
    usual = "fused" if settings.optimizer == "adamw" else "foreach"
    chosen = settings.implementation or usual
    return {"fused": chosen == "fused", "foreach": chosen == "foreach"}


def _muon(parameters: list[nn.Parameter], rate: float, hidden: set[int]) -> torch.optim.Optimizer:
    """Return Muon for the matrices of hidden layers and AdamW for all the rest, as one."""
    matrices = [parameter for parameter in parameters if id(parameter) in hidden]
    rest = [parameter for parameter in parameters if id(parameter) not in hidden]
    parts: list[torch.optim.Optimizer] = []
    if matrices:
        # Scaled so that its steps are as large as AdamW's: one learning rate serves both.
        parts.append(torch.optim.Muon(matrices, lr=rate, adjust_lr_fn="match_rms_adamw"))
    if rest:
        parts.append(torch.optim.AdamW(rest, lr=rate, fused=True))
    return Muon(parts)


def hidden_matrices(model: nn.Module) -> list[nn.Parameter]:
    """Return what Muon moves: trainable matrices but embeddings and the output head.

    As the documentation of ``torch.optim.Muon`` recommends; it takes no other dimensions.
    """
    ends = [module for module in model.modules() if isinstance(module, nn.Embedding)]
    for name in ("get_output_embeddings", "get_classifier"):
        head = getattr(model, name, lambda: None)()
        ends += [head] if isinstance(head, nn.Module) else []
    left_out = {id(parameter) for module in ends for parameter in module.parameters()}
    return [
        parameter
        for parameter in model.parameters()
        if parameter.requires_grad and parameter.dim() == 2 and id(parameter) not in left_out
    ]


class Parts(torch.optim.Optimizer):
    """Several optimizers as one."""

    def __init__(self, parts: list[torch.optim.Optimizer]) -> None:
        self.parts = parts
        groups = [group for part in parts for group in part.param_groups]
        super().__init__([parameter for group in groups for parameter in group["params"]], {})
        self.param_groups = groups

    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        """Move all parameters."""
        for part in self.parts:
            part.step()

    def state_dict(self) -> dict[str, Any]:
        """Return the states of all."""
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over the states of all."""
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self.param_groups = [group for part in self.parts for group in part.param_groups]


class Muon(Parts):
    """Muon for hidden matrices, AdamW for the rest."""


class InBackward(Parts):
    """One optimizer a parameter, which moves it as soon as backward has its gradient."""

    def __init__(self, parts: list[torch.optim.Optimizer]) -> None:
        super().__init__(parts)
        self.hooks = [self._follow(part) for part in parts]

    def _follow(self, part: torch.optim.Optimizer) -> Any:
        def move(_parameter: torch.Tensor) -> None:
            part.step()
            part.zero_grad(set_to_none=True)

        (parameter,) = part.param_groups[0]["params"]
        return parameter.register_post_accumulate_grad_hook(move)

    def step(self, closure: Any = None) -> None:
        """Do nothing more: backward has moved everything."""


def whole(optimizer: torch.optim.Optimizer) -> list[torch.optim.Optimizer]:
    """Return the optimizers that one is made of: itself, where it is not of parts."""
    if not isinstance(optimizer, Parts):
        return [optimizer]
    return [one for part in optimizer.parts for one in whole(part)]
