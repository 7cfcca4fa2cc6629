"""Autocast for the simulated accelerator: what CUDA's autocast does, written as Python kernels.

torch has no autocast rules for a Python backend, so each operator of the four policies of
``ATen/autocast_mode.h`` gets a kernel here. The names are torch's own; a wheel carries the
header, and where it does, the header's lists are taken, since they differ by version.
"""

import re
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

aten = torch.ops.aten

LISTS: dict[str, tuple[str, ...]] = {
    "LOWER_PRECISION_FP": (
        "_convolution.deprecated", "_convolution", "conv1d", "conv2d", "conv3d", "conv_tbc",
        "conv_transpose1d", "conv_transpose2d.input", "conv_transpose3d.input",
        "convolution", "prelu", "addmm", "addmv", "addr", "matmul", "einsum", "mm", "mv",
        "linalg_vecdot", "linear", "addbmm", "baddbmm", "bmm", "chain_matmul",
        "linalg_multi_dot", "_thnn_fused_lstm_cell", "_thnn_fused_gru_cell", "lstm_cell",
        "gru_cell", "rnn_tanh_cell", "rnn_relu_cell", "_scaled_dot_product_flash_attention",
        "scaled_dot_product_attention",
    ),
    "FP32": (
        "acos", "asin", "cosh", "erfinv", "exp", "expm1", "log", "log10", "log2", "log1p",
        "reciprocal", "rsqrt", "sinh", "tan", "pow.Tensor_Scalar", "pow.Tensor_Tensor",
        "pow.Scalar", "softplus", "layer_norm", "native_layer_norm", "rms_norm",
        "group_norm", "frobenius_norm.dim", "nuclear_norm", "nuclear_norm.dim",
        "cosine_similarity", "poisson_nll_loss", "cosine_embedding_loss", "nll_loss",
        "nll_loss2d", "hinge_embedding_loss", "kl_div", "l1_loss", "smooth_l1_loss",
        "huber_loss", "mse_loss", "margin_ranking_loss", "multilabel_margin_loss",
        "soft_margin_loss", "triplet_margin_loss", "multi_margin_loss",
        "binary_cross_entropy_with_logits", "dist", "pdist", "cdist", "renorm", "logsumexp",
        "upsample_nearest1d", "_upsample_nearest_exact1d", "upsample_nearest2d",
        "_upsample_nearest_exact2d", "upsample_nearest3d", "_upsample_nearest_exact3d",
        "upsample_linear1d", "upsample_bilinear2d", "_upsample_bilinear2d_aa",
        "upsample_trilinear3d", "upsample_bicubic2d", "_upsample_bicubic2d_aa",
    ),
    "FP32_SET_OPT_DTYPE": (
        "prod", "prod.dim_int", "softmax.int", "log_softmax.int", "cumprod", "cumsum",
        "linalg_vector_norm", "linalg_matrix_norm", "linalg_matrix_norm.str_ord", "sum",
        "sum.dim_IntList",
    ),
    "PROMOTE": (
        "addcdiv", "addcmul", "atan2", "bilinear", "cross", "dot", "vdot", "grid_sampler",
        "index_put", "tensordot", "scatter_add",
    ),
}  # fmt: skip
"""The lists of torch 2.13, used where the header is missing."""

PROMOTE_LISTS = ("cat", "stack")
"""Promoting operators that CUDA registers outside the list."""

_libraries: list[torch.library.Library] = []  # dropping a library removes its kernels
_weights: dict[int, tuple[weakref.ref[torch.Tensor], torch.Tensor]] = {}
_device = ""


def header_lists(header: Path) -> dict[str, tuple[str, ...]]:
    """Return the lists in an ``autocast_mode.h``, overloads written ``name.overload``."""
    text = header.read_text(encoding="utf-8")
    found = {}
    for name in LISTS:
        body = re.search(rf"#define AT_FORALL_{name}\(_\)(.*?)\n\n", text, re.DOTALL)
        if body:
            entries = re.findall(r"_\(([^()]+)\)", body.group(1))
            found[name] = tuple(entry.replace(", ", ".") for entry in entries)
    return found


def installed_header() -> Path:
    """Return where a wheel of torch keeps the header."""
    return Path(torch.__file__).parent / "include" / "ATen" / "autocast_mode.h"


