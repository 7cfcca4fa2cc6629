"""Attention on the simulated accelerator: the kernel that the spec asks for, where legal.

The choice between kernels is made in C++ for CUDA tensors only, so
``torch.nn.functional.scaled_dot_product_attention`` is rebound before any model is imported.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from autocast import cast

aten = torch.ops.aten
HALF = (torch.float16, torch.bfloat16)

wanted = "flash"
expanding = False
"""Whether keys and values are repeated for each query head before the kernel is chosen."""
used: dict[str, int] = {}
"""Kernel -> calls."""


def pick(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any, grouped: bool
) -> str:
    """Return the first legal kernel from the wanted one on, in torch's order.

    Flash: 16-bit, no mask, head size <= 256, equal for key and value. Efficient: no grouped
    heads. Source: ``aten/src/ATen/native/transformers/cuda/sdp_utils.cpp``.
    """
    if wanted == "cpu":
        return "cpu" if _on_cpu(query, key, value, mask) else "math"
    order = ("flash", "efficient", "math")
    flash = (
        query.dtype in HALF
        and mask is None
        and query.size(-1) <= 256
        and value.size(-1) == query.size(-1)
    )
    grouped = grouped and query.size(-3) != key.size(-3)
    legal = {"flash": flash, "efficient": not grouped, "math": True}
    if query.dim() != 4:
        return "math"
    first = order.index(wanted) if wanted in order else 0
    return next(kernel for kernel in order[first:] if legal[kernel])


def _on_cpu(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, mask: Any) -> bool:
    """Return whether the CPU has one kernel: no gradient of a bias, equal head sizes.

    Source: ``aten/src/ATen/native/transformers/sdp_utils_cpp.cpp``, ``use_flash_attention_cpp``.
    """
    return (
        query.dim() == 4
        and query.size(-1) == value.size(-1)
        and all(tensor.stride(-1) == 1 for tensor in (query, key, value))
        and not (mask is not None and mask.requires_grad)
    )


class _Kept(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor, result: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(scores)
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor) -> Any:
        return None, grads[0]


def keep_softmax_inputs() -> None:
    """Let softmax save its input beside its result, as it did until torch 1.11.

    Source: ``tools/autograd/derivatives.yaml`` of torch 1.10, ``_softmax_backward_data(grad,
    result, dim, self)``; from 1.11 on it takes the input's dtype only.
    """
    softmax = F.softmax

    def keeping(scores: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        if torch.is_autocast_enabled(scores.device.type):
            scores = scores.float()
        return _Kept.apply(scores, softmax(scores, *args, **kwargs))  # type: ignore[no-any-return,no-untyped-call]

    F.softmax = keeping  # type: ignore[assignment]


def install(device: str) -> None:
    """Rebind the function; tensors of other devices keep torch's own."""
    original = F.scaled_dot_product_attention

    def attention(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        if enable_gqa and expanding:
            key, value, enable_gqa = expanded(key, query), expanded(value, query), False
        if query.device.type != device:
            options: Any = {"scale": scale, "enable_gqa": enable_gqa}
            return original(query, key, value, attn_mask, dropout_p, is_causal, **options)
        if torch.is_autocast_enabled(device):
            dtype = torch.get_autocast_dtype(device)
            query, key, value = (cast(tensor, dtype) for tensor in (query, key, value))
            attn_mask = cast(attn_mask, dtype)
        if wanted == "cpu":  # as a verified step runs it: ``cpukernels``
            dropout_p = 0.0
        kernel = pick(query, key, value, attn_mask, enable_gqa)
        used[kernel] = used.get(kernel, 0) + 1
        scale = 1 / math.sqrt(query.size(-1)) if scale is None else scale
        if kernel == "flash":
            return _flash(query, key, value, dropout_p, is_causal, scale)
        if kernel == "cpu":
            return _flash_of_cpu(query, key, value, attn_mask, is_causal, scale)
        if kernel == "efficient":
            return _efficient(query, key, value, attn_mask, dropout_p, is_causal, scale)
        return aten._scaled_dot_product_attention_math(
            query, key, value, attn_mask, dropout_p, is_causal, None,
            scale=scale, enable_gqa=enable_gqa,
        )[0]  # fmt: skip

    F.scaled_dot_product_attention = attention


def expanded(heads: torch.Tensor, query: torch.Tensor) -> torch.Tensor:
    """Return keys or values with a head for each query head: ``repeat_kv`` of transformers."""
    batch, count, length, size = heads.shape
    repeated = query.size(1) // count
    if repeated == 1:
        return heads
    wide = heads[:, :, None].expand(batch, count, repeated, length, size)
    return wide.reshape(batch, count * repeated, length, size)


def _flash(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    p: float,
    causal: bool,
    scale: float,
) -> torch.Tensor:
    """Head sizes are padded to a multiple of 8 as torch does."""
    size = query.size(-1)
    if pad := -size % 8:
        query, key, value = (F.pad(tensor, (0, pad)) for tensor in (query, key, value))
    out = aten._scaled_dot_product_flash_attention(
        query, key, value, p, causal, False, scale=scale
    )[0]
    return out[..., :size] if pad else out


def _flash_of_cpu(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    causal: bool,
    scale: float,
) -> torch.Tensor:
    """A bias is made of a boolean mask, as torch does."""
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.where(mask, 0.0, torch.tensor(float("-inf"), dtype=query.dtype))
    return aten._scaled_dot_product_flash_attention_for_cpu(
        query, key, value, 0.0, causal, attn_mask=mask, scale=scale
    )[0]


def _efficient(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    p: float,
    causal: bool,
    scale: float,
) -> torch.Tensor:
    """A bias is made of a boolean mask, and its rows are aligned to 16, as torch does."""
    if mask is not None and mask.dtype == torch.bool:
        bias = torch.zeros_like(mask, dtype=query.dtype)
        mask = bias.masked_fill_(mask.logical_not(), float("-inf"))
    if mask is not None:
        keys = mask.size(-1)
        if pad := -keys % 16:
            mask = F.pad(mask, (0, pad))[..., :keys]
        mask = mask.expand(query.size(0), query.size(1), query.size(2), key.size(2))
    saves = torch.is_grad_enabled() and any(t.requires_grad for t in (query, key, value))
    return aten._scaled_dot_product_efficient_attention(
        query, key, value, mask, saves, p, causal, scale=scale
    )[0]
