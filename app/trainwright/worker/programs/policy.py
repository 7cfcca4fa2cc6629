"""Training on a policy's own answers, as TRL runs it: GRPO.

Follows trl 1.16 (``trainer/grpo_trainer.py``). Answers are written without gradients, then their
log-probabilities under the policy of that moment and under the reference are kept, and an update
compares with both. Every answer is as long as it may be.
"""

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import step
import torch
from adapters import switched_off
from preference import MODEL, ready_for_gradients
from subject import Make, Subject
from tiled import TiledLoss
from torch import nn

BETA = 0.04
"""Weight of the distance from a reference; any value takes the same memory and time."""
CLIP = 0.2
"""How far the ratio of probabilities may move: ``epsilon`` of TRL's GRPOConfig."""


def reinforce(
    subject: Subject, reference: str, prompt: int, rows: int, frozen: nn.Module | None
) -> None:
    """Let the subject train on answers of its own.

    Args:
        subject: changed in place.
        reference: model or adapter-off; empty without one.
        prompt: tokens of a row before its answer.
        rows: tokens of a tile of the head, 0 where one tile holds all.
        frozen: the reference model, where that is what the policy is compared with.
    """
    policy = Policy(subject.model, reference, prompt, rows, frozen)
    policy.prompts = _prompts(subject)
    subject.loss = subject.policy = policy
    subject.batch, subject.reference = _answers(subject.batch, prompt, bool(reference)), frozen
    if frozen is not None:
        subject.model.add_module("reference", frozen.requires_grad_(False))


def _prompts(subject: Subject) -> Make:
    """Return what makes prompts as ``generate`` gives them: with the place of each token."""
    make = subject.batch
    placed = "position_ids" in inspect.signature(subject.model.forward).parameters

    def batch(size: int, length: int) -> step.Batch:
        inputs = make(size, length).inputs
        places = {"position_ids": torch.zeros_like(inputs["input_ids"])} if placed else {}
        return step.Batch(inputs | places, {})

    return batch


def _answers(make: Make, prompt: int, compared: bool) -> Make:
    """Return what makes batches of prompts with their answers, and what is known of these."""

    def batch(size: int, length: int) -> step.Batch:
        made, answer = make(size, length), length - prompt
        labels = {
            "tokens": made.inputs["input_ids"],
            "mask": torch.ones((size, answer), dtype=torch.int64),
            "advantages": torch.zeros((size, 1)),
            "old": torch.zeros((size, answer)),
        }
        if compared:
            labels["reference"] = torch.zeros((size, answer))
        return step.Batch(made.inputs, labels)

    return batch


class Policy:
    """A model that is trained on its own answers, with what they are compared with."""

    prompts: Make
    """What makes batches without answers."""

    def __init__(
        self, model: nn.Module, reference: str, prompt: int, rows: int, frozen: nn.Module | None
    ) -> None:
        self.model, self.reference, self.frozen = model, reference, frozen
        self.prompt = prompt
        self._head = TiledLoss(_head(model), rows)
        self._other = self._head if frozen is None else TiledLoss(_head(frozen), rows)

    def __call__(self, output: Any, labels: step.Tensors, count: float) -> torch.Tensor:
        """Return the loss of the answers, divided by the count."""
        found = self._of_answers(self._head, output, labels["tokens"])
        ratio, advantages = torch.exp(found - labels["old"]), labels["advantages"]
        clipped = torch.clamp(ratio, 1 - CLIP, 1 + CLIP)
        loss = -torch.min(ratio * advantages, clipped * advantages)
        if self.reference:
            apart = labels["reference"] - found
            loss = loss + BETA * (torch.exp(apart) - apart - 1)
        return (loss * labels["mask"]).sum() / count

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Let the head make scores, as it does while answers are written."""
        head: Any = self._head.head
        passes = head.forward
        del head.forward  # the loss had put its own in place of the class's
        try:
            yield
        finally:
            head.forward = passes

    @property
    def scorers(self) -> dict[str, Callable[[step.Tensors], torch.Tensor]]:
        """Return what gives answers their log-probabilities, by the name of its segment."""
        return {"score": self._score} | ({"compare": self._compare} if self.reference else {})

    def _score(self, inputs: step.Tensors) -> torch.Tensor:
        return self._of_answers(self._head, self.model(**inputs), inputs["input_ids"])

    def _compare(self, inputs: step.Tensors) -> torch.Tensor:
        model = self.model if self.frozen is None else self.frozen
        own = switched_off() if self.reference != MODEL else ready_for_gradients(model)
        with own:
            return self._of_answers(self._other, model(**inputs), inputs["input_ids"])

    def _of_answers(self, head: TiledLoss, output: Any, tokens: torch.Tensor) -> torch.Tensor:
        """Return the log-probability of each token of each answer."""
        return head.each(output, tokens, self.prompt - 1).neg()


def _head(model: Any) -> Any:
    return model.get_output_embeddings()
