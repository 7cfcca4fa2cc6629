"""Passes of models that no update needs: without gradients between the steps, and done again.

A block without gradients is evaluation where it begins after the update, or where a loader that
trains nothing is asked within it or gave the batch. What a step computes without gradients before
its update (a teacher, a target network, a frozen encoder) is the step's own.

Blocks are seen as they begin and end, and nothing is done within them: no module is hooked, no
device waited for. On a GPU the times are the host's.
"""

import time
from typing import Any

from .clock import BatchClock

IN_MODULES = 0.3
"""Share of the looks into a block without gradients that see a module at work, from which it
evaluates a model; the rest draws, scores or exchanges. Assumed."""


class Passes:
    """Sums of blocks without gradients beside the steps, and of what backward computes again."""

    def __init__(self) -> None:
        self._block = self._again = 0
        """What has begun, by its identity; 0: nothing."""
        self._beside = False
        self.reset()

    def reset(self) -> None:
        """Count from now on; what has begun counts from here."""
        self.count = self.again_count = 0
        self.seconds = self.again_seconds = 0.0
        self._since = self._again_since = time.perf_counter()

    def began(self, block: object, current: BatchClock | None) -> None:
        """Note the begin of a block without gradients; those within it are parts of it."""
        if not self._block:
            self._block, self._since = id(block), time.perf_counter()
            self._beside = current is not None and current.optimized_at is not None

    def asked(self) -> None:
        """Note that a loader is asked: a block that has begun loads batches of its own."""
        self._beside = self._beside or bool(self._block)

    def ended(self, block: object, current: BatchClock | None) -> None:
        """Note the end of a block without gradients."""
        if self._block != id(block):
            return
        self._block, seconds = 0, time.perf_counter() - self._since
        if self._beside:
            self._add(1, seconds)
        elif current is not None and current.given_at is not None:  # whose batch it is, tells
            current.passes += 1
            current.pass_seconds += seconds

    def over(self, timed: BatchClock) -> None:
        """Take what was computed of a batch that is over, where its loader trains nothing."""
        if timed.passes and not timed.trains:
            self._add(timed.passes, timed.pass_seconds)
        timed.passes, timed.pass_seconds = 0, 0.0

    def _add(self, count: int, seconds: float) -> None:
        self.count, self.seconds = self.count + count, self.seconds + seconds

    def beside(self, current: BatchClock | None) -> bool:
        """Whether a block of evaluation has begun, as far as it can be told before its end."""
        waits = current is not None and not current.trains and current.given_at is not None
        return bool(self._block) and (self._beside or waits)

    def again(self, block: object) -> None:
        """Note that backward begins to compute activations again; those within it are parts."""
        if not self._again:
            self._again, self._again_since = id(block), time.perf_counter()

    def again_over(self, block: object | None = None) -> None:
        """Note that they are there; without a block, whichever has begun."""
        if self._again and (block is None or self._again == id(block)):
            self._again = 0
            self.again_count += 1
            self.again_seconds += time.perf_counter() - self._again_since

    def counted(self, in_modules: float | None) -> dict[str, Any]:
        """Return the record's counters; ``in_modules``: share of looks that see a module."""
        found: dict[str, Any] = {
            "recomputations": self.again_count,
            "recomputation_seconds": self.again_seconds,
        }
        if in_modules is not None and in_modules >= IN_MODULES:
            found |= {"evaluations": self.count, "evaluation_seconds": self.seconds}
        return found
