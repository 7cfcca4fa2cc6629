"""What no other setting beats in both memory and time."""

from trainwright.advise import space
from trainwright.advise.advice import Point
from trainwright.advise.search import Search
from trainwright.advise.walk import Timed

_BATCHES = 24
"""Micro-batches that are shown at most; assumed, a chart tells no more apart."""


def front(search: Search, best: Timed) -> tuple[Point, ...]:
    """Return the trades between micro-batch and checkpointing, fastest first.

    Only in the structure of the best candidate: other precisions and kernels are dominated
    in both nearly everywhere, and each would cost a layout of its own.
    """
    chosen = best.candidate
    known = space.batches(search.facts.settings, search.plan.workload, search.gpus(chosen))
    every = [pair for pair in known if (pair[0] == 1) == (chosen.micro_batch == 1)]
    step = -(-len(every) // _BATCHES)
    pairs = dict.fromkeys([*every[::step], (chosen.micro_batch, chosen.accumulation)])
    found = [
        search.alike(chosen, micro_batch=micro, accumulation=steps, checkpointing=policy)
        for micro, steps in pairs
        for policy in search.obedient.space.open["checkpointing"]
    ]
    alike = [timed for timed in found if timed is not None]
    points: list[Point] = []
    for timed in sorted(alike, key=lambda one: one.seconds):
        peak = search.peak(timed.candidate)
        if not points or peak < points[-1].allocated_bytes:
            may = search.may_fit(timed.candidate)
            points.append(Point(search.settings(timed.candidate), timed.seconds, peak, may))
    return tuple(points)
