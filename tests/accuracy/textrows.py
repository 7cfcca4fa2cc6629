"""The measured rows of language models and of published workloads."""

import csv
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from pathlib import Path

from optables import ROWS

TABLES = "ops-llm.npz"
"""Op tables of the language models."""
FILES = {"llm.csv": TABLES, "workloads.csv": "ops-workloads.npz"}
"""File of rows -> file of the op tables that they name."""
CATALOG = Path(__file__).parents[2] / "hardware_db" / "gpu"


@dataclass(frozen=True, slots=True)
class TextRow:
    """One measured step; seconds of the whole step with all its micro-batches."""

    id: str
    source: str
    model: str
    family: str
    key: str
    """Of its op table: MODEL@LENGTH/TASK/PRECISION/ATTENTION."""
    task: str
    """train: forward, backward and update; gradient: without update, into gradients that are
    there; infer: forward, without a cache."""
    precision: str
    """fp32 | tf32 | fp16-mixed | fp16 | bf16; tf32 has the table of fp32."""
    batch: int
    """Of one micro-batch on one GPU."""
    sequence: int
    """Tokens of a sample, or pixels of a side of its image."""
    accumulation: int
    checkpointing: str
    """none | full: whole blocks run twice | full-early-stop: up to their last saved tensor, as
    ``torch.utils.checkpoint`` does from torch 2.1 on."""
    gpus: int
    sharding: str
    """none | full: weights, gradients and optimizer state are split among the GPUs (ZeRO 3)."""
    gpu: str
    """Id in the catalog."""
    framework: str
    compiled: bool
    seconds: float
    layout: str
    """nchw | nhwc; empty where nothing has images."""
    parameters: int
    """As the source states them, 0 where it does not."""
    note: str

    @property
    def phases(self) -> tuple[str, ...]:
        """Phases of the table that a micro-batch of the row runs."""
        if self.task == "infer":
            return ("forward",)
        again = {"none": (), "full-early-stop": ("recompute",)}
        twice = again.get(self.checkpointing, ("recompute", "recompute-rest"))
        return ("forward", "loss", "backward", *twice)


@cache
def rows(file: str = "llm.csv") -> tuple[TextRow, ...]:
    """Return the rows of a file."""
    return tuple(_rows(file))


def _rows(file: str) -> Iterator[TextRow]:
    whole = ("batch", "sequence", "accumulation", "gpus", "parameters")
    with (ROWS / file).open(encoding="utf-8", newline="") as opened:
        for fields in csv.DictReader(opened):
            numbers = {name: int(fields.pop(name)) for name in whole}
            seconds, compiled = float(fields.pop("seconds")), fields.pop("compiled") == "y"
            yield TextRow(**fields, **numbers, seconds=seconds, compiled=compiled)  # type: ignore[arg-type]


def held_out_gpus(files: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return the GPUs kept out of every fit, by a rule that knows no measurement.

    A file of the catalog holds one architecture in one segment. Of each that has rows of two
    GPUs or more, the GPU whose id has the lowest SHA-256 is kept out.

    Args:
        files: file of the catalog -> its GPUs with rows.
    """
    return tuple(sorted(min(gpus, key=_hash) for gpus in map(set, files.values()) if len(gpus) > 1))


def by_file(gpus: Iterable[str]) -> dict[str, set[str]]:
    """Return file of the catalog -> those of the GPUs that it holds."""
    known: dict[str, set[str]] = defaultdict(set)
    wanted = set(gpus)
    for file in CATALOG.glob("*.yaml"):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("  - id: ") and line.split()[-1] in wanted:
                known[file.stem].add(line.split()[-1])
    return known


def _hash(name: str) -> str:
    return sha256(name.encode()).hexdigest()
