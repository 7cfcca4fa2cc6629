"""Where a trace makes its scores and its loss, and the gradients of the head."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainwright.profile.profile import MONOMIALS, Profile, Segment
from trainwright.profile.trace import ALLOC, FREE, UNPACK

TOKENS = [MONOMIALS.index("S"), MONOMIALS.index("BS")]
"""Columns of what grows with the tokens."""
_COPY, _PRODUCT = "aten._to_copy.default", "aten.mm.default"
_SOFTMAX, _LOSS = "aten._log_softmax.default", "aten.nll_loss_forward.default"
_LOSS_BACK, _SOFTMAX_BACK = (
    "aten.nll_loss_backward.default",
    "aten._log_softmax_backward_data.default",
)
_LABELS = ["aten.constant_pad_nd.default", "aten.clone.default"]
"""What makes the labels of the next tokens, once."""
_LAYER_NORM = "aten.native_layer_norm.default"


class UnlikeError(Exception):
    """The trace is not that of a head and a loss as they are known here."""


@dataclass(frozen=True, slots=True)
class Birth:
    """A storage of the traced head or loss, by the operator that made it."""

    storage: int
    size: int
    op: int


@dataclass(frozen=True, slots=True)
class Forward:
    """What makes the scores and the loss in the trace."""

    weight_cast: Birth | None
    """Autocast's copy of the head's weight."""
    input_cast: Birth | None
    hidden: Birth
    """What the head takes, before autocast."""
    scores: Birth
    upcast: Birth | None
    labels: tuple[Birth, ...]
    """Shifted by one token, and copied where a batch of several makes that necessary."""
    softmax: Birth
    loss: Birth
    total: Birth
    """The weight of all tokens, which the loss returns too."""
    span: tuple[int, int]
    """Places in the log."""

    @property
    def first(self) -> Birth:
        """What is made first."""
        return self.weight_cast or self.input_cast or self.scores


@dataclass(frozen=True, slots=True)
class Backward:
    """What makes the gradients of the head's weight and input in the trace."""

    loss: Birth
    softmax: Birth
    downcast: Birth | None
    of_weight: Birth | None
    """None where the head is frozen."""
    of_hidden: Birth
    raised: Birth | None
    """The gradient of the head's input in the type before autocast."""
    of_master: Birth | None
    """That of its weight."""
    span: tuple[int, int]

    @property
    def last(self) -> Birth:
        """What is made last."""
        return self.of_master or self.raised or self.of_hidden


class Reading:
    """Where one segment makes its scores, its loss and the head's gradients."""

    def __init__(self, profile: Profile, segment: Segment) -> None:
        self._profile = profile
        self.log = np.stack([segment.code, segment.a, segment.b, segment.c], axis=1)
        self.ops: list[int] = segment.ops.tolist()
        self._born = np.flatnonzero(segment.code == ALLOC)
        """Places of the births, in their order."""

    def _births(self, kept: NDArray[np.bool_]) -> list[Birth]:
        """Return the births that a mask over all of them keeps."""
        return [Birth(*event[1:]) for event in self.log[self._born[kept]].tolist()]

    def _made(self, op: int) -> list[Birth]:
        """Return what an operator made."""
        return self._births(self.log[self._born, 3] == op)

    def _place(self, birth: Birth) -> int:
        """Return the place of a birth in the log."""
        return int(self._born[self.log[self._born, 1] == birth.storage][-1])

    def _grows(self, size: int) -> bool:
        """Return whether a size grows with the tokens."""
        return bool(self._profile.sizes[size][TOKENS].any())

    def _name(self, op: int) -> str:
        return self._profile.ops.name[self.ops[op]]

    def _one(self, op: int, name: str) -> Birth:
        """Return what an operator made, if it is the one that is expected there."""
        made = self._made(op)
        if self._name(op) != name or len(made) != 1:
            raise UnlikeError
        return made[0]

    def _copied(self, op: int) -> Birth | None:
        """Return what an operator copied to another type; None where it does something else."""
        return self._one(op, _COPY) if self._name(op) == _COPY else None

    def forward(self) -> Forward:
        """Return what makes the scores and the loss."""
        outputs = [id for id, what in self._profile.category.items() if what == "output"]
        scores = next(iter(self._births(np.isin(self.log[self._born, 1], outputs))))
        self._one(scores.op, _PRODUCT)
        weight_cast, input_cast = self._autocast(scores.op)
        upcast = self._copied(scores.op + 1)
        op = scores.op + (2 if upcast else 1)
        labels = [self._one(op, _LABELS[0])]
        if self._name(op + 1) == _LABELS[1]:
            labels.append(self._one(op + 1, _LABELS[1]))
        op += len(labels)
        softmax, (loss, total) = self._one(op, _SOFTMAX), self._made(op + 1)[:2]
        if self._name(op + 1) != _LOSS:
            raise UnlikeError
        start = self._place(weight_cast or input_cast or scores)
        end = next(iter(self._born[self.log[self._born, 3] > loss.op].tolist()))
        hidden = self._input(scores, start)
        between = self.log[start:end]
        if not ((between[:, 0] == FREE) & (between[:, 1] == hidden.storage)).any():
            raise UnlikeError
        return Forward(
            *(weight_cast, input_cast, hidden, scores, upcast),
            *(tuple(labels), softmax, loss, total),
            span=(start, end),
        )

    def _autocast(self, head: int) -> tuple[Birth | None, Birth | None]:
        """Return autocast's copies of the head's weight and of its input.

        A norm may end in a copy too, which is then the head's input.
        """
        before, last = self._copied(head - 2), self._copied(head - 1)
        if last and not self._grows(last.size):
            return last, None
        if before and last and not self._grows(before.size):
            return before, last
        return None, last if self._name(head - 2) == _LAYER_NORM else None

    def _input(self, scores: Birth, start: int) -> Birth:
        """Return what the head takes: the last storage of its width that was made before."""
        width = int(self._profile.ops.dims[self.ops[scores.op], 3, 0])
        each = self._profile.sizes[:, TOKENS].max(axis=1)[self.log[self._born, 2]]
        of_width = np.isin(each, (2 * width, 4 * width))
        found = self._births(of_width & (self._born < start))
        if not found:
            raise UnlikeError
        return found[-1]

    def backward(self, forward: Forward) -> Backward:
        """Return what makes the gradients of the head's weight and input."""
        later = range(forward.loss.op, len(self.ops))
        op = next(op for op in later if self._name(op) == _LOSS_BACK)
        loss, softmax = self._one(op, _LOSS_BACK), self._one(op + 1, _SOFTMAX_BACK)
        downcast = self._copied(op + 2)
        op += 3 if downcast else 2
        product = self._one(op, _PRODUCT)
        of_weight = None if self._grows(product.size) else product
        of_hidden = self._one(op + 1, _PRODUCT) if of_weight else product
        op = of_hidden.op + 1
        raised = self._one(op, _COPY) if forward.input_cast else None
        op += raised is not None
        of_master = self._one(op, _COPY) if of_weight and forward.weight_cast else None
        last = of_master or raised or of_hidden
        start, end = self._place(loss), self._place(last) + 1
        while self.log[start - 1, 0] == UNPACK:
            start -= 1
        while self.log[end, 0] not in (ALLOC, UNPACK):
            end += 1
        made = (loss, softmax, downcast, of_weight, of_hidden, raised, of_master)
        return Backward(*made, span=(start, end))
