"""Samples on the terminal: a table that repaints itself, or a line each."""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trainwright.messages import Message
from trainwright.probe.monitor.figures import (
    MISSING,
    device_name,
    figure,
    formed,
    pair,
    reading_name,
)
from trainwright.probe.monitor.history import SPANS_S
from trainwright.probe.monitor.readings import Reading, devices, readings_of
from trainwright.probe.reading import Missing
from trainwright.probe.sample import (
    SLOWING,
    Activity,
    GpuProcess,
    GpuSample,
    HostSample,
    Sample,
    SliceSample,
)

if TYPE_CHECKING:
    from rich.console import RenderableType

    from trainwright.cli.screen import Cell, Screen
    from trainwright.probe.monitor.monitor import Heard, Monitor

_COLUMNS = ("device", "busy", "sm", "memory", "temperature", "power", "clock", "pcie", "throttle")
_EVENTS = 6
"""Lines below the table."""
_PROCESSES = 3
"""For each GPU, those with the most memory."""


class Lines:
    """A line a sample, for files and pipes."""

    def __init__(self, screen: "Screen") -> None:
        self._screen = screen
        self._said: Message | None = None
        self._named: dict[int, str] = {}
        self._count = 0

    def show(self, heard: "Heard") -> None:
        """Print a sample and what happened with it."""
        self._count += 1
        sample, screen = heard.sample, self._screen
        why = no_gpus(sample)
        if why is not None and why != self._said:
            screen.line(why)
        self._said = why
        gpus = () if isinstance(sample.gpus, Missing) else sample.gpus
        self._name(gpus)
        groups = [list(_host_parts(sample.host)), *(list(_gpu_parts(gpu)) for gpu in gpus)]
        parts = (", ".join(screen.text(part) for part in group) for group in groups)
        screen.whole_line(f"{_clock(sample)}  " + " | ".join(parts))
        for event in heard.events:
            screen.line(
                f"{_clock(sample)}  {'!' if event.bad else ' '} " + screen.text(event.message)
            )
        screen.flush()

    def _name(self, gpus: Sequence[GpuSample]) -> None:
        """Say once which GPU has which number."""
        for gpu in gpus:
            if isinstance(gpu.name, str) and self._named.get(gpu.index) != gpu.name:
                self._named[gpu.index] = gpu.name
                self._screen.line(f"GPU {gpu.index}: {gpu.name}")

    def finish(self, monitor: "Monitor", seconds: float) -> None:
        """Print least, mean and most of what was read."""
        summarise(self._screen, monitor, seconds, self._count)


class Table:
    """A table that stays in place."""

    def __init__(self, screen: "Screen") -> None:
        self._screen = screen
        self._events: deque[str] = deque(maxlen=_EVENTS)
        self._live = screen.live()
        self._live.start()
        self._count = 0

    def show(self, heard: "Heard") -> None:
        """Repaint the table."""
        self._count += 1
        for event in heard.events:
            mark = "!" if event.bad else " "
            self._events.append(f"{_clock(heard.sample)} {mark} {self._screen.text(event.message)}")
        self._live.update(self._painted(heard.sample), refresh=True)

    def finish(self, monitor: "Monitor", seconds: float) -> None:
        """Leave the last table standing, and sum up."""
        self._live.stop()
        summarise(self._screen, monitor, seconds, self._count)

    def _painted(self, sample: Sample) -> "RenderableType":
        from rich.console import Group
        from rich.text import Text

        screen = self._screen
        text = screen.text
        host = ", ".join(text(part) for part in _host_parts(sample.host))
        below: list[RenderableType] = [Text(f"{_clock(sample)}  {host}")]
        why = no_gpus(sample)
        if why is not None:
            below.append(Text(text(why)))
        elif rows := list(_rows(sample)):
            headings = [Message.of(f"monitor.table.{each}") for each in _COLUMNS]
            below.append(screen.made_table(rows, headings, numbers=range(1, 8)))
        for gpu in () if isinstance(sample.gpus, Missing) else sample.gpus:
            if not isinstance(gpu.processes, Missing) and gpu.processes:
                listed = ", ".join(text(_process(each)) for each in gpu.processes[:_PROCESSES])
                below.append(Text(f"GPU {gpu.index}: {listed}"))
        below += [Text(event, style="bold" if " ! " in event else "") for event in self._events]
        below.append(Text(text(Message.of("monitor.stop-hint")), style="dim"))
        return Group(*below)


def no_gpus(sample: Sample) -> Message | None:
    """Return why a sample has no GPUs; None where it has."""
    if isinstance(sample.gpus, Missing):
        return Message.of("monitor.no-gpus", reason=sample.gpus.reason)
    return None if sample.gpus else Message.of("monitor.no-gpus.empty")


