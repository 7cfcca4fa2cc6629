"""Training on pairs of answers, as TRL runs it: DPO, and reward models.

Follows trl 1.16 (``trainer/dpo_trainer.py``, ``_compute_loss``; ``trainer/reward_trainer.py``,
``compute_loss``). Chosen and rejected answers are one batch. In DPO the policy runs first, the
reference after it without gradients, and both return the log-probability of each answer from TRL's
fused head.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import step
import torch
import torch.nn.functional as F  # noqa: N812
from adapters import switched_off
from subject import Make, Subject
from tiled import TiledLoss
from torch import nn

BETA = 0.1
"""TRL's default; any value takes the same memory and time."""
MODEL, PRECOMPUTED = "model", "precomputed"


def prefer(subject: Subject, reference: str, rows: int, frozen: nn.Module | None) -> None:
    """Let the subject train on pairs of answers.

    Args:
        subject: changed in place.
        reference: model, adapter-off or precomputed.
        rows: tokens of a tile of the head, 0 where one tile holds all.
        frozen: the reference model, where that is what the policy is compared with.
    """
    _disable_dropout(subject.model)
    subject.loss = PreferenceLoss(subject.model, reference, rows, frozen)
    subject.batch, subject.reference = _pairs(subject.batch, reference == PRECOMPUTED), frozen
    if frozen is not None:
        subject.model.add_module("reference", frozen.requires_grad_(False))


def reward(subject: Subject) -> None:
    """Let the subject, a classifier of one score, learn which answer of a pair is better."""
    _disable_dropout(subject.model)
    assert subject.head is not None, "it was built with one"
    subject.head.requires_grad_(True)  # PEFT's modules_to_save, where the rest is frozen
    subject.batch, subject.loss = _pairs(subject.batch, precomputed=False), reward_loss


def reward_loss(output: Any, labels: step.Tensors, count: float) -> torch.Tensor:
    """Return the loss of the pairs, divided by the count, which is of two rows a pair."""
    chosen, rejected = step.scores(output).squeeze(-1).chunk(2)
    return -2 * F.logsigmoid(chosen - rejected).sum() / count


def _disable_dropout(model: nn.Module) -> None:
    """Switch every dropout off, as ``disable_dropout`` of TRL's configurations does."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0


def _pairs(make: Make, precomputed: bool) -> Make:
    """Return what makes batches of pairs: the chosen answers, then the rejected ones."""

    def batch(size: int, length: int) -> step.Batch:
        made = make(2 * size, length)
        labels = {"mask": torch.ones((2 * size, length), dtype=torch.int64)}
        if precomputed:
            labels["reference"] = torch.zeros(2 * size)
        return step.Batch(made.inputs, labels)

    return batch


class PreferenceLoss:
    """How much likelier than the reference the policy makes the chosen answer of each pair."""

    def __init__(
        self, model: nn.Module, reference: str, rows: int, frozen: nn.Module | None
    ) -> None:
        self.model, self.frozen = model, frozen
        self.precomputed = reference == PRECOMPUTED
        self._given: step.Tensors = {}
        for answering in (model,) if frozen is None else (model, frozen):
            self._answer(answering, rows)

    def _answer(self, model: Any, rows: int) -> None:
        """Let a model return the log-probability of each row. Every token is taken to count."""
        head = TiledLoss(model.get_output_embeddings(), rows)

        def answer(module: nn.Module, args: Any, kwargs: step.Tensors, output: Any) -> torch.Tensor:
            self._given = kwargs
            return head.each(output, kwargs["input_ids"]).sum(1).neg()

        model.register_forward_hook(answer, with_kwargs=True)

    def __call__(self, answers: torch.Tensor, labels: step.Tensors, count: float) -> torch.Tensor:
        """Return the loss of the pairs, divided by the count, which is of two rows a pair."""
        known = labels["reference"] if self.precomputed else self._compared()
        self._given = {}
        chosen, rejected = (answers - known).chunk(2)
        return -2 * F.logsigmoid(BETA * (chosen - rejected)).sum() / count

    def _compared(self) -> torch.Tensor:
        """Return what the reference says of the same answers."""
        torch.clear_autocast_cache()  # accelerate's autocast ends with the policy's forward
        model = self.model if self.frozen is None else self.frozen
        with torch.no_grad(), switched_off() if self.frozen is None else ready_for_gradients(model):
            answers: torch.Tensor = model(**self._given)
        return answers


@contextlib.contextmanager
def ready_for_gradients(model: nn.Module) -> Iterator[None]:
    """Let weights ask for gradients, as loaded ones do: autocast keeps the casts of those only.

    Packed weights are whole numbers, which never do.
    """
    for weight in model.parameters():
        weight.requires_grad_(weight.is_floating_point())
    try:
        yield
    finally:
        model.requires_grad_(False)
