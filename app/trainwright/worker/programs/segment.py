"""The log of one part of the step: its codes, and the form that it is left in.

What the codes mean is stated in ``trainwright/profile/trace.py``.
"""

from dataclasses import dataclass, field
from typing import Any

ALLOC, FREE, PACK, RELEASE, UNPACK, COPY_DEAD, BEGIN, END = range(8)
OUTSIDE, HEAD, RECURRENT = -1, -2, -3

Event = tuple[int, int, int, int]


@dataclass
class Segment:
    """The log of one part of the step."""

    events: list[Event] = field(default_factory=list)
    ops: list[int] = field(default_factory=list)
    """Row of each operator call."""
    first: list[int] = field(default_factory=list)
    """Storage of each call's first operand."""
    viewed: list[bool] = field(default_factory=list)
    """Whether that operand is a view of what was made, and not that tensor itself."""
    inputs: dict[int, list[int]] = field(default_factory=dict)


def merge_accumulation(segment: Segment, aliases: dict[int, int], rows: list[Any]) -> None:
    """Undo out-of-place sums of gradients, in place in the segment and the aliases.

    On real tensors autograd adds a gradient into the first one that came, in place; under a
    dispatch mode it makes a new tensor. So in backward ``add(a, b) -> c``, where ``a`` dies before
    the next birth, means that ``c`` is ``a``. But autograd does not write into a view, such as the
    transposed product that is the gradient of a linear layer's weight, or one that was given
    its third dimension back: then ``c`` is a tensor of its own. (``can_accumulate_inplace`` in
    torch's input_buffer.cpp; what torch's profiler logs agrees.)
    """
    events = segment.events
    dropped: set[int] = set()

    def root(storage: int) -> int:
        while storage in aliases:
            storage = aliases[storage]
        return storage

    for place, (code, storage, _, op) in enumerate(events):
        if code != ALLOC or op < 0:
            continue
        name, phase = rows[segment.ops[op]][:2]
        if name != "aten.add.Tensor" or phase != "backward":
            continue
        augend = segment.first[op]
        if segment.viewed[op]:
            continue
        for later in range(place + 1, len(events)):
            if events[later][0] == ALLOC:
                break
            if events[later][:2] == (FREE, augend) and later not in dropped:
                dropped |= {place, later}
                aliases[storage] = augend
                break
    storages = (ALLOC, FREE)
    segment.events = [
        (code, root(a), b, c) if code in storages else (code, a, root(b) if code == PACK else b, c)
        for place, (code, a, b, c) in enumerate(events)
        if place not in dropped
    ]


def canonical(events: list[Event]) -> list[Event]:
    """Sort each run of deaths: their order within a run is chance and has no effect."""
    result: list[Event] = []
    run: list[Event] = []
    for event in events:
        if event[0] in (FREE, RELEASE, COPY_DEAD):
            run.append(event)
            continue
        result += sorted(run)
        run.clear()
        result.append(event)
    return result + sorted(run)
