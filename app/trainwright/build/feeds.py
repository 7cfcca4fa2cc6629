"""How fast a computer feeds the cards, by its processor, memory and drive."""

from dataclasses import replace

from trainwright.build.speeds import Cards, Link, Speed, Speeds
from trainwright.catalog import CpuRecord, DriveRecord
from trainwright.estimate.loader import Host, Processor, processor
from trainwright.estimate.pipeline import Flow, flow, step_seconds
from trainwright.estimate.pipeline_calibration import load

GIB = 1 << 30


class Feeds:
    """Seconds of a step with the samples that a computer makes; flows are kept."""

    def __init__(self, speeds: Speeds) -> None:
        self._speeds = speeds
        self._calibration = load()
        self._loaders: dict[str, Processor | None] = {}
        self._flows: dict[tuple[object, ...], Flow] = {}

    def asks(self, speed: Speed) -> bool:
        """Return whether the computer around the cards decides anything."""
        return speed.feeding is not None

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
        device = self._speeds.seconds(cards, speed, link)
        feeding = speed.feeding
        if feeding is None:
            return device
        whole = self._flow(speed, cpu, gib, drive)
        copying = replace(whole, transfer=0.0)  # which is in the step already
        return step_seconds(copying, speed.samples, device, serial=False)

    def _flow(self, speed: Speed, cpu: CpuRecord, gib: float, drive: DriveRecord) -> Flow:
        """Return the flow with as many loader processes as the processor has threads, or half.

        The best number lies between them, and what it adds is little.
        """
        feeding, calibration = speed.feeding, self._calibration
        assert feeding is not None, "asked for data sets only"
        if cpu.id not in self._loaders:
            self._loaders[cpu.id] = processor(cpu, cpu.cores, calibration)
        loaders = self._loaders[cpu.id]
        caches = feeding.dataset_bytes is not None and feeding.epochs > 1
        key = (
            *(loaders, gib if caches else None, drive.id, feeding.gpus),
            *(feeding.work, feeding.layout),
        )
        if key not in self._flows:
            system = self._speeds.system
            host = Host(loaders, round(gib * GIB), system, drive)
            asked = replace(feeding, host=host)
            most = max(1, loaders.threads // feeding.gpus - 1) if loaders is not None else 1
            tried = (replace(asked, workers=count) for count in {most, max(1, most // 2)})
            self._flows[key] = min(
                (flow(one, calibration) for one in tried), key=lambda found: found.mean
            )
        return self._flows[key]
