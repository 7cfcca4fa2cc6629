"""Bytes that serving moves and the trace does not: packed weights, the engine's own cache."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trainwright.estimate.serving import engines
from trainwright.estimate.serving.served import Served
from trainwright.estimate.time.kernels import WEIGHTS
from trainwright.estimate.time.roofline import CLASSES, Classified
from trainwright.profile.profile import SCALE, Profile, monomials

_PRODUCTS = [CLASSES.index(name) for name in ("gemm", "batched-gemm")]
_ATTENTION = [CLASSES.index(name) for name in ("attention", "batched-gemm")]
_VIEW = CLASSES.index("view")
_OF_LENGTH = [2, 3, 4, 5]
"""Monomials with the length in them."""
_NF4 = "trainwright.dequantize_nf4.default"


def served_table(
    table: Classified, profile: Profile, served: Served, batch: int, tokens: int, *, generates: bool
) -> Classified:
    """Return the operators with the bytes that they move in the engine.

    Of generating, what grows with the context is the cache: attention reads it once, and an
    engine neither copies nor repeats it. Its kernels split the context over the multiprocessors
    (flash-decoding, PagedAttention, arXiv 2309.06180), so that one query is bound by what it
    reads and not by its shape.
    """
    if served.weights is not None:
        table = _lighter(table, served.weights.read_share)
    if not generates or served.shape is None:
        return table
    moved, group = table.bytes.copy(), table.group
    grows = moved[:, _OF_LENGTH].any(axis=1)
    if served.traced:
        moved[:, _OF_LENGTH] *= _share_of_windows(served, tokens)
        table = replace(table, bytes=moved)
        return multiplied_packed(table, profile) if batch == 1 else table
    attends = grows & np.isin(group, _ATTENTION)
    share = _share_of_cache(table, profile, served, attends, batch, tokens)
    moved[:, _OF_LENGTH] *= np.where(attends, share, 1.0)[:, None]
    group = np.where(grows & ~attends, np.uint8(_VIEW), group)
    flops = np.where(attends[:, None], 0.0, table.flops)
    attended = np.where(attends, 0.0, table.attended)
    return replace(table, bytes=moved, group=group, flops=flops, attended=attended)


def _lighter(table: Classified, share: float) -> Classified:
    """Return the operators with products that read so much of their weights' bytes."""
    rows = np.isin(table.group, _PRODUCTS)
    dims, moved = table.dims.copy(), table.bytes.copy()
    moved[rows] -= (1 - share) * dims[WEIGHTS, rows]
    dims[WEIGHTS, rows] *= share
    return replace(table, bytes=moved, dims=dims)


def multiplied_packed(table: Classified, profile: Profile) -> Classified:
    """Return the operators of a single generated token, whose NF4 weights are never unpacked.

    bitsandbytes' ``matmul_4bit`` gives one row of inputs to ``gemv_4bit``, a kernel that reads
    the packed weights; more rows have them written out in 16 bits and read again.
    """
    ops = profile.ops
    if _NF4 not in ops.name:
        return table
    moved, dims, group = table.bytes.copy(), table.dims.copy(), table.group.copy()
    unpacked: int | None = None
    products: set[int] = set()
    for row in profile.segments["decode"].ops.tolist():
        if ops.name[row] == _NF4:
            unpacked = row
        elif unpacked is not None and table.group[row] in _PRODUCTS:
            if row not in products:
                packed = (ops.bytes_read[unpacked] - ops.bytes_written[unpacked]) / SCALE
                moved[row] += packed
                dims[WEIGHTS, row] += packed
            products.add(row)
            group[unpacked] = _VIEW
            unpacked = None
    return replace(table, bytes=moved, dims=dims, group=group)


def _share_of_windows(served: Served, tokens: int) -> float:
    """Return the part of the context that layers see on average, by bytes."""
    assert served.shape is not None, "asked for by the caller"
    seen = sum(
        layer.elements * min(tokens, layer.window or tokens) for layer in served.shape.layers
    )
    whole = served.shape.elements * tokens
    return seen / whole if whole else 1.0


def _share_of_cache(
    table: Classified,
    profile: Profile,
    served: Served,
    attends: NDArray[np.bool_],
    batch: int,
    tokens: int,
) -> float:
    """Return the cache's bytes against what the traced attention reads of the context."""
    assert served.shape is not None, "asked for by the caller"
    runs = np.bincount(profile.segments["decode"].ops, minlength=len(profile.ops.name))
    point = monomials(batch, tokens).astype(np.float64)[_OF_LENGTH]
    rows = table.bytes[:, _OF_LENGTH] @ point
    traced = float((rows * runs)[attends].sum())
    form = served.engine.forms[served.dtype]
    rate = engines.token_bytes(served.shape, form)
    return batch * tokens * rate * _share_of_windows(served, tokens) / traced if traced else 1.0
