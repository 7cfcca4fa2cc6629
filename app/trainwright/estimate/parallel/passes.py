"""Where the passes of each micro-batch, and of each block in them, lie in a run.

The log of a traced step marks where a block begins and ends, and what its backward pass asks for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from trainwright.estimate.lifetimes import Layout
from trainwright.profile.memo import with_profile
from trainwright.profile.profile import PHASES, Profile
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
    stride, stops = stride_of(parts), _stops(layout)
    for number, part in enumerate(parts[1:]):
        runs = _runs(part.phase, start)
        logs = [_log(profile, name) for name in ("micro", "again") if name in profile.segments]
        passes = [
            (ahead[1], back[1], back[2])
            for ahead, back in pairwise(runs)
            if (ahead[0], back[0]) == (_FORWARD, _BACKWARD)
        ]
        for log, (forward, backward, end) in zip(logs, passes, strict=False):
            blocks = _blocks(log, born, number * stride, (backward, end), stops)
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


@dataclass(frozen=True, slots=True)
class _Log:
    """What a segment's log says of its blocks, whatever the run; positions in the log."""

    allocated: NDArray[np.int64]
    storages: NDArray[np.int64]
    """Of each allocation, as the log numbers them."""
    blocks: tuple[int, ...]
    begins: tuple[int, ...]
    ends: tuple[int, ...]
    asked: tuple[tuple[int, int], ...]
    """(block, where backward first asks for what it saved)."""


@with_profile(8)
def _log(profile: Profile, name: str) -> _Log:
    """Return what the log of a segment says; a search asks for the same one for every layout."""
    segment = profile.segments[name]
    code, a, c = segment.code, segment.a, segment.c

    def places(kind: int) -> list[tuple[int, int]]:
        at = np.flatnonzero(code == kind)
        return list(zip(a[at].tolist(), at.tolist(), strict=True))

    packed = np.flatnonzero(code == PACK)
    holders = dict(zip(a[packed].tolist(), c[packed].tolist(), strict=True))
    asked: dict[int, int] = {}
    for holder, at in places(UNPACK):
        asked.setdefault(holders.get(holder, -1), at)
    begins, ends = dict(places(BEGIN)), dict(places(END))
    blocks = tuple(sorted(begins))
    allocated = np.flatnonzero(code == ALLOC)
    return _Log(
        allocated,
        a[allocated].astype(np.int64),
        blocks,
        tuple(begins[block] for block in blocks),
        tuple(ends[block] for block in blocks),
        tuple((block, asked[block]) for block in blocks if block in asked),
    )


def _blocks(
    log: _Log,
    born: NDArray[np.int64],
    offset: int,
    backward: tuple[int, int],
    stops: NDArray[np.int64],
) -> Iterator[tuple[int, int, int, int]]:
    """Yield where each block's passes begin and end.

    In backward, a forward pass that runs again begins behind the last of ``stops``.
    """
    storages = log.storages + offset
    births = np.where(storages < len(born), born[np.minimum(storages, len(born) - 1)], -1)
    allocated, following = log.allocated[births >= 0], np.append(births[births >= 0], backward[1])

    def events(positions: Sequence[int]) -> list[int]:
        """Return the first birth from each position of the log on."""
        found: list[int] = following[np.searchsorted(allocated, positions)].tolist()
        return found

    again = [block for block, _ in log.asked]
    asked = events([at for _, at in log.asked])
    found = stops[np.searchsorted(stops, asked) - 1] + 1
    back = dict(zip(again, found.tolist(), strict=True))
    done = backward[1]
    for number, begin, end in zip(log.blocks, events(log.begins), events(log.ends), strict=True):
        at = back.get(number, -1)
        late = at < 0 or end > backward[1]
        yield begin, min(end, backward[0]), *((-1, -1) if late else (at, done))
        done = min(done, at) if at >= 0 else done


def _stops(layout: Layout) -> NDArray[np.int64]:
    """Return the events that are no part of a forward pass that runs again, from -1 on.

    Such a pass is a stretch of deaths and of forward's operators in a backward pass.
    """
    forward = np.array([phase in ("forward", "recompute") for phase in layout.profile.ops.phase])
    op = layout.op
    runs = np.zeros(len(op), dtype=bool) if not len(forward) else (op >= 0) & forward[op]
    goes_on = ((layout.storage < 0) | runs) & (layout.phase == _BACKWARD)
    return np.append(-1, np.flatnonzero(~goes_on))
