"""Memory of a compiled model: between what eager code saves and what cannot be computed again.

torch.compile cuts the joint graph of forward and backward where the least must be saved: what
pointwise operators make is computed again in backward, fused into what reads it; what products,
convolutions and attention make is saved, and so is what a product of trained weights reads, since
the weights' gradient would have to write it out again. How far it goes depends on the graph, so
that an estimate has two bounds. CUDA graphs, whose pools take more, belong to
``mode="reduce-overhead"``, which nothing here writes.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainwright.estimate.cuda import GEMMS, ITEMSIZE
from trainwright.estimate.lifetimes import Layout
from trainwright.profile.memo import KEPT
from trainwright.profile.profile import PHASES, Ints, Profile, evaluate

SOURCE = "torch: torch/_functorch/partitioners.py, min_cut_rematerialization_partition"

_AGAIN = frozenset(
    {
        *("mul", "sub", "div", "neg", "pow", "exp", "rsqrt", "sqrt", "reciprocal", "abs"),
        *("relu", "silu", "gelu", "sigmoid", "tanh", "erf", "softplus", "hardtanh", "clamp"),
        *("leaky_relu", "elu", "hardswish", "hardsigmoid", "mish", "where", "rsub", "addcmul"),
        *("_to_copy", "clone", "cat", "cos", "sin", "native_dropout", "dropout", "masked_fill"),
        *("native_layer_norm", "native_group_norm", "_fused_rms_norm", "_softmax"),
        *("native_batch_norm", "cudnn_batch_norm", "_native_batch_norm_legit"),
    }
)
"""Operators whose results the partitioner computes again, or that inductor takes apart into
such and sums that it saves. ``add`` is left out: of each residual sum and its addends one
is saved, and they are of one size."""

_BACKWARD = PHASES.index("backward")
_HEAD = -2
"""Region of head and loss: the loss is not in the compiled model of the exported programs."""


def fused(layout: Layout, kept: float) -> Layout:
    """Return the layout with what may be computed again at a share ``kept`` of its size."""
    if kept == 1:
        return layout
    ids = int(np.abs(layout.storage).max(initial=0)) + 1
    births = layout.storage > 0
    dies_in_backward = np.zeros(ids, dtype=np.bool_)
    dies_in_backward[-layout.storage[~births]] = layout.phase[~births] == _BACKWARD
    made = births & (layout.op >= 0)
    again = np.zeros(ids, dtype=np.bool_)
    again[layout.storage[made]] = _recomputable(layout.profile)[layout.op[made]]
    again[_read_by_products(layout)] = False
    shrunk = (again & dies_in_backward)[np.abs(layout.storage)]
    return replace(
        layout,
        profile=_with_shrunk(layout.profile, kept),
        size=np.where(shrunk, layout.size + layout.rows, layout.size).astype(np.int32),
    )


def _read_by_products(layout: Layout) -> Ints:
    """Return the storages that products of forward read: the newest as large as their left side.

    (``partitioners.py``: ``ban_recompute_materialized_backward``.)
    """
    profile = layout.profile
    point = next(iter(profile.points), (1, 1))
    operands = _operand_bytes(profile)
    sizes = evaluate(profile.sizes, *point)
    born = np.flatnonzero((layout.storage > 0) & (layout.op >= 0) & (layout.phase != _BACKWARD))
    newest: dict[int, int] = {}
    read = []
    for storage, size, op in zip(
        layout.storage[born].tolist(), layout.size[born].tolist(), layout.op[born].tolist(),
        strict=True,
    ):  # fmt: skip
        if operands[op] in newest:
            read.append(newest[operands[op]])
        if size < len(sizes):
            newest[int(sizes[size])] = storage
    return np.array(read, dtype=np.int64)


@lru_cache(maxsize=KEPT)
def _operand_bytes(profile: Profile) -> dict[int, int]:
    """Return the bytes of the left side of each op row; -1 where it is not a product."""
    point = next(iter(profile.points), (1, 1))
    found = {}
    for row, name in enumerate(profile.ops.name):
        found[row] = -1
        if name.startswith(GEMMS) and profile.ops.phase[row] in ("forward", "recompute"):
            batch, rows, _, inner = evaluate(profile.ops.dims[row], *point).tolist()[:4]
            found[row] = batch * rows * inner * ITEMSIZE.get(profile.ops.dtype[row], 4)
    return found


@lru_cache(maxsize=KEPT)
def _with_shrunk(profile: Profile, kept: float) -> Profile:
    """Return the profile with every size once more at a share of it."""
    shrunk: Ints = np.rint(profile.sizes * kept).astype(np.int64)
    return replace(profile, sizes=np.concatenate([profile.sizes, shrunk]))


@lru_cache(maxsize=KEPT)
def _recomputable(profile: Profile) -> NDArray[np.bool_]:
    """Return which op rows are of the forward pass and fuse into others."""
    rows = zip(profile.ops.name, profile.ops.phase, profile.ops.region, strict=True)
    return np.array(
        [
            phase in ("forward", "recompute") and region != _HEAD and _plain(name) in _AGAIN
            for name, phase, region in rows
        ],
        dtype=np.bool_,
    )


def _plain(name: str) -> str:
    """Return ``relu`` from ``aten.relu_.default``."""
    return name.split(".")[1].rstrip("_") if "." in name else name
