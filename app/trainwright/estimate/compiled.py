"""Memory of a compiled model: between what eager code saves and what cannot be computed again.

torch.compile cuts the joint graph of forward and backward where the least must be saved: what
pointwise operators make is computed again in backward, fused into what reads it; what products,
convolutions and attention make is saved. How far it goes depends on the graph, so that an
estimate has two bounds. CUDA graphs, whose pools take more, belong to ``mode="reduce-overhead"``,
which nothing here writes.
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainwright.estimate.lives import Layout
from trainwright.profile.profile import PHASES, Ints, Profile

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
    shrunk = (again & dies_in_backward)[np.abs(layout.storage)]
    return replace(
        layout,
        profile=_with_shrunk(layout.profile, kept),
        size=np.where(shrunk, layout.size + layout.rows, layout.size).astype(np.int32),
    )


@lru_cache(maxsize=64)
def _with_shrunk(profile: Profile, kept: float) -> Profile:
    """Return the profile with every size once more at a share of it."""
    shrunk: Ints = np.rint(profile.sizes * kept).astype(np.int64)
    return replace(profile, sizes=np.concatenate([profile.sizes, shrunk]))


@lru_cache(maxsize=64)
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