def forget_weights() -> None:
    """Drop the low-precision copies of weights, as the end of an autocast block does."""
    _weights.clear()


def cast(value: Any, dtype: torch.dtype) -> Any:
    """Return the value with eligible tensors in ``dtype``; weights are cast once a block."""
    if isinstance(value, (list, tuple)):
        return type(value)(cast(item, dtype) for item in value)
    if not isinstance(value, torch.Tensor) or not _eligible(value) or value.dtype == dtype:
        return value
    if not _is_cached_weight(value, dtype):
        return value.to(dtype)
    hit = _weights.get(id(value))
    if hit is None or hit[0]() is not value:
        hit = _weights[id(value)] = (weakref.ref(value), value.to(dtype))
    return hit[1]


def install(device: str) -> None:
    """Register the kernels for the device; once a process."""
    global _device
    _device = device
    fallback = torch.library.Library("_", "IMPL")
    fallback.fallback(torch.library.fallthrough_kernel, "AutocastPrivateUse1")
    library = torch.library.Library("aten", "IMPL")
    _libraries.extend([fallback, library])
    header = installed_header()
    lists = LISTS | (header_lists(header) if header.is_file() else {})
    policies: tuple[tuple[Iterable[str], Callable[[Any], Any]], ...] = (
        (lists["LOWER_PRECISION_FP"], _lower),
        (lists["FP32"], _single),
        (lists["FP32_SET_OPT_DTYPE"], _single_output),
        ((*lists["PROMOTE"], *PROMOTE_LISTS), _widest),
    )
    for names, policy in policies:
        for name in names:
            base, _, overload = name.partition(".")
            packet = getattr(aten, base, None)
            if packet is not None and (overload or "default") in packet.overloads():
                op = getattr(packet, overload or "default")
                library.impl(op, policy(op), "AutocastPrivateUse1")
    clear = torch.clear_autocast_cache

    def clear_both() -> None:
        forget_weights()
        clear()

    torch.clear_autocast_cache = clear_both  # torch.autocast calls it through the module


def _guard() -> Any:
    key = torch._C.DispatchKey.AutocastPrivateUse1  # type: ignore[attr-defined]
    keys = torch._C.DispatchKeySet(key)
    return torch._C._ExcludeDispatchKeyGuard(keys)


def _eligible(tensor: torch.Tensor) -> bool:
    return (
        tensor.device.type == _device
        and tensor.is_floating_point()
        and tensor.dtype != torch.float64
    )


def _is_cached_weight(tensor: torch.Tensor, dtype: torch.dtype) -> bool:
    return (
        dtype == torch.get_autocast_dtype(_device)
        and tensor.dtype == torch.float32
        and tensor.requires_grad
        and tensor.is_leaf
        and not tensor._is_view()
        and torch.is_autocast_cache_enabled()
    )


def _call(op: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype) -> Any:
    # Builds by GCC evaluate the arguments of a call right to left: bias, weight, input.
    kwargs = {name: cast(value, dtype) for name, value in reversed(list(kwargs.items()))}
    return op(*[cast(value, dtype) for value in reversed(args)][::-1], **kwargs)


def _lower(op: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _guard():
            return _call(op, args, kwargs, torch.get_autocast_dtype(_device))

    return kernel


def _single(op: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _guard():
            return _call(op, args, kwargs, torch.float32)

    return kernel


def _single_output(op: Any) -> Callable[..., Any]:
    """The input stays as it is; the operator is asked for a single-precision result."""
    place = [argument.name for argument in op._schema.arguments].index("dtype")

    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _guard():
            given = args[place] if len(args) > place else kwargs.get("dtype")
            if given is None and _eligible(args[0]):
                if len(args) > place:
                    args = (*args[:place], torch.float32, *args[place + 1 :])
                else:
                    kwargs = {**kwargs, "dtype": torch.float32}
            return op(*args, **kwargs)

    return kernel


def _widest(op: Any) -> Callable[..., Any]:
    def kernel(*args: Any, **kwargs: Any) -> Any:
        with _guard():
            dtypes = {t.dtype for t in tensors((args, kwargs)) if _eligible(t)}
            single = torch.float32 in dtypes
            dtype = torch.float32 if single else torch.get_autocast_dtype(_device)
            return _call(op, args, kwargs, dtype)

    return kernel


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors in nested lists, tuples and dicts."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
