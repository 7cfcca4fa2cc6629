"""Whether this computer is free to be measured, and what holds its GPUs back meanwhile."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

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

PATIENCE_S = 3.0
"""That a driver has to answer; assumed, one takes milliseconds."""

T = TypeVar("T")


def on_battery() -> Message | None:
    """Return why results would not hold, where the computer runs on its battery."""
    with suppress(AttributeError, OSError, RuntimeError, psutil.Error):
        battery = psutil.sensors_battery()
        if battery is not None and battery.power_plugged is False:
            return Message.of("bench.on-battery")
    return None


def busy_gpu() -> Message | None:
    """Return who computes on a GPU; None where nobody does, or nobody can tell."""
    names = {name for found in _of_each(_programs) for name in found}
    return Message.of("bench.gpu-busy", programs=sorted(names)) if names else None


def slowed() -> set[str]:
    """Return what lowers the clocks of any GPU now."""
    return {word for found in _of_each(_slowing) for word in found}


def links() -> dict[str, float]:
    """Return the bytes/s of each GPU's link as it is now, by the GPU's UUID."""
    return dict(_of_each(_link))


def _programs(handle: Any) -> list[str]:
    running = pynvml.nvmlDeviceGetComputeRunningProcesses(handle)
    return [_name(each.pid) for each in running if each.pid != os.getpid()]


def _name(pid: int) -> str:
    try:
        return f"{psutil.Process(pid).name()} ({pid})"
    except psutil.Error:  # in another container, or another user's
        return str(pid)


def _slowing(handle: Any) -> list[str]:
    mask = int(pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
    return [word for name, word in SLOWING.items() if mask & getattr(pynvml, name, 0)]


def _link(handle: Any) -> tuple[str, float]:
    lane = LANE_BYTES_PER_S[pynvml.nvmlDeviceGetCurrPcieLinkGeneration(handle)]
    width = int(pynvml.nvmlDeviceGetCurrPcieLinkWidth(handle))
    return str(pynvml.nvmlDeviceGetUUID(handle)), lane * width


def _of_each(ask: Callable[[Any], T]) -> list[T]:
    """Return what is read of each GPU, without those that do not say.

    A driver that does not answer in time is left behind in its thread.
    """
    found: list[T] = []
    thread = threading.Thread(target=_read, args=(ask, found), daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return list(found)


def _read(ask: Callable[[Any], T], found: list[T]) -> None:
    with suppress(pynvml.NVMLError, OSError):
        pynvml.nvmlInit()
        try:
            for index in range(pynvml.nvmlDeviceGetCount()):
                with suppress(pynvml.NVMLError, KeyError, UnicodeDecodeError):
                    found.append(ask(pynvml.nvmlDeviceGetHandleByIndex(index)))
        finally:
            pynvml.nvmlShutdown()
