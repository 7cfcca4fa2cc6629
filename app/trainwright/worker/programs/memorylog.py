"""What memory really held: torch's log of its CPU allocator, the process, the GPU's driver."""

import contextlib
import re
import sys
from bisect import bisect_left, bisect_right
from typing import Any

import torch

CONVOLUTIONS = (
    "aten::mkldnn_convolution",
    "aten::_slow_conv2d_forward",
    "aten::slow_conv3d_forward",
    "aten::convolution_backward",
)
"""Operators that compute a convolution on the CPU, or its gradients."""


class HostLog:
    """Every block that torch's CPU allocator hands out and takes back, by torch's profiler.

    No dispatch mode, no fake tensors: the allocator itself reports, so what is seen does not
    depend on how the tracer sees a step. What kernels take for themselves is in it.
    """

    def __init__(self) -> None:
        activities = [torch.profiler.ProfilerActivity.CPU]
        self._profile = torch.profiler.profile(activities=activities, profile_memory=True)

    def __enter__(self) -> "HostLog":
        self._profile.__enter__()
        return self

    def __exit__(self, *failure: Any) -> None:
        self._profile.__exit__(*failure)

    def peak(self) -> int:
        """Return the most bytes that lived at once."""
        return max((living for _, living in living_bytes(self._profile)), default=0)

    def peak_between_convolutions(self) -> int:
        """Return the most bytes that lived while no convolution was computed."""
        return max((living for _, living in self.between_convolutions()), default=0)

    def between_convolutions(self) -> list[tuple[int, int]]:
        """Return (nanoseconds, bytes living) after each event, without those in convolutions.

        On the CPU those are oneDNN's, which takes memory of its own while it computes: copies of
        the weights in its layout, and where pictures are smaller than the kernel four times the
        weights for each thread (``jit_gemm_convolution_utils``: it books their bytes as floats).
        """
        events = self._profile.profiler.kineto_results.events()
        spans = [
            (event.start_ns(), event.start_ns() + event.duration_ns())
            for event in events
            if event.name() in CONVOLUTIONS
        ]
        living = living_bytes(self._profile)
        moments = [moment for moment, _ in living]
        within: set[int] = set()
        for begin, end in spans:  # what is left at the last change within is what the step keeps
            within.update(range(bisect_left(moments, begin), bisect_right(moments, end) - 1))
        return [each for at, each in enumerate(living) if at not in within]


def living_bytes(profile: Any, before: int = 0, device: str = "CPU") -> list[tuple[int, int]]:
    """Return (nanoseconds, bytes living on the device) after each event of a profile."""
    events = profile.profiler.kineto_results.events()
    changes = sorted(
        (event.start_ns(), event.nbytes())
        for event in events
        if event.name() == "[memory]" and event.device_type().name == device
    )
    found, living = [], before
    for moment, change in changes:
        living += change
        found.append((moment, living))
    return found


def resident(*, reset: bool = False) -> int | None:
    """Return the most memory that this process held since the last reset; Linux only."""
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as file:
            found = re.search(r"^VmHWM:\s+(\d+) kB", file.read(), re.MULTILINE)
        if reset:
            with open("/proc/self/clear_refs", "w", encoding="ascii") as file:
                file.write("5")  # proc(5): resets the peak resident set size
    except OSError:
        return None
    return int(found[1]) * 1024 if found else None


def device_used() -> int | None:
    """Return the bytes in use on the GPU by all programs, by NVML or else by the CUDA runtime."""
    with contextlib.suppress(Exception):  # NVML's errors are many, and the package may lack
        return int(torch.cuda.device_memory_used(0))
    if not torch.cuda.is_initialized():  # the runtime would make the context that is measured
        return None
    free, total = torch.cuda.mem_get_info()
    return int(total - free)


def available() -> int | None:
    """Return the system's memory that is free now, or what the container leaves of it; Linux."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            found = re.search(r"^MemAvailable:\s+(\d+) kB", file.read(), re.MULTILINE)
    except OSError:
        return None
    free = int(found[1]) * 1024 if found else None
    with contextlib.suppress(OSError, ValueError):
        texts = []
        for name in ("memory.max", "memory.current"):
            with open(f"/sys/fs/cgroup/{name}", encoding="ascii") as file:
                texts.append(int(file.read()))  # "max" has no number
        left = texts[0] - texts[1]
        free = left if free is None else min(free, left)
    return free


def limit_data(nbytes: int | None) -> None:
    """Limit what this process may write to: torch maps far more address space than it uses."""
    if nbytes is None or sys.platform != "linux":
        return
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = nbytes if hard == resource.RLIM_INFINITY else min(nbytes, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
