"""The optimizer of the plan: those of step.py, and those of other libraries."""

import step
import torch
from plan_file import Plan
from strict import InputError
from torch import nn


def build_optimizer(model: nn.Module, plan: Plan) -> torch.optim.Optimizer:
    """Return the optimizer over the trainable parameters.

    Raises:
        InputError: it needs a library that is not installed.
    """
    name, schedule = plan.settings.optimizer, plan.schedule
    if name in ("adamw", "sgd", "adafactor"):
        settings = step.StepSettings(optimizer=name, learning_rate=schedule.learning_rate)
        optimizer = step.make_optimizer(model.parameters(), settings)
        for group in optimizer.param_groups:
            group["weight_decay"] = schedule.weight_decay
        return optimizer
    trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if name == "muon":
        return Muon(model, schedule.learning_rate, schedule.weight_decay)
    try:
        import bitsandbytes.optim as bnb
    except ImportError as error:
        raise InputError(f"{name} needs bitsandbytes: pip install bitsandbytes") from error
    kinds = {
        "adamw-8bit": bnb.AdamW8bit,
        "paged-adamw-8bit": bnb.PagedAdamW8bit,
        "lion": bnb.Lion,
    }
    return kinds[name](trainable, lr=schedule.learning_rate, weight_decay=schedule.weight_decay)


class Muon(torch.optim.Optimizer):
    """Muon for the matrices of hidden layers, AdamW for all the rest, as one optimizer."""

    def __init__(self, model: nn.Module, rate: float, decay: float) -> None:
        ends = {
            id(parameter)
            for module in model.modules()
            if isinstance(module, nn.Embedding)
            for parameter in module.parameters()
        }
        head = getattr(model, "get_output_embeddings", lambda: None)()
        ends |= {id(parameter) for parameter in head.parameters()} if head is not None else set()
        trainable = [parameter for parameter in model.parameters() if parameter.requires_grad]
        hidden = [p for p in trainable if p.ndim == 2 and id(p) not in ends]
        rest = [p for p in trainable if p.ndim != 2 or id(p) in ends]
        # Scaled so that its steps are as large as AdamW's: one learning rate serves both.
        self.parts = [
            torch.optim.Muon(hidden, lr=rate, weight_decay=decay, adjust_lr_fn="match_rms_adamw"),
            torch.optim.AdamW(rest, lr=rate, weight_decay=decay, fused=True),
        ]
        super().__init__(trainable, {})
        self.param_groups = [group for part in self.parts for group in part.param_groups]

    def step(self, closure=None):
        """Move all parameters."""
        for part in self.parts:
            part.step()

    def state_dict(self):
        """Return the states of both."""
        return {"parts": [part.state_dict() for part in self.parts]}

    def load_state_dict(self, state_dict):
        """Take over the states of both."""
        for part, state in zip(self.parts, state_dict["parts"], strict=True):
            part.load_state_dict(state)
        self.param_groups = [group for part in self.parts for group in part.param_groups]
