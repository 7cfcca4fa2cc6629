"""How fast a computer feeds the cards, by its processor, memory and drive."""

from collections.abc import Callable
from dataclasses import replace

from trainwright.build.speeds import Cards, Link, Speed, Speeds
from trainwright.catalog import CpuRecord, DriveRecord
from trainwright.estimate.input.loader import Host, Processor, processor
from trainwright.estimate.input.pipeline import Feeding, Flow, flow, step_seconds
from trainwright.estimate.input.pipeline_calibration import load
from trainwright.machine.machine import System

GIB = 1 << 30

Loaders = Callable[[CpuRecord], Processor | None]


class Feeds:
    """Seconds of a step with the samples that a computer makes; what is alike is kept."""

    def __init__(self, speeds: Speeds) -> None:
        self._speeds = speeds
        self._processors: dict[str, Processor | None] = {}
        self._feeds: dict[tuple[object, ...], Feed] = {}

    def of(self, speed: Speed) -> "Feed | None":
        """Return what feeds cards at a speed; None where the computer decides nothing."""
        asked = speed.feeding
        if asked is None:
            return None
        key = (asked.work, asked.layout, asked.gpus)
        if key not in self._feeds:
            self._feeds[key] = Feed(asked, self._speeds.system, self._loaders)
        return self._feeds[key]

    def seconds(
        self,
        cards: Cards,
        speed: Speed,
        link: Link | None,
        cpu: CpuRecord,
        gib: float,
        drive: DriveRecord,
    ) -> float:
        """Return the seconds of a step."""
        device, feed = self._speeds.seconds(cards, speed, link), self.of(speed)
        return device if feed is None else feed.step(device, speed.samples, cpu, gib, drive)

    def _loaders(self, cpu: CpuRecord) -> Processor | None:
        if cpu.id not in self._processors:
            self._processors[cpu.id] = processor(cpu, cpu.cores, load())
        return self._processors[cpu.id]


class Feed:
    """What computers make of one kind of samples for so many cards; flows are kept."""

    def __init__(self, asked: Feeding, system: System, loaders: Loaders) -> None:
        self._asked = asked
        self._system: System = system
        self._loaders = loaders
        self._caches = asked.dataset_bytes is not None and asked.epochs > 1
        self._flows: dict[tuple[str, float | None, str], Flow] = {}
        self._made: dict[str, Flow] = {}

    def step(
        self, device: float, samples: float, cpu: CpuRecord, gib: float, drive: DriveRecord
    ) -> float:
        """Return the seconds of a step of so many samples, on cards that take ``device`` for it."""
        key = (cpu.id, gib if self._caches else None, drive.id)
        if key not in self._flows:
            host = Host(self._loaders(cpu), round(gib * GIB), self._system, drive)
            self._flows[key] = self._flow(replace(self._asked, host=host))
        return step_seconds(self._flows[key], samples, device, serial=False)

    def least(self, device: float, samples: float, cpu: CpuRecord) -> float:
        """Return what no step takes less than with a processor: nothing has to be read."""
        if cpu.id not in self._made:
            host = Host(self._loaders(cpu), None, self._system, None)
            self._made[cpu.id] = self._flow(replace(self._asked, host=host, layout="memory"))
        return step_seconds(self._made[cpu.id], samples, device, serial=False)

    def _flow(self, asked: Feeding) -> Flow:
        """Return the flow with as many loader processes as the processor has threads, or half.

        The best number lies between them, and what it adds is little. The copy to the cards is
        left out: it is in their step already.
        """
        loaders, calibration = asked.host.processor, load()
        most = max(1, loaders.threads // asked.gpus - 1) if loaders is not None else 1
        tried = (replace(asked, workers=count) for count in {most, max(1, most // 2)})
        found = min((flow(one, calibration) for one in tried), key=lambda one: one.mean)
        return replace(found, transfer=0.0)
