"""Measured rows of input pipelines, and what the app predicts for them."""

import csv
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from trainwright.catalog import CpuRecord
from trainwright.estimate.input.loader import Host, Processor, Work
from trainwright.estimate.input.pipeline import Feeding, flow
from trainwright.estimate.input.pipeline_calibration import PipelineCalibration

HERE = Path(__file__).parent
MEAN_PICTURE = 469 * 387 * 3
"""Bytes of ImageNet's mean picture (469 x 387) once decoded: what the benchmark hands over."""


@dataclass(frozen=True)
class Row:
    """One published figure."""

    id: str
    measures: str
    cpu: str
    architecture: str
    cores: int
    threads: int
    boost_ghz: float
    system: str
    library: str
    workers: int | None
    batch: int
    storage: str
    sample_bytes: float
    value: float
    unit: str
    bottleneck: str
    source: str
    note: str

    @property
    def record(self) -> CpuRecord:
        """Return the processor as a catalog would have it."""
        return CpuRecord(
            id="x", name=self.cpu, source="row", confidence="low", vendor="AMD",
            architecture=self.architecture, cores=self.cores, threads=self.threads,
            boost_ghz=self.boost_ghz,
        )  # fmt: skip


@cache
def rows() -> tuple[Row, ...]:
    """Return all rows."""
    text = (HERE / "rows" / "pipeline.csv").read_text(encoding="utf-8")
    return tuple(map(_row, csv.DictReader(text.splitlines())))


def _row(cells: dict[str, str]) -> Row:
    def number(name: str) -> float:
        return float(cells[name] or 0)

    return Row(
        **{name: cells[name] for name in ("id", "measures", "cpu", "architecture", "system")},
        **{name: cells[name] for name in ("library", "storage", "unit", "bottleneck")},
        source=cells["source"],
        note=cells["note"],
        cores=int(number("cores")),
        threads=int(number("threads")),
        boost_ghz=number("boost_ghz"),
        workers=int(cells["workers"]) if cells["workers"] else None,
        batch=int(number("batch")),
        sample_bytes=number("sample_bytes"),
        value=number("value"),
    )


@cache
def held_out() -> dict[str, tuple[str, ...]]:
    """Return names that no fit may see, by kind: library, cpu, source."""
    text = (HERE / "rows" / "pipeline_held_out.csv").read_text(encoding="utf-8")
    found: dict[str, tuple[str, ...]] = {}
    for cells in csv.DictReader(text.splitlines()):
        found[cells["kind"]] = (*found.get(cells["kind"], ()), cells["name"])
    return found


def kept_out(row: Row) -> bool:
    """Return whether a row is only scored."""
    names = held_out()
    return (
        row.library in names["library"]
        or row.cpu in names["cpu"]
        or row.source.startswith(names["source"])
    )


@cache
def sweeps() -> tuple[tuple[Row, ...], ...]:
    """Return the loader rows by CPU and library, each from no workers to the most."""
    found: dict[tuple[str, str], list[Row]] = {}
    for row in rows():
        if row.measures == "loader":
            found.setdefault((row.cpu, row.library), []).append(row)
    return tuple(tuple(sorted(s, key=lambda row: row.workers or 0)) for s in found.values())


def feeding_of(row: Row, core_rate: float) -> Feeding:
    """Return the benchmark's loader: pictures in memory, arrays as they are, nothing trained.

    ``core_rate`` is in bytes of JPEG a second, with Pillow.
    """
    assert row.workers is not None
    cpu = Processor(core_rate, row.cores, row.threads, 0, row.architecture)
    return Feeding(
        work=Work(
            "jpeg", row.library, row.sample_bytes, MEAN_PICTURE, row.batch or 32,
            transport="pipe", transforms=False,
        ),
        host=Host(cpu, None, row.system),  # type: ignore[arg-type]
        layout="memory", dataset_bytes=None, epochs=1, gpus=1,
        link_bytes_per_s=1e12, workers=row.workers, trains=False,
    )  # fmt: skip


def from_catalog(row: Row, calibration: PipelineCalibration) -> float:
    """Return samples/s of a loader row, from the processor's clock, cores and generation."""
    feeding = feeding_of(row, calibration.core_rate(row.record))
    return 1 / flow(feeding, calibration).mean


def from_one_core(row: Row, calibration: PipelineCalibration) -> float:
    """Return samples/s of a loader row where a probe has told what one core does.

    The probe: this processor without workers, with Pillow and with the row's library.
    """
    probes = {other.library: other for other in _alone(row.cpu)}
    core_rate = probes["pillow"].value * row.sample_bytes
    factor = calibration.decoding.libraries[row.library].value
    seen = core_rate * factor / probes[row.library].value
    feeding = feeding_of(row, core_rate)
    feeding = replace(feeding, work=replace(feeding.work, sample_bytes=seen))
    return 1 / flow(feeding, calibration).mean


@cache
def _alone(cpu: str) -> tuple[Row, ...]:
    """Return a processor's rows without workers."""
    return tuple(sweep[0] for sweep in sweeps() if sweep[0].cpu == cpu)
