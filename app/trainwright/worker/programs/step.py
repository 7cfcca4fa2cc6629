"""The training step: forward, loss, backward, clipping, optimizer, accumulation.

Written once: the tracer traces it, ``verify`` runs it, and the ``plain`` export embeds it.
Plain torch and the standard library only.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.utils.checkpoint import (
    CheckpointPolicy,
    checkpoint,
    create_selective_checkpoint_contexts,
)
from updates import InBackward as InBackward
from updates import Make as Make
from updates import hidden_matrices as hidden_matrices
from updates import make_optimizer as make_optimizer
from updates import whole as whole

IGNORED = -100
"""Label of a token that does not count: the default of ``torch.nn.CrossEntropyLoss``."""

CHUNKS = 8
"""Parts that a chunked cross-entropy cuts the tokens of a micro-batch into: torchtune's
``num_output_chunks``."""

AUTOCAST = {"bf16-mixed": torch.bfloat16, "fp16-mixed": torch.float16}
PURE = {"bf16": torch.bfloat16, "fp16": torch.float16}
"""Precisions whose weights are in 16 bits, without autocast."""

Tensors = dict[str, torch.Tensor]
Loss = Callable[[Any, Any, float], torch.Tensor]
"""(model output, labels, count over the optimizer step) -> loss that backward starts at."""


@dataclass(frozen=True)
class StepSettings:
    """What of the settings shapes one step."""

    precision: str = "bf16-mixed"
    """fp32 | tf32 | fp16-mixed | bf16-mixed | bf16 | fp16."""
    checkpointing: str = "none"
    """none | full | every-K | selective."""
    offload: bool = False
    """Whether what checkpointed blocks keep waits in pinned host memory."""
    optimizer: str = "adamw"
    """adamw | sgd | adafactor | muon."""
    implementation: str = ""
    """fused | foreach | for-loop: of adamw and sgd; empty is fused AdamW and foreach SGD."""
    momentum: float = 0.9
    """Of sgd."""
    output_kept: str = "no"
    """no | step | next: how long the loop holds what the model returned."""
    loss_in_model: bool = False
    """Whether a loop that holds it gets it together with the loss."""
    gradients_cleared: str = "after-step"
    """after-step | before-backward | zeroed."""
    in_backward: bool = False
    """Whether each parameter is moved, and its gradient dropped, as soon as backward has it."""
    learning_rate: float = 1e-4
    clip: float = 1.0
    """Largest norm of all gradients together; 0 for none."""
    channels_last: bool = False


@dataclass(frozen=True)
class Batch:
    """Samples of one micro-batch."""

    inputs: Tensors
    """Arguments of the model's forward by name."""
    labels: Any
    """A tensor, or a dict of them."""


# Model


def prepare(model: nn.Module, settings: StepSettings, device: torch.device | str) -> nn.Module:
    """Return the model ready to train: in place, in its dtype and layout, checkpointed."""
    if (dtype := PURE.get(settings.precision)) is not None:
        model.to(dtype)
    if settings.channels_last:
        model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    model.to(device)
    model.train()
    checkpoint_blocks(blocks(model), settings.checkpointing, settings.offload)
    return model


def allow_tf32(precision: str) -> None:
    """Let matrix products and convolutions of fp32 use TF32, or forbid it for ``fp32``."""
    allowed = precision != "fp32"
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


def blocks(model: nn.Module) -> list[nn.Module]:
    """Return the modules that checkpointing wraps, in the order of the model.

    1. Modules that the library itself would checkpoint: ``GradientCheckpointingLayer`` of
       transformers; ``ResnetBlock2D`` and ``BasicTransformerBlock`` of diffusers.
    2. Else the repeated parts of the network: elements of a ``Sequential`` or ``ModuleList``
       that are not plain ``torch.nn`` layers or norms, at the deepest nesting that still
       holds half of the weights of the outermost ones.

    A block within a block is left out.
    """
    marked = {"GradientCheckpointingLayer", "ResnetBlock2D", "BasicTransformerBlock"}
    own = [
        (name, module)
        for name, module in model.named_modules()
        if name and marked & {base.__name__ for base in type(module).__mro__}
    ]
    if own:
        return [module for name, module in own if not _inside(name, own)]
    levels: dict[int, list[nn.Module]] = {}
    for name, module in model.named_modules():
        if _is_element(model, name, module):
            outer = sum(_is_element(model, *part) for part in _ancestors(model, name))
            levels.setdefault(outer, []).append(module)
    weights = {level: sum(map(_size, modules)) for level, modules in levels.items()}
    deep = [level for level in levels if 2 * weights[level] >= weights[0]]
    found = levels[max(deep)] if deep else []
    return found if len(found) > 1 else []


