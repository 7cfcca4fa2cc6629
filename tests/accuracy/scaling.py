"""Measured rows of training on several GPUs and of all-reduces, and what is predicted for them.

The time of a step on one GPU is measured, and the backward pass taken to be a share of it: these
rows try the exchange of gradients, and not the roofline.
"""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from trainwright.catalog import CpuRecord, GpuRecord
from trainwright.catalog.query import find_gpu
from trainwright.estimate.parallel.communication import (
    Calibration,
    Link,
    exchange,
    host_link,
    link_between,
    ring,
)

ROWS = Path(__file__).parent / "rows"
BACKWARD = 0.6
"""Share of a step that its backward pass takes; assumed: two of three parts, less the update."""
HIDES_NOTHING = "apex", "own"
"""Wrappers of NVIDIA's older examples, which are not torch's. On PCIe their steps get longer by
what the whole all-reduce takes; they are taken to hide nothing."""


BUILT_FOR_GPUS = "lambda", "nvidia", "vidur", "galvatron"
"""Beginnings of sources that measured on workstations and servers which their makers sell for
several GPUs: slots as wide as the cards. Elsewhere the program's own rule stands."""
WIDE = CpuRecord(
    id="many-lanes",
    name="a processor for several GPUs",
    vendor="AMD",
    architecture="",
    cores=1,
    threads=1,
    boost_ghz=1,
    slot_lanes=1024,
    source="a stand-in: every card has its own lanes",
    confidence="high",
)


@dataclass(frozen=True, slots=True)
class ScalingRow:
    """The same work on one GPU and on several, each with the same batch."""

    id: str
    source: str
    machine: str
    gpu: str
    """Id in the catalog."""
    gpus: int
    joined: str
    """``bridge`` or ``host`` where the source says so; empty for what the card's type implies."""
    workload: str
    precision: str
    accumulation: int
    gradient_bytes: float
    step_seconds: float
    """Of one optimizer step on one GPU, measured."""
    efficiency: float
    """Rate of all GPUs over as many times the rate of one, measured."""
    wrapper: str
    lengths: str
    """``varied`` where batches differ in length."""
    held: bool
    """Whether it is kept out of the fit."""

    @property
    def gain(self) -> float:
        """What the other GPUs add to the first, as a share of its rate."""
        return self.efficiency * self.gpus - 1


@dataclass(frozen=True, slots=True)
class CollectiveRow:
    """One all-reduce, timed by itself."""

    source: str
    gpu: str
    gpus: int
    joined: str
    nbytes: float
    seconds: float
    held: bool


@cache
def scaling_rows() -> tuple[ScalingRow, ...]:
    """Return the rows of ``scaling.csv``."""
    held = _held()

    def row(line: dict[str, str]) -> ScalingRow:
        out = (
            ("scaling-gpu", line["gpu"]),
            ("scaling-workload", line["workload"]),
            ("scaling-source", line["source"]),
        )
        return ScalingRow(
            *(line["id"], line["source"], line["machine"], line["gpu"], int(line["gpus"])),
            *(line["joined"], line["workload"], line["precision"], int(line["accumulation"])),
            *(float(line["gradient_bytes"]), float(line["step_seconds"])),
            *(float(line["efficiency"]), line["wrapper"], line["lengths"]),
            held=any(pair in held for pair in out),
        )

    return tuple(row(line) for line in _lines("scaling.csv"))


@cache
def collective_rows() -> tuple[CollectiveRow, ...]:
    """Return the rows of ``collectives.csv``."""
    held = _held()
    return tuple(
        CollectiveRow(
            *(line["source"], line["gpu"], int(line["gpus"]), line["joined"]),
            *(float(line["bytes"]), float(line["seconds"])),
            held=("scaling-gpu", line["gpu"]) in held,
        )
        for line in _lines("collectives.csv")
    )


@cache
def link_of(row: ScalingRow | CollectiveRow) -> Link:
    """Return what joins the row's GPUs: as the source says, else by the program's own rule."""
    record = _record(row.gpu)
    processor = WIDE if row.source.startswith(BUILT_FOR_GPUS) else None
    if row.joined == "host":
        return host_link(record, row.gpus, processor=processor)
    bridged = row.joined == "bridge"
    return link_between(record, row.gpus, bridged=bridged, processor=processor)


def predicted(row: ScalingRow, calibration: Calibration) -> float:
    """Return the scaling efficiency that is predicted for a row."""
    cost = exchange(
        row.gradient_bytes,
        row.gpus,
        link_of(row),
        step=row.step_seconds,
        backward=BACKWARD * row.step_seconds / row.accumulation,
        bandwidth=_record(row.gpu).bandwidth_bytes_per_s.value,
        varied=row.lengths == "varied",
        calibration=calibration,
    )
    exposed = cost.works if row.wrapper in HIDES_NOTHING else cost.exposed
    return row.step_seconds / (row.step_seconds + exposed)


def predicted_seconds(row: CollectiveRow, calibration: Calibration) -> float:
    """Return the seconds that are predicted for an all-reduce."""
    return ring(row.gpus, link_of(row), calibration).seconds(row.nbytes)


@cache
def _record(gpu: str) -> GpuRecord:
    return find_gpu(gpu).record


@cache
def _held() -> frozenset[tuple[str, str]]:
    return frozenset((line["kind"], line["name"]) for line in _lines("held_out.csv"))


def _lines(name: str) -> Iterator[dict[str, str]]:
    with (ROWS / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)
