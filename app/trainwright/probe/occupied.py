"""Whether this computer is free to be measured, and what holds its GPUs back meanwhile."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil
import pynvml

from trainwright.messages import Message

LANE_BYTES_PER_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""Of PCI Express by generation, after its encoding (PCI-SIG)."""
SLOWING = {
    "nvmlClocksThrottleReasonSwPowerCap": "power-cap",
    "nvmlClocksThrottleReasonHwSlowdown": "hardware-slowdown",
    "nvmlClocksEventReasonSwThermalSlowdown": "heat",
    "nvmlClocksThrottleReasonHwThermalSlowdown": "heat",
    "nvmlClocksThrottleReasonHwPowerBrakeSlowdown": "power-brake",
}
"""NVML's reasons that lower clocks under load, in the words of live readings."""


def on_battery() -> Message | None:
    """Return why results would not hold, where the computer runs on its battery."""
    with suppress(AttributeError, OSError, RuntimeError, psutil.Error):
        battery = psutil.sensors_battery()
        if battery is not None and battery.power_plugged is False:
            return Message.of("bench.on-battery")
    return None


def busy_gpu() -> Message | None:
    """Return who computes on a GPU; None where nobody does, or nobody can tell."""
    names = []
    with _handles() as handles:
        for handle in handles:
            with suppress(pynvml.NVMLError):
                running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
                names += [_name(each.pid) for each in running if each.pid != os.getpid()]
    return Message.of("bench.gpu-busy", programs=sorted(set(names))) if names else None


def _name(pid: int) -> str:
    try:
        return f"{psutil.Process(pid).name()} ({pid})"
    except psutil.Error:  # in another container or another user's
        return str(pid)


def slowed() -> set[str]:
    """Return what lowers the clocks of any GPU now."""
    found: set[str] = set()
    with _handles() as handles:
        for handle in handles:
            with suppress(pynvml.NVMLError):
                mask = int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
                found |= {word for name, word in SLOWING.items() if mask & getattr(pynvml, name, 0)}
    return found


def links() -> dict[str, float]:
    """Return the bytes/s of each GPU's link as it is now, by the GPU's UUID."""
    found = {}
    with _handles() as handles:
        for handle in handles:
            with suppress(pynvml.NVMLError, KeyError, UnicodeDecodeError):
                lane = LANE_BYTES_PER_S[pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)]
                width = pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle)
                found[str(pynvml.nvmlDeviceGetUUID(handle))] = lane * width
    return found


@contextmanager
def _handles() -> Iterator[list[Any]]:
    """Give the GPUs that NVML reaches; none where there is no driver."""
    try:
        pynvml.nvmlInit()
    except (pynvml.NVMLError, OSError):
        yield []
        return
    try:
        yield list(_reached())
    finally:
        with suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def _reached() -> Iterator[Any]:
    with suppress(pynvml.NVMLError):
        for index in range(pynvml.nvmlDeviceGetCount()):
            with suppress(pynvml.NVMLError):
                yield pynvml.nvmlDeviceGetHandleByIndex(index)
