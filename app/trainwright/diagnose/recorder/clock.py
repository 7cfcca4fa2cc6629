"""How long batches take: the one in work of each loader, and the sums over those that are over."""

import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from . import surroundings

MOST_TIMES = 4096
"""Latest steps that percentiles are taken of; assumed."""


class BatchClock:
    """The batch in work of one loader."""

    def __init__(self) -> None:
        self.asked_at: float | None = None
        self.given_at: float | None = None
        self.optimized_at: float | None = None
        self.core_at: tuple[float, float] | None = None
        """Seconds on a core and waiting for one, of the training thread, when the batch came."""
        self.idle = 0.0
        """Until the optimizer's end: neither at work nor waiting for a core."""
        self.trains = False
        """Whether an optimizer stepped while its batches were in work: validation has none."""
        self.kept: list[tuple[float, float, float, float]] = []
        """Batches that are over, until it is known whether the loader's train."""
        self.passes = 0
        self.pass_seconds = 0.0
        """Blocks without gradients since the batch came: the step's own where an update follows."""
        self.facts: dict[str, Any] = {}


class UpdateClock:
    """The steps of a loop without a loader: from one update to the next."""

    def __init__(self) -> None:
        self._optimizer: Callable[[], object | None] | None = None
        """The first that updated: others that step beside it are of its step."""
        self._since = 0.0

    def step(self, optimizer: object, now: float) -> float | None:
        """Return how long the step took that this update ends; None where none does.

        Where the first optimizer is no more, as with one for each task, the next is in its place.
        """
        first = self._optimizer is None
        if self._optimizer is None or self._optimizer() is None:
            self._optimizer = weakref.ref(optimizer)
        if self._optimizer() is not optimizer:
            return None
        seconds, self._since = now - self._since, now
        return None if first else seconds


class Times:
    """Sums of the timed batches, and the latest of them one by one."""

    def __init__(self) -> None:
        self.count = 0
        self.total = self.wait = self.other = self.blocked = 0.0
        self._latest: deque[float] = deque(maxlen=MOST_TIMES)
        self._latest_waits: deque[float] = deque(maxlen=MOST_TIMES)

    def add(self, seconds: float, wait: float, other: float, blocked: float = 0.0) -> None:
        """Take one batch into the sums."""
        self.count += 1
        self.total += seconds
        self.wait += wait
        self.other += other
        self.blocked += blocked
        self._latest.append(seconds)
        self._latest_waits.append(wait)

    def summary(self, parts: dict[str, float], *, batches: bool = True) -> dict[str, Any]:
        """Return the means a batch; ``parts`` are sums that the script timed itself.

        Where no batches were seen coming, nobody knows what a step waited for.
        """
        timed = {name: spent / self.count for name, spent in parts.items() if spent}
        known = self.wait / self.count + self.other / self.count + sum(timed.values())
        found = {
            "steps": self.count,
            "seconds": self.total / self.count,
            "p95_seconds": _p95(self._latest),
            **timed,
        }
        if batches:
            found |= {
                "data_wait": self.wait / self.count,
                "data_wait_p95": _p95(self._latest_waits),
                "compute": max(0.0, self.total / self.count - known),
                "other": self.other / self.count,
            }
        return found


def on_core() -> tuple[float, float]:
    """Return this thread's seconds on a core, and those that it waited for one."""
    return time.thread_time(), surroundings.own_delay()


def idle(timed: BatchClock, now: float) -> float:
    """Return for how long the thread has neither worked nor been ready to since the batch came."""
    if timed.given_at is None or timed.core_at is None:
        return 0.0
    worked, starved = (
        later - earlier for earlier, later in zip(timed.core_at, on_core(), strict=True)
    )
    return max(0.0, now - timed.given_at - worked - starved)


def _p95(values: Iterable[float]) -> float:
    ranked = sorted(values)
    return ranked[int(0.95 * (len(ranked) - 1))]
