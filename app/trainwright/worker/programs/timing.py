"""Seconds of repeated work on a device: warm-ups, a flushed cache, medians."""

import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

WARM_UPS = 4
"""As NVIDIA's nvbandwidth has it."""
FLUSH_BYTES = 256 << 20
"""Written between two runs, so that no cache holds operands: more than any last level (assumed)."""
LEAST_RUNS, MOST_RUNS = 5, 200


class Stopwatch:
    """Times single runs on one device."""

    def __init__(self, device: str) -> None:
        import torch

        self.device = torch.device(device)
        self.cuda = self.device.type == "cuda"
        size = FLUSH_BYTES if self.cuda else 1
        self._flush = torch.empty(size, dtype=torch.int8, device=self.device)

    def seconds(self, work: Callable[[], Any], budget: float, *, flush: bool = True) -> list[float]:
        """Return the seconds of each run, for about ``budget`` seconds in all."""
        for _ in range(WARM_UPS if self.cuda else 1):
            work()
        self.wait()
        end = time.perf_counter() + budget
        found: list[float] = []
        while len(found) < LEAST_RUNS or (time.perf_counter() < end and len(found) < MOST_RUNS):
            if flush and self.cuda:
                self._flush.zero_()
            found.append(self._once(work))
            if time.perf_counter() > end + 4 * budget:  # slower than anybody thought
                break
        return found

    def _once(self, work: Callable[[], Any]) -> float:
        if not self.cuda:
            began = time.perf_counter()
            work()
            return time.perf_counter() - began
        import torch

        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        work()
        last.record()
        last.synchronize()
        return float(first.elapsed_time(last)) / 1e3

    def wait(self) -> None:
        """Wait for what was asked of the device."""
        if self.cuda:
            import torch

            torch.cuda.synchronize(self.device)


def told(rates: list[float]) -> dict[str, float]:
    """Return median, lowest and highest of a measured rate."""
    return {"value": statistics.median(rates), "low": min(rates), "high": max(rates)}


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Let products of float32 use TF32, or not."""
    import torch

    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high" if allowed else "highest")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
