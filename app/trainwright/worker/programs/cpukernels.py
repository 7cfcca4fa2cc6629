"""CPU kernels that keep what a GPU's keep, where dropout would keep more.

A step that is verified on the CPU really runs there, and really allocates. Dropout is a single
kernel on a GPU that keeps a mask of bytes, and several on the CPU that keep floats. Attention is
what torch takes on a CPU, as in the trace that it is compared with, but drops nothing out: a GPU's
keeps only a seed for that, and the CPU's would keep all scores. oneDNN is left on: what its kernels
copy for themselves counts as measured.
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
    found: torch.Tensor = original(query, key, value, attn_mask, 0.0, is_causal, **options)
    return found


def _dropout(
    x: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> torch.Tensor:
    return torch.native_dropout(x, p, True)[0] if training and p else x
