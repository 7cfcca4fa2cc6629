"""Where the passes of each micro-batch, and of each block in them, lie in a run.

The log of a traced step marks where a block begins and ends, and what its backward pass asks for.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trainwright.estimate.lifetimes import Layout
from trainwright.profile.profile import PHASES, Segment
from trainwright.profile.structure import Structure
from trainwright.profile.trace import ALLOC, BEGIN, END, PACK, UNPACK

_FORWARD, _BACKWARD = (PHASES.index(name) for name in ("forward", "backward"))


@dataclass(frozen=True, slots=True)
class Span:
    """Where one micro-batch's pass lies in a run, as event numbers."""

    forward: int
    backward: int
    end: int
    blocks: tuple[tuple[int, int, int, int], ...]
    """Of each block in order: forward begins, ends, backward begins, ends. A block without a
    backward pass has -1 for both."""


def spans(layout: Layout, parts: tuple[Structure, ...]) -> Iterator[Span]:
    """Yield the passes of all micro-batches of all steps.

    ``parts`` is what the layout was joined from: the setup, then the steps.
    """
    born = np.full(int(np.abs(layout.storage).max(initial=0)) + 1, -1, dtype=np.int64)
    births = np.flatnonzero(layout.storage > 0)
    born[layout.storage[births[::-1]]] = births[::-1]
    profile = layout.profile
    start = len(parts[0].storage)
    stride = stride_of(parts)
    for number, part in enumerate(parts[1:]):
        runs = _runs(part.phase, start)
        segments = [profile.segments[name] for name in ("micro", "again")
                    if name in profile.segments]  # fmt: skip
        passes = [
            (ahead[1], back[1], back[2])
            for ahead, back in pairwise(runs)
            if (ahead[0], back[0]) == (_FORWARD, _BACKWARD)
        ]
        for segment, (forward, backward, end) in zip(segments, passes, strict=False):
            blocks = _blocks(layout, segment, born, number * stride, (backward, end))
            yield Span(forward, backward, end, tuple(blocks))
        start += len(part.storage)


def stride_of(parts: tuple[Structure, ...]) -> int:
    """Return how far the ids of a step lie beyond those of the step before it."""
    if len(parts) < 3:
        return 0
    one, two = (part.storage[np.argmax(part.storage > 0)] for part in parts[1:3])
    return int(two - one)


def _runs(phase: NDArray[np.uint8], start: int) -> list[tuple[int, int, int]]:
    """Return (phase, first event, event after the last) of each stretch of one phase."""
    edges = [0, *(np.flatnonzero(np.diff(phase)) + 1).tolist(), len(phase)]
    return [(int(phase[a]), start + a, start + b) for a, b in pairwise(edges) if b > a]


def _blocks(
    layout: Layout,
    segment: Segment,
    born: NDArray[np.int64],
    offset: int,
    backward: tuple[int, int],
) -> Iterator[tuple[int, int, int, int]]:
    """Yield where each block's passes begin and end."""
    code, a, c = segment.code, segment.a, segment.c
    allocated = np.flatnonzero(code == ALLOC)
    storages = a[allocated] + offset
    births = np.where(storages < len(born), born[np.minimum(storages, len(born) - 1)], -1)
    allocated, following = allocated[births >= 0], np.append(births[births >= 0], backward[1])

    def events(positions: list[int]) -> list[int]:
        """Return the first birth from each position of the log on."""
        found: list[int] = following[np.searchsorted(allocated, positions)].tolist()
        return found

    def places(kind: int) -> list[tuple[int, int]]:
        at = np.flatnonzero(code == kind)
        return list(zip(a[at].tolist(), at.tolist(), strict=True))

    packed = np.flatnonzero(code == PACK)
    holders = dict(zip(a[packed].tolist(), c[packed].tolist(), strict=True))
    asked: dict[int, int] = {}
    for holder, at in places(UNPACK):
        asked.setdefault(holders.get(holder, -1), at)
    begins, ends = dict(places(BEGIN)), dict(places(END))
    numbers = sorted(begins)
    again = [number for number in numbers if number in asked]
    found = events([asked[number] for number in again])
    back = {number: _before_recompute(layout, at) for number, at in zip(again, found, strict=True)}
    done = backward[1]
    opened, closed = (events([one[number] for number in numbers]) for one in (begins, ends))
    for number, begin, end in zip(numbers, opened, closed, strict=True):
        at = back.get(number, -1)
        late = at < 0 or end > backward[1]
        yield begin, min(end, backward[0]), *((-1, -1) if late else (at, done))
        done = min(done, at) if at >= 0 else done


def _before_recompute(layout: Layout, event: int) -> int:
    """Return the event before which a block's forward pass runs again, or the event itself."""
    ops = layout.profile.ops.phase
    at = event
    while at > 0 and (
        layout.storage[at - 1] < 0
        or (layout.op[at - 1] >= 0 and ops[int(layout.op[at - 1])] in ("forward", "recompute"))
    ):
        if layout.phase[at - 1] != _BACKWARD:
            break
        at -= 1
    return at
