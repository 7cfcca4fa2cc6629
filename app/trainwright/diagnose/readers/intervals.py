"""Sets of times as sorted, disjoint intervals: arrays of shape (n, 2)."""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Intervals: TypeAlias = NDArray[np.float64]
NOTHING: Intervals = np.empty((0, 2))


def union(starts: ArrayLike, ends: ArrayLike) -> Intervals:
    """Return the times that lie in any of the intervals."""
    begin, end = np.asarray(starts, dtype=float), np.asarray(ends, dtype=float)
    if begin.size == 0:
        return NOTHING
    order = np.argsort(begin, kind="stable")
    begin, end = begin[order], np.maximum.accumulate(end[order])
    first = np.concatenate(([True], begin[1:] > end[:-1]))
    last = np.concatenate((first[1:], [True]))
    return np.column_stack((begin[first], end[last]))


def either(one: Intervals, other: Intervals) -> Intervals:
    """Return the times in one or the other."""
    both = np.concatenate((one, other))
    return union(both[:, 0], both[:, 1])


def minus(one: Intervals, other: Intervals) -> Intervals:
    """Return the times in ``one`` and not in ``other``."""
    if len(one) == 0 or len(other) == 0:
        return one
    low, high = one[0, 0], one[-1, 1]
    gaps = np.column_stack((np.append(low, other[:, 1]), np.append(other[:, 0], high)))
    return both(one, gaps[gaps[:, 0] < gaps[:, 1]])


def both(one: Intervals, other: Intervals) -> Intervals:
    """Return the times in one and the other."""
    if len(one) == 0 or len(other) == 0:
        return NOTHING
    first = np.searchsorted(other[:, 1], one[:, 0], side="right")
    last = np.searchsorted(other[:, 0], one[:, 1], side="left")
    counts = np.maximum(last - first, 0)
    mine = np.repeat(np.arange(len(one)), counts)
    offsets = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    theirs = np.repeat(first, counts) + offsets
    starts = np.maximum(one[mine, 0], other[theirs, 0])
    ends = np.minimum(one[mine, 1], other[theirs, 1])
    held = starts < ends
    return np.column_stack((starts[held], ends[held]))


def within(times: Intervals, start: float, end: float) -> Intervals:
    """Return the times from ``start`` to ``end``."""
    return both(times, np.array([[start, end]]))


def length(times: Intervals) -> float:
    """Return how long they are, all together."""
    return float((times[:, 1] - times[:, 0]).sum()) if len(times) else 0.0