def checkpoint_blocks(modules: Sequence[nn.Module], how: str, offload: bool = False) -> None:
    """Wrap the blocks so that backward computes them again.

    ``full`` wraps each, ``every-K`` each K-th, ``selective`` wraps each but keeps the results
    of matrix products, convolutions and attention kernels. With ``offload`` the blocks' inputs
    wait in pinned host memory, as transformers' ``activation_checkpointing_kwargs.offload``.
    """
    if how == "none":
        return
    every = int(how.removeprefix("every-")) if how.startswith("every-") else 1
    again = partial(checkpoint, use_reentrant=False)
    if how == "selective":
        contexts = partial(create_selective_checkpoint_contexts, _keep_products)
        again = partial(again, context_fn=contexts)
    if offload:
        again = partial(_offloaded, again)
    for module in modules[::every]:
        module.forward = partial(again, module.forward)  # type: ignore[method-assign]


def _offloaded(again: Any, forward: Any, *args: Any, **kwargs: Any) -> Any:
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        return again(forward, *args, **kwargs)


def _keep_products(context: Any, op: Any, *args: Any, **kwargs: Any) -> CheckpointPolicy:
    name = op._schema.name.removeprefix("aten::") if hasattr(op, "_schema") else ""
    kept = name in ("mm", "addmm", "convolution") or name.startswith("_scaled_dot_product")
    return CheckpointPolicy.MUST_SAVE if kept else CheckpointPolicy.PREFER_RECOMPUTE


def _inside(name: str, others: Iterable[tuple[str, nn.Module]]) -> bool:
    return any(name.startswith(other + ".") for other, _ in others)


