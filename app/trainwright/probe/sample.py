"""One moment of this computer's live readings, for monitor and diagnosis alike.

Shares run from 0 to 1. A reading that is not there is ``Missing`` and says why; it is never 0.
"""

from dataclasses import dataclass
from typing import Any, Literal

from trainwright.messages import Message
from trainwright.probe.reading import Missing

NOT_READ = Missing(Message.of("probe.not-read"))
"""Stands for what nobody asked for."""

Throttle = Literal[
    "idle",
    "application-clocks",
    "power-cap",
    "hardware-slowdown",
    "sync-boost",
    "thermal",
    "hardware-thermal",
    "power-brake",
    "display-clocks",
]
"""Why clocks are below their maximum: the bits of nvmlDeviceGetCurrentClocksEventReasons."""

SLOWING: frozenset[Throttle] = frozenset(
    {"power-cap", "hardware-slowdown", "thermal", "hardware-thermal", "power-brake"}
)
"""Reasons that take speed from running work; an idle GPU or chosen clocks do not."""


@dataclass(frozen=True, slots=True)
class GpuProcess:
    """A process that holds memory of a GPU."""

    pid: int
    """As the driver counts: the host's number, also inside a container."""
    name: str | Missing = NOT_READ
    memory_bytes: int | Missing = NOT_READ
    kind: Literal["compute", "graphics"] = "compute"


@dataclass(frozen=True, slots=True)
class Activity:
    """Shares of the hardware in use, by GPM counters since the sample before.

    Unlike ``utilisation`` these say how much of the GPU works, not whether anything does.
    """

    sm_active: float | Missing = NOT_READ
    """Multiprocessors with at least one warp, over time."""
    sm_occupancy: float | Missing = NOT_READ
    """Resident warps of those that the multiprocessors could hold."""
    tensor_active: float | Missing = NOT_READ
    """Cycles in which any tensor pipe worked."""
    dram_active: float | Missing = NOT_READ
    """Cycles in which the memory moved data."""


@dataclass(frozen=True, slots=True)
class SliceSample:
    """A MIG slice."""

    index: int
    name: str | Missing = NOT_READ
    memory_used: int | Missing = NOT_READ
    """Bytes."""
    memory_total: int | Missing = NOT_READ
    """Bytes."""
    activity: Activity = Activity()
    processes: tuple[GpuProcess, ...] | Missing = NOT_READ


@dataclass(frozen=True, slots=True)
class GpuSample:
    """A GPU."""

    index: int
    name: str | Missing = NOT_READ
    utilisation: float | Missing = NOT_READ
    """Share of the driver's last window (1/6 to 1 s) in which any kernel ran."""
    memory_used: int | Missing = NOT_READ
    """Bytes, without what driver and firmware reserve where the driver tells them apart."""
    memory_total: int | Missing = NOT_READ
    """Bytes."""
    temperature_c: float | Missing = NOT_READ
    power_w: float | Missing = NOT_READ
    """Mean since the sample before where the GPU counts energy, else the driver's own mean."""
    power_limit_w: float | Missing = NOT_READ
    power_limit_default_w: float | Missing = NOT_READ
    """What the board has before anybody sets another limit."""
    energy_j: float | Missing = NOT_READ
    """Counted since the driver was loaded."""
    sm_clock_mhz: float | Missing = NOT_READ
    sm_clock_max_mhz: float | Missing = NOT_READ
    memory_clock_mhz: float | Missing = NOT_READ
    memory_clock_max_mhz: float | Missing = NOT_READ
    throttle: frozenset[Throttle] | Missing = NOT_READ
    pcie_sent: float | Missing = NOT_READ
    """Bytes a second from the GPU."""
    pcie_received: float | Missing = NOT_READ
    """Bytes a second to the GPU."""
    pcie_generation: int | Missing = NOT_READ
    """Falls when the GPU idles: judge it under load only."""
    pcie_generation_max: int | Missing = NOT_READ
    pcie_width: int | Missing = NOT_READ
    """Lanes."""
    pcie_width_max: int | Missing = NOT_READ
    processes: tuple[GpuProcess, ...] | Missing = NOT_READ
    activity: Activity = Activity()
    slices: tuple[SliceSample, ...] = ()
    """MIG slices; none where MIG is off or the GPU has none."""
    mig: bool | Missing = NOT_READ
    """Whether MIG is on."""


def unread(index: int, name: str | Missing, why: Missing) -> GpuSample:
    """Return the sample of a GPU that could not be read at all."""
    kept = ("index", "name", "activity", "slices")
    readings: dict[str, Any] = {key: why for key in GpuSample.__slots__ if key not in kept}
    return GpuSample(index, name, activity=Activity(why, why, why, why), **readings)


@dataclass(frozen=True, slots=True)
class HostSample:
    """The computer around the GPUs. Rates are those since the sample before."""

    cpu: float | Missing = NOT_READ
    """Share of all cores that was busy."""
    cores: tuple[float, ...] | Missing = NOT_READ
    """The same, core by core."""
    memory_used: int | Missing = NOT_READ
    """Bytes that cannot be given to another program."""
    memory_total: int | Missing = NOT_READ
    swap_used: int | Missing = NOT_READ
    swap_total: int | Missing = NOT_READ
    disk_read: float | Missing = NOT_READ
    """Bytes a second, all drives together."""
    disk_written: float | Missing = NOT_READ
    """Bytes a second, all drives together."""
    pressure_cpu: float | Missing = NOT_READ
    """Share of the time in which some task waited for a core: Linux's PSI."""
    pressure_io: float | Missing = NOT_READ
    """Share of the time in which some task waited for storage."""
    pressure_memory: float | Missing = NOT_READ
    """Share of the time in which some task waited for memory to be freed."""
    throttled_periods: int | Missing = NOT_READ
    """Periods in which this container's CPU quota was used up, since it started."""
    shm_used: int | Missing = NOT_READ
    """Bytes in /dev/shm, through which loader workers pass batches."""
    shm_total: int | Missing = NOT_READ
    """Bytes that /dev/shm may hold."""
    oom_kills: int | Missing = NOT_READ
    """Processes that the kernel ended for want of memory, since it started."""


@dataclass(frozen=True, slots=True)
class Sample:
    """All readings of one moment."""

    monotonic_s: float
    """Runs evenly; differences between samples are true seconds."""
    wall_s: float
    """Seconds since 1970, UTC; jumps when the clock is set."""
    host: HostSample = HostSample()
    gpus: tuple[GpuSample, ...] | Missing = NOT_READ
    """Missing where there is no driver to ask."""
    slept_s: float = 0.0
    """Seconds that the computer slept since the sample before; ``monotonic_s`` counts them."""
