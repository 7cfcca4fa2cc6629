"""A model's layers in stages: each process has some of them, and hands on what they make."""

from typing import Any

import torch
from plan_file import Plan
from step import Loss, StepSettings, autocast
from strict import InputError
from torch import nn


def cut(layers: int, count: int, head: int) -> list[int]:
    """Return the first layer of each stage, and the layers of all.

    The head works as long as ``head`` layers, so that the last stage has so many less than the
    others. What is left over goes to the stages before it.
    """
    last = min(max((layers + head) // count - head, 1), layers - count + 1)
    each, more = divmod(layers - last, count - 1)
    sizes = [each + (n >= count - 1 - more) for n in range(count - 1)]
    return [*(sum(sizes[:n]) for n in range(count)), layers]


def keep(model: Any, number: int, count: int) -> int:
    """Leave a stage's layers in the model, and return the number of the first.

    The first stage has the table of tokens too, the last one norm and head.

    Raises:
        InputError: the model is of another kind, or has too few layers.
    """
    inner = getattr(model, "model", None)
    if not all(hasattr(inner, name) for name in ("layers", "embed_tokens", "norm")):
        raise InputError(f"settings.strategy pp: {type(model).__name__} is not cut into stages")
    if model.get_output_embeddings().weight is model.get_input_embeddings().weight:
        raise InputError("settings.strategy pp: the head is the table of tokens too")
    if len(inner.layers) < count:
        raise InputError(f"settings.strategy pp: {len(inner.layers)} layers for {count} stages")
    layer = sum(one.numel() for one in inner.layers[0].parameters())
    head = round(model.get_output_embeddings().weight.numel() / layer)
    begin, end = cut(len(inner.layers), count, head)[number : number + 2]
    inner.layers = inner.layers[begin:end]
    if number > 0:
        inner.embed_tokens = None
    if number < count - 1:
        inner.norm, model.lm_head = nn.Identity(), None
    return begin


def whole_name(name: str, begin: int) -> str:
    """Return what the whole model calls a weight of a stage that begins with this layer."""
    parts = name.split(".")
    if parts[:2] == ["model", "layers"]:
        parts[2] = str(int(parts[2]) + begin)
    return ".".join(parts)


class Stage(nn.Module):
    """What a process runs of a micro-batch: from tokens or activations to activations or loss.

    The loss is made here, so that nothing holds the scores of a micro-batch until its backward
    pass: torch's stage holds what it returns.
    """

    def __init__(self, model: Any, settings: StepSettings, loss: Loss) -> None:
        super().__init__()
        self.model, self.settings, self.loss = model, settings, loss
        self.count = 1.0
        """What the losses of an optimizer step are divided by."""

    def forward(self, given: torch.Tensor, labels: torch.Tensor | None = None) -> torch.Tensor:
        """Return the activations, or with labels the loss."""
        inner = self.model.model
        inputs = {"inputs_embeds" if inner.embed_tokens is None else "input_ids": given}
        with autocast(self.settings, given.device.type):
            if labels is None:
                return inner(**inputs, use_cache=False).last_hidden_state
            return self.loss(self.model(**inputs, use_cache=False), labels, self.count)


def padded(rows: list[torch.Tensor], plan: Plan, value: int) -> torch.Tensor:
    """Return the samples of all micro-batches below each other, each as long as the plan says.

    What stages hand on has one shape in the whole run. Padding at the end changes nothing: a model
    that looks only backwards never sees it.
    """
    length = plan.inputs.sequence_length or max(row.shape[1] for row in rows)
    return torch.cat(
        [nn.functional.pad(row, (0, length - row.shape[1]), value=value) for row in rows]
    )
