"""CPU kernels that keep what a GPU's keep, where torch has several steps for one kernel.

A step that is verified on the CPU really runs there, and really allocates. Two operators are
single kernels on a GPU and several on the CPU, which would keep other tensors for backward:
dropout (a mask of floats instead of bytes) and attention with dropout (all scores). oneDNN is left
on: what its kernels copy for themselves counts as measured.
"""

from functools import partial
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812


def install() -> None:
    """Rebind the functions; before any model's code is imported."""
    F.scaled_dot_product_attention = partial(_attention, F.scaled_dot_product_attention)
    F.dropout = _dropout  # type: ignore[assignment]


def _attention(
    original: Any, query: Any, key: Any, value: Any,
    attn_mask: Any = None, dropout_p: float = 0.0, is_causal: bool = False, **options: Any,
) -> torch.Tensor:  # fmt: skip
    """The CPU's fused attention has no dropout; a GPU's keeps only a seed for it."""
    found: torch.Tensor = original(query, key, value, attn_mask, 0.0, is_causal, **options)
    return found


def _dropout(
    x: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    return torch.native_dropout(x, p, True)[0] if training and p else x
