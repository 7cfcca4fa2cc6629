"""The update of AdamW without ``fused``, as scripts call it, derived from the trace of the fused.

The clipping before it, its moments, and what dies with the step are the same. The step counters
live on the host, and one temporary of each parameter's size lives until the end
(``_multi_tensor_adamw`` of torch/optim/adamw.py, torch 2.10 to 2.13).
"""

from dataclasses import replace
from functools import lru_cache

import numpy as np

from trainwright.profile.memo import KEPT
from trainwright.profile.profile import Ints, OpTable, Profile, Segment
from trainwright.profile.trace import ALLOC, FREE

FUSED, FOREACH = "optimizer:adamw", "optimizer:adamw-foreach"
_MOMENTS, _COUNTERS, _UPDATE = (
    "aten.zeros_like.default",
    "aten.zeros.default",
    "aten._fused_adamw_.default",
)
_ROOT = "aten._foreach_sqrt.default"
_STEPS = (
    *(("aten._foreach_mul_.Scalar", 1), ("aten._foreach_lerp_.Scalar", 2)),
    *(("aten._foreach_mul_.Scalar", 1), ("aten._foreach_addcmul_.Scalar", 3)),
    *((_ROOT, 1), ("aten._foreach_div_.ScalarList", 1)),
    *(("aten._foreach_add_.Scalar", 1), ("aten._foreach_addcdiv_.ScalarList", 3)),
)
"""Operators of the update, and how many times the parameters' size each reads; it writes once."""


@lru_cache(maxsize=KEPT)
def with_foreach(profile: Profile) -> Profile | None:
    """Return the profile with the segment ``optimizer:adamw-foreach``.

    None without a fused update in the trace, and where its parameters are of several types: those
    are updated one type after the other.
    """
    fused = profile.segments.get(FUSED)
    if fused is None:
        return None
    ops, names = fused.ops, [profile.ops.name[row] for row in fused.ops.tolist()]
    made = [at for at, name in enumerate(names) if name == _MOMENTS]
    types = {profile.ops.dtype[ops[at]] for at in made}
    if len(types) != 1 or names[-1] != _UPDATE or names.count(_COUNTERS) * 2 != len(made):
        return None
    table, rows = _with_steps(profile.ops, ops[made[::2]].astype(np.int64), types.pop())
    first = names.index(_COUNTERS)  # what comes before it clips
    log = np.stack([fused.code, fused.a, fused.b, fused.c], axis=1).astype(np.int64)
    born = log[:, 0] == ALLOC
    moments = log[born & np.isin(log[:, 3], made)]
    kept = log[: np.argmax(born & (log[:, 3] >= first))]
    at_end = log[log[:, 0] == FREE][(kept[:, 0] == FREE).sum() :, 1]
    fresh = 1 + max(max(s.a.max(initial=0), s.b.max(initial=0)) for s in profile.segments.values())
    own = np.arange(fresh, fresh + len(moments) * 3 // 2)
    moments[:, 1], roots = own[: len(moments)], own[len(moments) :]
    moments[:, 3] = first + np.arange(len(moments))
    root = first + len(moments) + [name for name, _ in _STEPS].index(_ROOT)
    taken = _events(ALLOC, roots, moments[::2, 2], root)
    freed = _events(FREE, np.sort(np.append(at_end, roots)))
    whole = np.concatenate([kept, moments, taken, freed])
    code, a, b, c = whole.astype(np.int32).T.copy()
    ran = np.concatenate([ops[:first], ops[made], rows]).astype(np.int32)
    segment = Segment(code.astype(np.uint8), a, b, c, ran, fused.inputs)
    category = profile.category | dict.fromkeys(moments[:, 1].tolist(), "optimizer")
    segments = {**profile.segments, FOREACH: segment}
    return replace(profile, segments=segments, ops=table, category=category)


def _events(code: int, storages: Ints, sizes: Ints | int = 0, op: int = 0) -> Ints:
    """Return births or deaths in rows of the log; (n, 4)."""
    events = np.zeros((len(storages), 4), dtype=np.int64)
    events[:, 0], events[:, 1], events[:, 2], events[:, 3] = code, storages, sizes, op
    return events


def _with_steps(ops: OpTable, moments: Ints, dtype: str) -> tuple[OpTable, Ints]:
    """Return the table with the update's rows, and their numbers.

    ``moments`` are the rows that make one moment of each parameter.
    """
    whole, elements = ops.bytes_written[moments].sum(axis=0), ops.dims[moments].sum(axis=0)
    count = len(_STEPS)
    table = OpTable(
        name=(*ops.name, *(name for name, _ in _STEPS)),
        phase=(*ops.phase, *("optimizer",) * count),
        region=(*ops.region, *(ops.region[moments[0]],) * count),
        dtype=(*ops.dtype, *(dtype,) * count),
        flops=np.concatenate([ops.flops, np.zeros((count, *ops.flops.shape[1:]), np.int64)]),
        bytes_read=np.concatenate([ops.bytes_read, [read * whole for _, read in _STEPS]]),
        bytes_written=np.concatenate([ops.bytes_written, [whole] * count]),
        dims=np.concatenate([ops.dims, [elements] * count]),
    )
    return table, len(ops.name) + np.arange(count)
