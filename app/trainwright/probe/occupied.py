"""Whether this computer is free to be measured, and what holds its GPUs back meanwhile."""

import os
from collections.abc import Iterator
from contextlib import closing, suppress

import psutil

from trainwright.messages import Message
from trainwright.probe.monitor.session import GpuSession
from trainwright.probe.nvml import Nvidia
from trainwright.probe.reading import Missing
from trainwright.probe.sample import SLOWING, GpuSample

LANE_BYTES_PER_S = {1: 0.25e9, 2: 0.5e9, 3: 0.985e9, 4: 1.969e9, 5: 3.938e9, 6: 7.563e9}
"""Of PCI Express by generation, after its encoding (PCI-SIG)."""
HEAT = frozenset({"thermal", "hardware-thermal"})
"""Of live readings, in the words of benchmarks: heat."""

PATIENCE_S = 3.0
"""That a driver has to answer; assumed, one takes milliseconds."""


def on_battery() -> Message | None:
    """Return why results would not hold, where the computer runs on its battery."""
    with suppress(AttributeError, OSError, RuntimeError, psutil.Error):
        battery = psutil.sensors_battery()
        if battery is not None and battery.power_plugged is False:
            return Message.of("bench.on-battery")
    return None


def busy_gpu() -> Message | None:
    """Return who computes on a GPU; None where nobody does, or nobody can tell."""
    with closing(GpuSession(PATIENCE_S)) as session:
        names = {name for gpu in _seen(session) for name in _programs(gpu)}
    return Message.of("bench.gpu-busy", programs=sorted(names)) if names else None


class Watch:
    """What is seen of the GPUs while a benchmark runs."""

    def __init__(self, read: Nvidia | Missing) -> None:
        gpus = read.gpus if isinstance(read, Nvidia) else ()
        self._uuids = {gpu.index: gpu.uuid for gpu in gpus if isinstance(gpu.uuid, str)}
        self._session = GpuSession(PATIENCE_S)
        self.slowing: set[str] = set()
        """What lowered the clocks of any GPU."""
        self.links: dict[str, float] = {}
        """Bytes/s of each GPU's link at the last look, by the GPU's UUID."""

    def look(self) -> None:
        """Add what can be seen now."""
        for gpu in _seen(self._session):
            self.slowing |= _slowed(gpu)
            rate = _link(gpu)
            if rate is not None and gpu.index in self._uuids:
                self.links[self._uuids[gpu.index]] = rate

    def close(self) -> None:
        """Look no more."""
        self._session.close()


def _seen(session: GpuSession) -> tuple[GpuSample, ...]:
    gpus = session.read()
    return () if isinstance(gpus, Missing) else gpus


def _slowed(gpu: GpuSample) -> set[str]:
    reasons = frozenset() if isinstance(gpu.throttle, Missing) else gpu.throttle & SLOWING
    return {"heat" if reason in HEAT else reason for reason in reasons}


def _link(gpu: GpuSample) -> float | None:
    if isinstance(gpu.pcie_generation, Missing) or isinstance(gpu.pcie_width, Missing):
        return None
    lane = LANE_BYTES_PER_S.get(gpu.pcie_generation)
    return lane * gpu.pcie_width if lane is not None else None


def _programs(gpu: GpuSample) -> Iterator[str]:
    for each in () if isinstance(gpu.processes, Missing) else gpu.processes:
        if each.kind == "compute" and each.pid != os.getpid():
            yield str(each.pid) if isinstance(each.name, Missing) else f"{each.name} ({each.pid})"