def _ancestors(model: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    parts = name.split(".")
    for end in range(1, len(parts)):
        outer = ".".join(parts[:end])
        yield outer, model.get_submodule(outer)


def _is_element(model: nn.Module, name: str, module: nn.Module) -> bool:
    if not name or type(module).__module__.startswith("torch.nn."):
        return False
    container = model.get_submodule(name.rpartition(".")[0])
    return isinstance(container, (nn.Sequential, nn.ModuleList)) and _size(module) > 0


def _size(module: nn.Module) -> int:
    """Weights of a module; the vectors of norms and biases do not count."""
    return sum(parameter.numel() for parameter in module.parameters() if parameter.dim() > 1)


# Losses: sums divided by a count over all micro-batches of the optimizer step, so that any
# split of a batch into micro-batches gives the same gradients.


def token_loss(output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
    """Cross-entropy a token or a sample; ignored labels do not count."""
    logits = scores(output)
    summed = F.cross_entropy(
        logits.view(-1, logits.size(-1)),
        labels.view(-1),
        ignore_index=IGNORED,
        reduction="sum",
    )
    return summed / count


def next_token_loss(output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
    """Cross-entropy of each token given those before it, in fp32, as transformers has it."""
    logits = scores(output).float()
    return token_loss(logits, next_tokens(labels, logits.size(1)), count)


def shifted_loss(output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
    """``next_token_loss`` in transformers 4.46 and 4.47: the scores are shifted, by a copy."""
    logits = scores(output).float()
    return token_loss(logits[..., :-1, :].contiguous(), labels[..., 1:].contiguous(), count)


def returned_loss(output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
    """``shifted_loss`` before transformers 4.46, whose models return their scores in fp32."""
    output.logits = output.logits.float()
    return shifted_loss(output, labels, count)


def uncast_loss(output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
    """``next_token_loss`` in the type of the scores, or that of autocast."""
    logits = scores(output)
    return token_loss(logits, next_tokens(labels, logits.size(1)), count)


NEXT_TOKEN = {
    "upcast": next_token_loss,
    "shifted": shifted_loss,
    "returned": returned_loss,
    "none": uncast_loss,
}
"""What the loss copies of the scores -> the loss of each next token."""


def next_tokens(labels: torch.Tensor, length: int) -> torch.Tensor:
    """Return what each position predicts; virtual tokens come first and predict nothing."""
    if virtual := length - labels.size(1):
        labels = F.pad(labels, (virtual, 0), value=IGNORED)
    return F.pad(labels, (0, 1), value=IGNORED)[..., 1:].contiguous()


class ChunkedLoss:
    """``next_token_loss`` without all scores at once: the head runs here, a chunk at a time.

    The model's own call of its head returns the head's input. Backward computes the scores of
    each chunk again; gradients are those of the whole, summed in another order.
    """

    def __init__(self, head: nn.Module) -> None:
        self.head = head
        self._passed = 0
        head.forward = self._pass  # type: ignore[method-assign]

    def _pass(self, hidden: torch.Tensor) -> torch.Tensor:
        self._passed = id(hidden)
        return hidden

    def __call__(self, output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
        """Return the loss, divided by the count.

        Raises:
            ValueError: the model does something with what its head returns.
        """
        hidden = self.input_of(output)
        labels = next_tokens(labels, hidden.size(1))
        return self.summed(hidden.view(-1, hidden.size(-1)), labels.view(-1)) / count

    def input_of(self, output: Any) -> torch.Tensor:
        """Return the head's input, which the model returned in place of scores."""
        hidden = scores(output)
        if id(hidden) != self._passed:
            raise ValueError("the model changes its scores after the head: take cross_entropy full")
        return hidden

    def summed(self, hidden: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the sum over the tokens; hidden is (tokens, width)."""
        parts = zip(hidden.chunk(CHUNKS), labels.chunk(CHUNKS), strict=True)
        losses = [checkpoint(self._part, *part, use_reentrant=False) for part in parts]
        return torch.stack(losses).sum()

    def _part(self, hidden: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logits = type(self.head).forward(self.head, hidden).float()
        return F.cross_entropy(logits, labels, ignore_index=IGNORED, reduction="sum")


def segmentation_loss(output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
    """Cross-entropy a pixel, of scores brought to the labels' size as transformers does it."""
    found = F.interpolate(scores(output), size=labels.shape[-2:], mode="bilinear")
    return F.cross_entropy(found, labels, ignore_index=IGNORED, reduction="sum") / count


def embedding_loss(output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
    """Cross-entropy of each sample's mean vector against those of its batch (in-batch negatives).

    Vectors are a sample's tokens, or its channels at each place of an image.
    """
    places = output[0]
    mean = places.mean(1) if places.dim() == 3 else places.flatten(2).mean(2)
    vectors = F.normalize(mean.float(), dim=-1)
    own = torch.arange(len(vectors), device=vectors.device)
    return F.cross_entropy(vectors @ vectors.T, own, reduction="sum") / count


def span_loss(output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
    """Cross-entropy of an answer's first and last token, as transformers has it."""
    ends = (output.start_logits, output.end_logits)
    parts = [F.cross_entropy(e, labels[:, i], reduction="sum") for i, e in enumerate(ends)]
    return (parts[0] + parts[1]) / count


def own_loss(output: Any, labels: torch.Tensor, count: float) -> torch.Tensor:
    """Return the loss that the model made of labels among its inputs: a mean over the samples."""
    return output.loss * (len(labels) / count)  # type: ignore[no-any-return]


def noise_loss(output: Any, noise: torch.Tensor, count: float) -> torch.Tensor:
    """Squared error of predicted noise, in fp32."""
    return F.mse_loss(scores(output).float(), noise.float(), reduction="sum") / count


def scores(output: Any) -> torch.Tensor:
    """Return the tensor that the loss reads, from any library's kind of output."""
    if isinstance(output, torch.Tensor):
        return output
    for name in ("logits", "sample"):
        if hasattr(output, name):
            return getattr(output, name)  # type: ignore[no-any-return]
    return output[0]  # type: ignore[no-any-return]


def counted(batches: Iterable[Batch], loss: Loss) -> float:
    """Return what the losses of one optimizer step are divided by."""
    total = 0
    for batch in batches:
        labels = batch.labels
        if loss in NEXT_TOKEN.values() or isinstance(loss, ChunkedLoss):
            labels = labels[..., 1:]
        if isinstance(labels, dict):
            total += len(next(iter(labels.values())))
        elif labels.is_floating_point():
            total += labels.numel()
        else:
            total += int((labels != IGNORED).sum())
    return float(max(1, total))


# Step


def to_device(batch: Batch, device: torch.device | str, settings: StepSettings) -> Batch:
    """Return the batch on the device, floats in the model's dtype, images in its layout."""

    def move(value: Any) -> Any:
        if isinstance(value, dict):
            return {name: move(item) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return type(value)(map(move, value))
        if not isinstance(value, torch.Tensor):
            return value
        options: dict[str, Any] = {"non_blocking": True}
        if settings.precision in PURE and value.is_floating_point():
            options["dtype"] = PURE[settings.precision]
        if settings.channels_last and value.dim() == 4:
            options["memory_format"] = torch.channels_last
        return value.to(device, **options)

    return Batch(move(batch.inputs), move(batch.labels))


def autocast(settings: StepSettings, device: str) -> contextlib.AbstractContextManager[Any]:
    """Return the context of forward and loss."""
    dtype = AUTOCAST.get(settings.precision)
    if dtype is None:
        return contextlib.nullcontext()
    return torch.autocast(device, dtype)


def make_scaler(settings: StepSettings, device: str) -> torch.amp.GradScaler | None:
    """Return the loss scaler that fp16 needs, or None."""
    return torch.amp.GradScaler(device) if settings.precision == "fp16-mixed" else None


def micro_step(
    model: nn.Module,
    batch: Batch,
    count: float,
    loss: Loss,
    settings: StepSettings,
    scaler: torch.amp.GradScaler | None = None,
    held: list[Any] | None = None,
    before_backward: Callable[[], None] | None = None,
) -> torch.Tensor:
    """Run one micro-batch forward and backward; gradients add up. Returns its loss.

    ``held`` is where a loop holds what the model returned; ``before_backward`` is called then.
    """
    tensors = (value for value in batch.inputs.values() if isinstance(value, torch.Tensor))
    device = next(tensors).device.type
    held = [] if held is None else held
    keeps = settings.output_kept != "no"
    with autocast(settings, device):
        output = model(**batch.inputs)
        if keeps and not settings.loss_in_model:
            held[:] = [output]
        value = loss(output, batch.labels, count)
        if keeps:
            held[:] = [output]
        del output
    if before_backward is not None:
        before_backward()
    if scaler is None:
        value.backward()  # type: ignore[no-untyped-call]
    else:
        scaler.scale(value).backward()  # type: ignore[no-untyped-call]
    return value.detach()


def update(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    settings: StepSettings,
    scaler: torch.amp.GradScaler | None = None,
    held: list[Any] | None = None,
) -> None:
    """Clip the gradients, move the parameters, and drop the gradients, as soon as the loop does."""
    if scaler is not None:
        scaler.unscale_(optimizer)
    if settings.clip:
        trainable = (parameter for parameter in model.parameters() if parameter.requires_grad)
        nn.utils.clip_grad_norm_(trainable, settings.clip)
    if scaler is None:
        optimizer.step()
    else:
        scaler.step(optimizer)
        scaler.update()
    if settings.gradients_cleared != "before-backward":
        optimizer.zero_grad(set_to_none=settings.gradients_cleared == "after-step")
    if held is not None and settings.output_kept == "step":
        held.clear()


def clearing(optimizer: torch.optim.Optimizer, settings: StepSettings) -> Callable[[], None] | None:
    """Return what drops old gradients before the first backward of a step; None for nothing."""
    return optimizer.zero_grad if settings.gradients_cleared == "before-backward" else None


def train_step(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Sequence[Batch],
    loss: Loss,
    settings: StepSettings,
    device: torch.device | str,
    scaler: torch.amp.GradScaler | None = None,
    held: list[Any] | None = None,
) -> float:
    """Run one optimizer step over its micro-batches, given on the host; returns the loss."""
    count = counted(batches, loss)
    clear: Callable[[], None] | None = clearing(optimizer, settings)
    total = []
    for batch in batches:
        moved = to_device(batch, device, settings)
        total.append(micro_step(model, moved, count, loss, settings, scaler, held, clear))
        clear = None
    update(model, optimizer, settings, scaler, held)
    return float(torch.stack(total).sum())
