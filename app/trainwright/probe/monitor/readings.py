"""The live readings that are kept over time: what each is called, its unit, and where it is."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from trainwright.probe.reading import Missing
from trainwright.probe.sample import Activity, GpuSample, HostSample, Sample, SliceSample

Unit = Literal["share", "bytes", "bytes/s", "celsius", "watts", "megahertz"]


@dataclass(frozen=True, slots=True)
class Reading:
    """One kind of reading; its name for people is ``monitor.reading.<key>``."""

    key: str
    unit: Unit
    take: Callable[[Any], float | Missing]
    """Takes the value from the sample of its device."""


def _field(key: str, unit: Unit) -> Reading:
    def take(device: Any) -> float | Missing:
        value: float | Missing = getattr(device, key)
        return value

    return Reading(key, unit, take)


def _activity(key: str) -> Reading:
    def take(device: GpuSample | SliceSample) -> float | Missing:
        value: float | Missing = getattr(device.activity, key)
        return value

    return Reading(key, "share", take)


ACTIVITY = tuple(_activity(key) for key in Activity.__slots__)
HOST = (
    _field("cpu", "share"),
    _field("memory_used", "bytes"),
    _field("swap_used", "bytes"),
    _field("disk_read", "bytes/s"),
    _field("disk_written", "bytes/s"),
    _field("pressure_cpu", "share"),
    _field("pressure_io", "share"),
    _field("pressure_memory", "share"),
    _field("shm_used", "bytes"),
)
GPU = (
    _field("utilisation", "share"),
    _field("memory_used", "bytes"),
    _field("temperature_c", "celsius"),
    _field("power_w", "watts"),
    _field("sm_clock_mhz", "megahertz"),
    _field("memory_clock_mhz", "megahertz"),
    _field("pcie_sent", "bytes/s"),
    _field("pcie_received", "bytes/s"),
    *ACTIVITY,
)
SLICE = (_field("memory_used", "bytes"), *ACTIVITY)


@dataclass(frozen=True, slots=True, order=True)
class Series:
    """A reading of a device, as it is kept over time."""

    device: str
    """``host``, ``gpu0``, ``gpu0.slice2``."""
    key: str
    """Of the reading."""


def devices(sample: Sample) -> Iterator[tuple[str, HostSample | GpuSample | SliceSample]]:
    """Yield the devices of a sample by name."""
    yield "host", sample.host
    for gpu in () if isinstance(sample.gpus, Missing) else sample.gpus:
        yield f"gpu{gpu.index}", gpu
        for one in gpu.slices:
            yield f"gpu{gpu.index}.slice{one.index}", one


def readings_of(device: str) -> tuple[Reading, ...]:
    """Return the readings that a device of this name has."""
    if device == "host":
        return HOST
    return SLICE if ".slice" in device else GPU


def reading(series: Series) -> Reading:
    """Return the kind of reading that a series holds.

    Raises:
        KeyError: there is none of the name.
    """
    for each in readings_of(series.device):
        if each.key == series.key:
            return each
    raise KeyError(series.key)


def values(sample: Sample) -> dict[Series, float | Missing]:
    """Return every reading that is kept over time."""
    return {
        Series(name, each.key): each.take(device)
        for name, device in devices(sample)
        for each in readings_of(name)
    }
