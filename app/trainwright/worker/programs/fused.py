"""The output head and the cross-entropy in one: Liger's fused linear cross-entropy.

Follows liger-kernel 0.8.5 (``ops/fused_linear_cross_entropy.py``) from compute capability 8.0
on: what it allocates, in its order. Gradients are made in the forward pass, chunk by chunk,
over the scores themselves; backward only scales them.
"""

import math
from typing import Any

import step
import torch

MOST_CHUNKS = 32
"""Chunks that are told apart: batches and lengths that are traced divide by no more."""

_library = torch.library.Library("trainwright", "FRAGMENT")
_library.define("cross_entropy_in_place(Tensor(a!) logits, Tensor labels, Tensor(b!) losses) -> ()")


@torch.library.register_fake("trainwright::cross_entropy_in_place", lib=_library)
def _in_place(logits: torch.Tensor, labels: torch.Tensor, losses: torch.Tensor) -> None:
    return None


class FusedLoss(step.ChunkedLoss):
    """Cross-entropy of each next token, fused with the head."""

    def summed(self, hidden: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        """Return the sum over the tokens; hidden is (tokens, width)."""
        head: Any = self.head
        return _Fused.apply(hidden, head.weight, head.bias, labels)  # type: ignore[no-any-return,no-untyped-call]


def chunks(tokens: int, width: int, vocabulary: int) -> int:
    """Return how many chunks the tokens are cut into.

    Liger rounds tokens · width / vocabulary up to a power of two of tokens a chunk. Where the
    tokens are a power of two, that is the largest power of two of chunks within
    vocabulary / width; it is taken for others too.
    """
    factor = math.ceil(vocabulary / width)
    return int(min(1 << (factor.bit_length() - 1), MOST_CHUNKS, tokens))


class _Fused(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, hidden: torch.Tensor, weight: torch.Tensor, bias: Any, labels: torch.Tensor
    ) -> torch.Tensor:
        trained = weight.requires_grad
        of_hidden = torch.zeros_like(hidden)
        of_weight = torch.zeros_like(weight) if trained else None
        of_bias = None if bias is None else torch.zeros_like(bias)
        losses = torch.zeros(len(hidden), dtype=torch.float32, device=hidden.device)
        counted = (labels != step.IGNORED).sum()
        tokens, width = hidden.shape
        size = -(-tokens // chunks(tokens, width, len(weight)))
        for start in range(0, tokens, size):
            part = slice(start, start + size)
            logits = hidden[part] @ weight.t()
            if bias is not None:
                logits = logits + bias
            torch.ops.trainwright.cross_entropy_in_place(logits, labels[part], losses[part])
            of_hidden[part] = logits @ weight
            if of_weight is not None:
                _accumulate(of_weight, logits.t(), hidden[part])
            if of_bias is not None:
                of_bias += logits.sum(dim=0)
            del logits
        del counted
        ctx.grads = of_hidden, of_weight, of_bias
        return losses.sum()

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        made, ctx.grads = ctx.grads, None
        for gradient in made:
            if gradient is not None:
                gradient *= grads[0]
        return *made, None


def _accumulate(total: torch.Tensor, left: torch.Tensor, right: torch.Tensor) -> None:
    """Add the product to the gradient in place, in the gradient's type."""
    if right.dtype != left.dtype:
        right = right.to(left.dtype)
    if total.dtype == left.dtype:
        torch.addmm(total, left, right, out=total)
    else:
        torch.addmm(total, left, right, out_dtype=total.dtype, out=total)
