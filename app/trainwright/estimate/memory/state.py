"""Optimizer state of a run: exchanged for another library's, or kept elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from trainwright.estimate.cuda import ITEMSIZE, Hidden
from trainwright.estimate.lifetimes import TERM, Insert, Layout, inserted, without
from trainwright.estimate.optimizers import RULES, Kept, Rule
from trainwright.profile.profile import PHASES, evaluate

_MOMENTS = {"adamw": 2, "sgd": 1}
"""Tensors of a parameter's shape that torch's optimizers keep for it."""
_MINIMAL_SIZE = 4096
"""Elements below which a parameter stays with an optimizer on the device: ``minimal_size``."""
_UPDATING = PHASES.index("optimizer")

_COUNTER = 4
"""Bytes of the step that torch's fused AdamW keeps beside each parameter's moments."""


@dataclass(frozen=True, slots=True)
class Owned:
    """The traced state of one parameter."""

    events: tuple[int, ...]
    """Its births, in order: perhaps a step counter, then the moments."""
    elements: int
    itemsize: int


def as_ruled(layout: Layout, optimizer: str) -> Layout:
    """Return a layout traced with AdamW as the optimizer would have made it.

    Raises:
        KeyError: there is no rule for the optimizer.
    """
    rule = RULES[optimizer]
    owned = tuple(states(layout, moments=2))
    inserts, paged = [], 0
    tables = list(rule.tables)
    for one in owned:
        kept = rule.state(one.elements, one.itemsize)
        paged += sum(tensor.nbytes for tensor in kept if tensor.paged)
        if tables and len(kept) > 2:
            kept, tables = (*tables, *kept), []
        if here := tuple(_hidden(rule, tensor) for tensor in kept if not tensor.paged):
            inserts.append(Insert(one.events[0], here, "optimizer", lasts=True))
    ruled = inserted(layout, inserts)
    dropped = {int(layout.storage[event]) for one in owned for event in one.events}
    ruled = without(ruled, dropped)
    return replace(ruled, aside=(*layout.aside, ("paged", paged))) if paged else ruled


def states(layout: Layout, moments: int) -> Iterator[Owned]:
    """Yield the traced state of each parameter, in the order of the parameters.

    ``moments`` is how many tensors of the parameter's shape the traced optimizer keeps.
    """
    constant = evaluate(layout.profile.sizes, 1, 1)
    born = np.flatnonzero((layout.storage > 0) & (layout.term == TERM["optimizer"])).tolist()
    sizes = [int(constant[layout.size[event]]) for event in born]
    counted = moments > 1 and _counted(sizes, moments + 1)
    stride = moments + counted
    for first in range(0, len(born), stride):
        events = tuple(born[first : first + stride])
        op = int(layout.op[events[-1]])
        itemsize = ITEMSIZE.get(layout.profile.ops.dtype[op], 4) if op >= 0 else 4
        yield Owned(events, sizes[first + stride - 1] // itemsize, itemsize)


def offloaded(layout: Layout, optimizer: str) -> Layout:
    """Return the layout of torchao's CPUOffloadOptimizer, ``offload_gradients=False``.

    The host holds a copy of each parameter and of its gradient, both pinned, and the state;
    the device only what is smaller than ``minimal_size``. Gradients stay on the device until
    the step is done, and the step takes nothing there. Source: torchao 0.18,
    ``optim/cpu_offload.py``.
    """
    owned = tuple(states(layout, _MOMENTS[optimizer]))
    large = [one for one in owned if one.elements >= _MINIMAL_SIZE]
    constant = evaluate(layout.profile.sizes, 1, 1)
    moved = [event for one in large for event in one.events]
    weights = sum(one.elements * one.itemsize for one in large)
    passing = (layout.phase == _UPDATING) & (layout.storage > 0)
    passing &= layout.term == TERM["temporaries"]
    gone = {*layout.storage[moved].tolist(), *layout.storage[passing].tolist()}
    aside = (
        ("host-weights", weights),
        ("host-gradients", weights),
        ("host-state", int(constant[layout.size[moved]].sum())),
    )
    return replace(without(layout, gone), aside=(*layout.aside, *aside))


def _counted(sizes: list[int], stride: int) -> bool:
    """Return whether a step counter precedes each parameter's moments."""
    return len(sizes) % stride == 0 and all(size == _COUNTER for size in sizes[::stride])


def _hidden(rule: Rule, kept: Kept) -> Hidden:
    return Hidden(kept.name, rule.source, nbytes=kept.nbytes)
