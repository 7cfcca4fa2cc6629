"""What no other setting beats in both memory and time."""

from trainwright.advise.advice import Point
from trainwright.advise.search import Search, Timed

_SHARED = ("precision", "attention", "channels_last", "optimizer", "strategy", "allocator")


def front(search: Search, best: Timed) -> tuple[Point, ...]:
    """Return the trades between micro-batch and checkpointing, fastest first.

    Only in the structure of the best candidate: other precisions and kernels are dominated
    in both nearly everywhere, and each would cost a layout of its own.
    """
    chosen = best.candidate
    alike = [
        timed
        for timed in search.obedient
        if all(getattr(timed.candidate, key) == getattr(chosen, key) for key in _SHARED)
        and (timed.candidate.micro_batch == 1) == (chosen.micro_batch == 1)
    ]
    points: list[Point] = []
    for timed in sorted(alike, key=lambda one: one.seconds):
        peak = search.peak(timed.candidate)
        if not points or peak < points[-1].allocated_bytes:
            may = search.may_fit(timed.candidate)
            points.append(Point(search.settings(timed.candidate), timed.seconds, peak, may))
    return tuple(points)
