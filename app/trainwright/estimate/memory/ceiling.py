"""The allocated peak in microseconds: which moments can be the highest, and how high.

Between a birth and the next death live bytes only rise, so that the peak is one of the last
births before a death. Live bytes at each are a polynomial; moments that another one exceeds in
every coefficient are dropped, which leaves a few dozen of tens of thousands, rarely some thousands.
"""

from dataclasses import dataclass

import numpy as np

from trainwright.estimate.cuda import USUAL_WORKSPACE, WORKSPACES
from trainwright.estimate.memory.allocator import MIN_BLOCK, rounded
from trainwright.estimate.memory.layout import Layout
from trainwright.profile.profile import SCALE, Floats, Ints, monomials

_POINTS = ((1, 128), (2, 128), (1, 256), (2, 256), (1, 384), (2, 384))
"""Where hidden sizes are sampled; kernels pad lengths to multiples of 128."""

_COMPARED = 16
"""Moments that all others are compared with; assumed."""


@dataclass(frozen=True, slots=True, eq=False)
class Ceiling:
    """Candidates for the highest moment of one layout."""

    coefficients: Floats
    """Bytes by monomial, first of the layout's length, then of its context and of each window,
    then the number of live storages whose size varies, and of cuBLAS workspaces; (moments, 14)
    without windows."""
    windows: tuple[int, ...] = ()

    def peak(
        self, batch: Ints, sequence: Ints, context: Ints | None = None, *, workspace: int
    ) -> Ints:
        """Return the allocated peak at each point, in bytes; (points,).

        ``workspace`` is the bytes of one of cuBLAS, all that a layout has of the GPU itself.
        Within 256 bytes a live storage of the rounded sum; what blocks hold unsplit is not
        in it, so that it is a little low: typically 0 to 3 %.
        """
        late = sequence if context is None else context
        rounding, spaces = (np.full(len(batch), size) for size in (MIN_BLOCK / 2, float(workspace)))
        lengths = (sequence, late, *(np.minimum(late, window - 1) for window in self.windows))
        basis = np.vstack([*(_basis(batch, length) for length in lengths), rounding, spaces])
        result: Ints = (self.coefficients @ basis).max(axis=0).astype(np.int64)
        return result


def _basis(batch: Ints, sequence: Ints) -> Floats:
    """Return ``monomials`` at many points; (6, points)."""
    b, s = batch.astype(np.float64), sequence.astype(np.float64)
    return np.stack([np.ones_like(b), b, s, b * s, s * s, b * s * s])


def ceiling(layout: Layout) -> Ceiling:
    """Return the moments of a layout that can be its peak."""
    per_row = _polynomials(layout)
    sign = np.sign(layout.storage).astype(np.float64)
    moments = (layout.storage > 0) & np.append(layout.storage[1:] < 0, True)
    live = np.zeros((np.count_nonzero(moments), per_row.shape[1]))
    for column in np.flatnonzero(per_row.any(axis=0)):
        live[:, column] = np.cumsum(sign * per_row[layout.size, column])[moments]
    return Ceiling(_without_lower(live), layout.windows)


def _polynomials(layout: Layout) -> Floats:
    """Return each size row's bytes by monomial, whether it varies, and whether it is a workspace.

    (rows, 14)
    """
    exact: Floats = layout.profile.sizes.astype(np.float64) / SCALE
    varies = layout.profile.sizes[:, 1:].any(axis=1)
    exact[~varies, 0] = rounded(np.ceil(exact[~varies, 0]).astype(np.int64))
    none = np.zeros_like(exact)
    hidden = _hidden_polynomials(layout)
    blocks = 2 + len(layout.windows)
    flags = np.concatenate([*[varies] * blocks, hidden[:, 1:].any(axis=1)])
    spaces = np.array([one.rule in WORKSPACES for one in layout.hidden], dtype=np.bool_)
    hidden[spaces] = 0.0
    workspaces = np.concatenate([np.zeros(blocks * len(exact), np.bool_), spaces])
    columns = [
        np.concatenate([*(exact if row == at else none for row in range(blocks)), rest])
        for at in range(blocks)
        for rest in (hidden if at == 0 else np.zeros_like(hidden),)
    ]
    return np.column_stack([*columns, flags.astype(np.float64), workspaces.astype(np.float64)])


def _hidden_polynomials(layout: Layout) -> Floats:
    if not layout.hidden:
        return np.zeros((0, 6))
    at = np.array([monomials(*point) for point in _POINTS], dtype=np.float64)
    values = [layout.bytes_of(*point)[layout.first_hidden :] for point in _POINTS]
    solved = np.linalg.solve(at, np.array(values, dtype=np.float64)).T
    result: Floats = np.where(np.abs(solved) < 1e-6, 0.0, solved)
    return result


def _without_lower(live: Floats) -> Floats:
    """Return the rows that none of the heaviest reaches in every column, and those themselves.

    Some models have hundreds of rows that nothing exceeds everywhere; comparing all with all
    would take longer than what it saves.
    """
    weight = np.append(np.tile(monomials(8, 1024), live.shape[1] // 6), (1.0, USUAL_WORKSPACE))
    left, kept = live[np.argsort(-(live @ weight), kind="stable")], np.zeros((0, live.shape[1]))
    while len(left) and len(kept) < _COMPARED:
        kept = np.vstack([kept, left[:1]])
        left = left[(left > left[0]).any(axis=1)]
    return np.vstack([kept, left])
