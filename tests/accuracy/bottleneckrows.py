"""Published loaders whose limiting stage is known, and what the app is told of them."""

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trainwright.catalog import CpuRecord, DriveRecord
from trainwright.estimate.input.loader import Host, Processor, Work
from trainwright.estimate.input.pipeline import Feeding
from trainwright.estimate.input.pipeline_calibration import PipelineCalibration

FILE = Path(__file__).parent / "rows" / "bottlenecks.csv"


@dataclass(frozen=True)
class Case:
    """One loader, and who limits it."""

    id: str
    interface: str
    """Of the drive; empty where samples are in memory."""
    read_mb_s: float
    layout: str
    sample_bytes: float
    readers: int
    """Of each GPU's process."""
    gpus: int
    gpu_samples_per_s: float | None
    """What each GPU would take."""
    architecture: str
    """Empty where nothing is decoded."""
    cores: int
    threads: int
    boost_ghz: float
    library: str
    value: float | None
    """Samples a second over all GPUs."""
    bottleneck: str
    source: str
    note: str

    def feeding(self, calibration: PipelineCalibration) -> Feeding:
        """Return what feeds the GPUs: raw tensors, or pictures that are cropped and resized."""
        cpu, decode = None, "none"
        if self.architecture:
            record = CpuRecord(
                id="x", name=self.id, source="row", confidence="low", vendor="Intel",
                architecture=self.architecture, cores=self.cores, threads=self.threads,
                boost_ghz=self.boost_ghz,
            )  # fmt: skip
            cpu = Processor(calibration.core_rate(record), self.cores, self.threads)
            decode = "jpeg"
        drive = None
        if self.interface:
            drive = DriveRecord(
                id="x", name=self.id, source="row", confidence="low", interface=self.interface,  # type: ignore[arg-type]
                read_mb_s=self.read_mb_s,
            )  # fmt: skip
        output = 602_112 if decode == "jpeg" else 8.0
        return Feeding(
            work=Work(decode, self.library or "pillow", self.sample_bytes, output, 256),
            host=Host(cpu, None, "linux", drive),
            layout=self.layout, dataset_bytes=None, epochs=1, gpus=self.gpus,
            link_bytes_per_s=1e12, workers=self.readers, trains=False,
        )  # fmt: skip


@cache
def cases() -> tuple[Case, ...]:
    """Return all rows."""
    return tuple(map(_case, csv.DictReader(FILE.read_text(encoding="utf-8").splitlines())))


def _case(cells: dict[str, str]) -> Case:
    def number(name: str) -> float:
        return float(cells[name] or 0)

    return Case(
        **{name: cells[name] for name in ("id", "interface", "layout", "architecture", "library")},
        **{name: cells[name] for name in ("bottleneck", "source", "note")},
        **{name: int(number(name)) for name in ("readers", "gpus", "cores", "threads")},
        **{name: number(name) for name in ("read_mb_s", "sample_bytes", "boost_ghz")},
        gpu_samples_per_s=number("gpu_samples_per_s") or None,
        value=number("value") or None,
    )