def summarise(screen: "Screen", monitor: "Monitor", seconds: float, count: int) -> None:
    """Print least, mean and most of every reading over the time."""
    latest = monitor.latest
    if latest is None:
        return
    span = next((each for each in SPANS_S if each >= seconds), SPANS_S[-1])
    slices = _profiles(latest)
    headings = [Message.of(f"monitor.table.{each}") for each in
                ("device", "reading", "now", "least", "mean", "most")]  # fmt: skip
    rows: list[Sequence[Cell]] = []
    for series in monitor.series:
        found = monitor.summary(series, span, latest.monotonic_s)
        if found is not None:
            numbers = (found.now, found.low, found.mean, found.high)
            name, kind = device_name(series.device), reading_name(series.key)
            if profile := slices.get(series.device):
                name = f"{screen.text(name)} ({profile})"
            rows.append((name, kind, *(figure(series, number) for number in numbers)))
    screen.line()
    title = Message.of("monitor.summary", time=seconds, count=count)
    screen.table(rows, headings, title=title, numbers=range(2, 6))


def _profiles(sample: Sample) -> dict[str, str]:
    """Return the MIG profiles of the sample's slices by device: gpu0.slice2 is a 1g.10gb."""
    return {
        name: device.name.rpartition("MIG ")[2]
        for name, device in devices(sample)
        if isinstance(device, SliceSample) and isinstance(device.name, str)
    }


def _clock(sample: Sample) -> str:
    return time.strftime("%H:%M:%S", time.localtime(sample.wall_s))


def _shown(device: object, name: str, key: str) -> str:
    each: Reading = next(each for each in readings_of(name) if each.key == key)
    value = each.take(device)
    return MISSING if isinstance(value, Missing) else formed(value, each.unit)


def _host_parts(host: HostSample) -> "Iterator[Cell]":
    def shown(key: str) -> str:
        return _shown(host, "host", key)

    yield Message.of("monitor.line.cpu", share=shown("cpu"))
    yield Message.of("monitor.line.memory", used=pair(host.memory_used, host.memory_total))
    yield Message.of("monitor.line.disk", read=shown("disk_read"), written=shown("disk_written"))
    if not isinstance(host.pressure_io, Missing):
        waiting = {what: shown(f"pressure_{what}") for what in ("cpu", "io", "memory")}
        yield Message.of("monitor.line.waiting", **waiting)


def _gpu_parts(gpu: GpuSample) -> "Iterator[Cell]":
    def shown(key: str) -> str:
        return _shown(gpu, "gpu0", key)

    share = shown("utilisation")
    yield Message.of("monitor.line.busy", device=f"GPU {gpu.index}", share=share)
    yield pair(gpu.memory_used, gpu.memory_total)
    yield shown("temperature_c")
    yield shown("power_w")
    if slowed := _slowed(gpu):
        yield Message.of("monitor.line.slowed", reasons=slowed)


def _slowed(gpu: GpuSample) -> list[Message]:
    reasons = frozenset() if isinstance(gpu.throttle, Missing) else gpu.throttle & SLOWING
    return [Message.of(f"monitor.throttle.{reason}") for reason in sorted(reasons)]


def _rows(sample: Sample) -> "Iterator[Sequence[Cell]]":
    for name, device in devices(sample):
        if isinstance(device, GpuSample):
            yield _gpu_row(name, device)
        elif isinstance(device, SliceSample):
            memory = pair(device.memory_used, device.memory_total)
            busy = _active(device.activity)
            yield (device_name(name), MISSING, busy, memory, *(5 * (MISSING,)))


def _gpu_row(name: str, gpu: GpuSample) -> "Sequence[Cell]":
    def shown(key: str) -> str:
        return _shown(gpu, name, key)

    known = "" if isinstance(gpu.name, Missing) else f"  {gpu.name}"
    slowed = _slowed(gpu)
    reasons: Cell = MISSING if isinstance(gpu.throttle, Missing) else ""
    if slowed:
        reasons = Message.of("monitor.line.reasons", reasons=slowed)
    return (
        f"GPU {gpu.index}{known}",
        shown("utilisation"),
        _active(gpu.activity),
        pair(gpu.memory_used, gpu.memory_total),
        shown("temperature_c"),
        pair(gpu.power_w, gpu.power_limit_w, "watts"),
        shown("sm_clock_mhz"),
        f"{shown('pcie_received')} / {shown('pcie_sent')}",
        reasons,
    )


def _active(activity: Activity) -> str:
    share = activity.sm_active
    return MISSING if isinstance(share, Missing) else formed(share, "share")


def _process(process: GpuProcess) -> Message:
    name = str(process.pid)
    if not isinstance(process.name, Missing):
        name = f"{process.name} ({process.pid})"
    held = process.memory_bytes
    memory = MISSING if isinstance(held, Missing) else formed(held, "bytes")
    return Message.of("monitor.line.process", name=name, memory=memory)
