"""NVIDIA GPUs as their driver sees them."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import pynvml

from trainwright.messages import Message
from trainwright.probe.reading import Missing

T = TypeVar("T")

_WHOLE = {
    pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "probe.no-driver",
    pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "probe.driver-not-loaded",
    pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "probe.driver-updated",
    pynvml.NVML_ERROR_NO_PERMISSION: "probe.no-permission",
}
_ONE = {
    pynvml.NVML_ERROR_NOT_SUPPORTED: "probe.not-supported",
    pynvml.NVML_ERROR_FUNCTION_NOT_FOUND: "probe.old-driver",
    pynvml.NVML_ERROR_NO_PERMISSION: "probe.no-permission",
    pynvml.NVML_ERROR_GPU_IS_LOST: "probe.gpu-lost",
}


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes of a GPU's memory: total is what driver, programs and free memory share."""

    total: int
    reserved: int
    """Kept by the driver and firmware; 0 where the driver counts it among ``used``."""
    used: int


@dataclass(frozen=True, slots=True)
class GpuReading:
    """One GPU."""

    index: int
    name: str | Missing
    memory: Memory | Missing
    compute_capability: tuple[int, int] | Missing
    power_limit_w: float | Missing


@dataclass(frozen=True, slots=True)
class Nvidia:
    """The driver and its GPUs."""

    driver: str | Missing
    gpus: tuple[GpuReading, ...]


def read() -> Nvidia | Missing:
    """Return what NVML says, or why there is nothing to ask."""
    try:
        with _session():
            count = pynvml.nvmlDeviceGetCount()
            driver = _asked(pynvml.nvmlSystemGetDriverVersion, _text)
            return Nvidia(driver, tuple(_gpu(index) for index in range(count)))
    except (pynvml.NVMLError, OSError) as error:
        return Missing(_reason(error, _WHOLE))


@contextmanager
def _session() -> Iterator[None]:
    pynvml.nvmlInit()
    try:
        yield
    finally:
        pynvml.nvmlShutdown()


def _gpu(index: int) -> GpuReading:
    """Return one GPU's readings; a lost one does not take the others along."""
    try:
        handle = pynvml.nvmlDeviceGetHandleByIndex(index)
    except pynvml.NVMLError as error:
        lost = Missing(_reason(error, _ONE))
        return GpuReading(index, lost, lost, lost, lost)
    return GpuReading(
        index,
        name=_asked(lambda: pynvml.nvmlDeviceGetName(handle), _text),
        memory=_asked(lambda: _memory(handle)),
        compute_capability=_asked(
            lambda: pynvml.nvmlDeviceGetCudaComputeCapability(handle),
            lambda pair: (int(pair[0]), int(pair[1])),
        ),
        power_limit_w=_asked(
            lambda: pynvml.nvmlDeviceGetEnforcedPowerLimit(handle), lambda milli: milli / 1000
        ),
    )


def _memory(handle: Any) -> Memory:
    try:
        read = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
        return Memory(int(read.total), int(read.reserved), int(read.used))
    except pynvml.NVMLError_FunctionNotFound:  # drivers before 510
        read = pynvml.nvmlDeviceGetMemoryInfo(handle)
        return Memory(int(read.total), 0, int(read.used))


def _asked(ask: Callable[[], Any], form: Callable[[Any], T] = lambda value: value) -> T | Missing:
    """Return the formed answer, or why there is none.

    Drivers have returned names that are no UTF-8 (UnicodeDecodeError).
    """
    try:
        return form(ask())
    except (pynvml.NVMLError, UnicodeDecodeError) as error:
        return Missing(_reason(error, _ONE))


def _text(value: str | bytes) -> str:
    return value.decode("utf-8") if isinstance(value, bytes) else value


def _reason(error: Exception, known: dict[int, str]) -> Message:
    code = getattr(error, "value", None)
    if isinstance(code, int) and code in known:
        return Message.of(known[code])
    return Message.of("probe.other", reason=str(error) or type(error).__name__)
