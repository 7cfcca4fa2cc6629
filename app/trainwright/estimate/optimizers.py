"""Optimizers that are not traced: their state by rule, from that of one that is."""

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trainwright.estimate.cuda import ITEMSIZE, Hidden
from trainwright.profile.profile import CATEGORIES, Profile, evaluate

if TYPE_CHECKING:
    from trainwright.estimate.layout import Layout

BITSANDBYTES_SOURCE = (
    "bitsandbytes: optim/optimizer.py, Optimizer8bit.init_state (min_8bit_size=4096,"
    " one fp32 absmax per block of 256)"
)
ONE_MOMENT_SOURCE = "one moment for each parameter: arXiv 2302.06675 (Lion), Muon by K. Jordan"

_BASE = {
    "adamw-8bit": "adamw",
    "paged-adamw-8bit": "adamw",
    "lion": "adamw",
    "muon": "adamw",
}
_SMALLEST_8BIT = 4096
"""Elements below which bitsandbytes keeps fp32 state."""
_BLOCK = 256
"""Elements that share one fp32 absmax."""
_STATE = CATEGORIES.index("optimizer")


def traced_as(optimizer: str) -> str:
    """Return the optimizer that has to be traced for the one asked for."""
    return _BASE.get(optimizer, optimizer)


def traced_name(profile: Profile, optimizer: str) -> str:
    """Return the optimizer whose trace stands for the one asked for."""
    if f"optimizer:{optimizer}" in profile.segments:
        return optimizer
    return traced_as(optimizer)


def as_ruled(layout: "Layout", optimizer: str) -> "Layout":
    """Return a layout traced with AdamW as the optimizer would have made it."""
    if optimizer in ("adamw-8bit", "paged-adamw-8bit"):
        return _eight_bit(layout)
    return _one_moment(layout)


def _eight_bit(layout: "Layout") -> "Layout":
    """Each moment takes one byte an element, and an fp32 absmax for each block of 256."""
    constant = evaluate(layout.profile.sizes, 1, 1)
    known = {one: row for row, one in enumerate(layout.hidden)}
    new_size = layout.size.copy()
    first = 2 * layout.rows
    row_of: dict[int, int] = {}
    states = (layout.storage > 0) & (layout.term == _STATE)
    for event in np.flatnonzero(states).tolist():
        nbytes, op = int(constant[layout.size[event]]), int(layout.op[event])
        elements = nbytes // (ITEMSIZE.get(layout.profile.ops.dtype[op], 4) if op >= 0 else 4)
        if elements < _SMALLEST_8BIT:
            continue
        quantised = elements + 4 * -(-elements // _BLOCK)
        state = Hidden("state-8bit", BITSANDBYTES_SOURCE, nbytes=quantised)
        row_of[int(layout.storage[event])] = first + known.setdefault(state, len(known))
    for event, storage in enumerate(np.abs(layout.storage).tolist()):
        if storage in row_of:
            new_size[event] = row_of[storage]
    return replace(layout, size=new_size, hidden=tuple(known))


def _one_moment(layout: "Layout") -> "Layout":
    """Of AdamW's two moments, born one after the other with equal sizes, keep the first."""
    born = np.flatnonzero((layout.storage > 0) & (layout.term == _STATE))
    dropped: set[int] = set()
    previous = -1
    for event in born.tolist():
        twin = previous >= 0 and layout.size[previous] == layout.size[event]
        if twin:
            dropped.add(int(layout.storage[event]))
        previous = -1 if twin else event
    keep = ~np.isin(np.abs(layout.storage), list(dropped))
    return replace(
        layout,
        storage=layout.storage[keep],
        size=layout.size[keep],
        op=layout.op[keep],
        phase=layout.phase[keep],
        term=layout.term[keep],
        steady=int(np.count_nonzero(keep[: layout.steady])),
    )
