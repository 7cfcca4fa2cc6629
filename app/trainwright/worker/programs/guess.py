"""What a bare module takes and how it is judged, where nobody says: stated as assumed."""

import inspect
from collections.abc import Callable
from typing import Any

import step
import torch
from refusal import Refusal
from torch import nn

Feed = Callable[[int, int], Any]
"""(batch, sequence) -> tensors on the host."""

Shape = Callable[[int, int], tuple[int, ...]]
"""(batch, sequence) -> shape of the output."""

TOKENS = {"input_ids", "tokens", "token_ids", "ids", "idx"}
IMAGES = {"pixel_values", "image", "images", "img", "imgs", "pixels"}
"""Names of forward's parameter that say what it is; others are told by the first layer."""
USUAL_IMAGE = 224
"""Assumed pixels a side: ImageNet's usual crop."""
HEADS = ("lm_head", "head", "classifier", "fc")
"""Usual names of the output layer, which adapters and quantisation leave alone."""


def head(model: nn.Module) -> nn.Module | None:
    """Return the linear layer that the usual names say is the output."""
    found = (getattr(model, name, None) for name in HEADS)
    return next((layer for layer in found if isinstance(layer, nn.Linear)), None)


def positional(model: nn.Module) -> list[str]:
    """Return the names of forward's parameters that tensors may be given to."""
    parameters = inspect.signature(model.forward).parameters.values()
    return [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]


def repeated(example: step.Tensors) -> Feed:
    """Return what makes batches of any size from an example batch of tensors."""
    first = next(iter(example.values()))
    while isinstance(first, dict):
        first = next(iter(first.values()))
    batch = first.size(0) if first.dim() else 0

    def again(value: Any, size: int) -> Any:
        if isinstance(value, dict):
            return {name: again(item, size) for name, item in value.items()}
        scales = value.dim() > 0 and value.size(0) == batch
        shape = (size, *value.shape[1:]) if scales else value.shape
        return torch.zeros(shape, dtype=value.dtype, device="cpu")

    return lambda size, length: again(example, size)


# Inputs


def inputs(model: nn.Module, spec: dict[str, Any], facts: dict[str, Any], path: str) -> Feed:
    """Return batches for the one parameter of forward, by its name or the first layer.

    Raises:
        Refusal: it takes several, or neither says what it is.
    """
    parameters = inspect.signature(model.forward).parameters.values()
    required = [each.name for each in parameters if each.default is each.empty]
    named = [each for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    if len(required) != 1 or not named:
        raise Refusal("worker.inputs-unknown", file=path, taken=", ".join(required) or "-")
    name = required[0]
    layer = next((m for m in model.modules() if isinstance(m, _TELLING)), None)
    if name in TOKENS or (isinstance(layer, nn.Embedding) and name not in IMAGES):
        return _tokens(name, spec, facts, path)
    if isinstance(layer, nn.Conv2d):
        side = spec["image_size"] or USUAL_IMAGE
        facts["image_size"] = side
        return _floats(name, "images", (layer.in_channels, side, side), facts)
    if isinstance(layer, nn.Linear):
        return _floats(name, "vectors", (layer.in_features,), facts)
    raise Refusal("worker.inputs-unknown", file=path, taken=name)


_TELLING = (nn.Embedding, nn.Linear, nn.modules.conv._ConvNd, nn.RNNBase)


def _tokens(name: str, spec: dict[str, Any], facts: dict[str, Any], path: str) -> Feed:
    if not spec["sequence"]:
        raise Refusal("worker.needs-length", file=path)
    facts |= {"guessed_inputs": "tokens", "guessed_name": name}
    return lambda size, length: {name: torch.zeros((size, length), dtype=torch.int64, device="cpu")}


def _floats(name: str, kind: str, shape: tuple[int, ...], facts: dict[str, Any]) -> Feed:
    facts |= {
        "guessed_inputs": kind,
        "guessed_name": name,
        "guessed_shape": "×".join(map(str, shape)),
    }
    return lambda size, length: {name: torch.zeros((size, *shape), device="cpu")}


# Labels and loss


def labels(
    model: nn.Module, feed: Feed, spec: dict[str, Any], facts: dict[str, Any], path: str
) -> tuple[Feed, step.Loss]:
    """Return labels and loss by the shape that forward returns.

    (batch, classes) and (batch, length, classes): cross-entropy; any other: squared error.

    Raises:
        Refusal: forward does not run without data, or returns no tensor of numbers.
    """
    lengths = sorted({length for _, length in spec["points"]})
    short, long = lengths[0], lengths[-1]
    shapes = [_returned(model, feed, *point, path) for point in ((2, short), (3, short), (2, long))]
    sizes = [
        _Size.of(here, larger, longer, short, long)
        for here, larger, longer in zip(*shapes, strict=True)
    ]

    return judged(lambda *at: tuple(each(*at) for each in sizes), facts)


def judged(shape: Shape, facts: dict[str, Any]) -> tuple[Feed, step.Loss]:
    """Return labels and loss for an output of that shape; see ``labels``."""
    if len(shape(2, 2)) not in (2, 3):
        facts["guessed_loss"] = "squares"
        return lambda *at: torch.zeros(shape(*at), device="cpu"), step.noise_loss
    facts["guessed_loss"] = "classes"
    return (
        lambda *at: torch.zeros(shape(*at)[:-1], dtype=torch.int64, device="cpu"),
        step.token_loss,
    )


class _Size:
    """One dimension of the output, as it grows with batch and length."""

    def __init__(self, fixed: int, batch: int, length: float) -> None:
        self._fixed, self._batch, self._length = fixed, batch, length

    @classmethod
    def of(cls, here: int, larger: int, longer: int, short: int, long: int) -> "_Size":
        """Return the dimension by its sizes at batch 2, 3, and 2 with the longer length."""
        batch = larger - here
        length = (longer - here) / (long - short) if long > short else 0.0
        return cls(round(here - 2 * batch - length * short), batch, length)

    def __call__(self, batch: int, length: int) -> int:
        return round(self._fixed + self._batch * batch + self._length * length)


def _returned(model: nn.Module, feed: Feed, size: int, length: int, path: str) -> tuple[int, ...]:
    try:
        with torch.no_grad():
            returned = model(**_on_meta(feed(size, length)))
    except (RuntimeError, NotImplementedError) as error:
        if "meta" not in str(error).lower():
            raise
        raise Refusal("worker.loss-unknown", file=path) from error
    try:
        output = step.scores(returned)
    except (KeyError, TypeError, IndexError) as error:
        raise Refusal("worker.loss-unknown", file=path) from error
    if not isinstance(output, torch.Tensor) or not output.is_floating_point():
        raise Refusal("worker.loss-unknown", file=path)
    return tuple(output.shape)


def _on_meta(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _on_meta(item) for name, item in value.items()}
    return value.to("meta")
