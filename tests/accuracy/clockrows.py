"""Measured steps as kernels: what the fit of the clock and its tests compare with."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
import textrows
import visionrows
from numpy.typing import NDArray
from optables import OpRows, as_ops, tables

from trainwright.catalog import GpuRecord, catalog
from trainwright.estimate.time.kernels import IS_ATTENTION, NUMBER, Kernels, classified, kernels
from trainwright.profile.profile import Floats, monomials

FLOAT32 = ("float32",)
DTYPES = ("float32", "half")
"""Kernels of measured rows are either: 16-bit types run at one speed."""


@dataclass(frozen=True, slots=True)
class Step:
    """A measured step, and which table of operators it runs."""

    id: str
    model: str
    family: str
    gpu: GpuRecord
    precision: str
    channels_last: bool
    framework: str
    seconds: float
    source: str
    table: OpRows
    batch: int
    phases: tuple[str, ...]
    """Phases of the table that a micro-batch runs."""
    accumulation: int = 1
    gpus: int = 1
    trains: bool = True
    compiled: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The kernels of steps that share a GPU, a layout and a framework; arrays align."""

    steps: tuple[Step, ...]
    kernels: Kernels
    """``row`` is the number of the step here, not that of an operator."""
    runs: Floats

    @property
    def situation(self) -> Step:
        """The step that stands for all of them."""
        return self.steps[0]

    @property
    def seconds(self) -> Floats:
        """Measured."""
        return np.array([step.seconds for step in self.steps])

    def total(self, seconds: Floats) -> Floats:
        """Return the sum over each step's kernels."""
        weights = seconds * self.runs
        return np.bincount(self.kernels.row, weights=weights, minlength=len(self.steps))

    def of_classes(self, numbers: Iterable[int]) -> "Block":
        """Return the block with the kernels of some classes alone."""
        chosen = np.isin(self.kernels.group, list(numbers))
        return replace(self, kernels=_chosen(self.kernels, chosen), runs=self.runs[chosen])


def blocks(steps: Iterable[Step], causal_share: float = 0.5) -> list[Block]:
    """Return steps by situation; rows keep their order within each."""
    found: dict[tuple[object, ...], list[Step]] = {}
    for step in steps:
        key = (step.gpu.id, step.precision, step.channels_last, step.framework)
        key += (step.trains, step.compiled)
        found.setdefault(key, []).append(step)
    return [_block(tuple(some), causal_share) for some in found.values()]


def _block(steps: tuple[Step, ...], causal_share: float) -> Block:
    parts, runs = [], []
    for number, step in enumerate(steps):
        table = classified(as_ops(step.table), step.batch, 0)
        found = kernels(table, step.batch, 0)
        counted = step.table.count * np.isin(step.table.phase, step.phases)
        count = counted[found.row].astype(np.float64) * step.accumulation
        works = (found.group != NUMBER["view"]) & (count > 0)
        masked = table.dims[6] @ monomials(step.batch, 0)
        causal = IS_ATTENTION[found.group] & (masked[found.row] == 1)
        single = np.array([name in FLOAT32 for name in table.dtypes])[found.dtype]
        found = replace(
            found,
            row=np.full(len(found.row), number),
            dtype=np.where(single, 0, 1).astype(np.uint8),
            flops=np.where(causal, found.flops * causal_share, found.flops),
        )
        parts.append(_chosen(found, works))
        runs.append(count[works])
    return Block(steps, _joined(parts), np.concatenate(runs))


def _chosen(found: Kernels, chosen: NDArray[np.bool_]) -> Kernels:
    return _each(lambda name: getattr(found, name)[..., chosen])


def _joined(parts: list[Kernels]) -> Kernels:
    return _each(lambda name: np.concatenate([getattr(part, name) for part in parts], axis=-1))


def _each(make: Callable[[str], NDArray[np.generic]]) -> Kernels:
    made: Mapping[str, NDArray[np.generic]] = {f.name: make(f.name) for f in fields(Kernels)}
    return Kernels(**made)  # type: ignore[arg-type]


_SAME = 0.01
"""Share by which parameters may differ from the stated ones: these have two digits."""


def vision_steps(task: str = "train") -> tuple[Step, ...]:
    """Return the steps of timm's benchmark that have a table of their model.

    Where the traced parameters are not the stated ones, timm's name means another model today:
    the row says nothing about the traced one, and is left out.
    """
    kinds = {"train": "ops-vision-train.npz", "infer": "ops-vision-infer.npz"}
    known = tables(kinds[task])
    return tuple(
        _vision(row, known[row.key])
        for row in visionrows.rows()
        if row.task == task and row.key in known and _same_model(row, known[row.key])
    )


def _same_model(row: visionrows.VisionRow, table: OpRows) -> bool:
    return abs(row.params / table.parameters - 1) < _SAME


def _vision(row: visionrows.VisionRow, table: OpRows) -> Step:
    return Step(
        *(row.id, row.model, row.family, catalog().record(row.gpu), row.precision),
        channels_last=row.layout == "nhwc",
        framework=row.framework,
        seconds=row.seconds,
        source=row.source,
        table=table,
        batch=row.batch,
        phases=("forward", "loss", "backward"),
        trains=row.task == "train",
        compiled=row.compiled,
    )


def fitted_vision_steps() -> tuple[Step, ...]:
    """Return the training steps that the fit may see."""
    families = visionrows.held_out()["family"]
    return tuple(step for step in vision_steps() if step.family not in families)


def unseen_vision_steps() -> tuple[Step, ...]:
    """Return the training steps of families that no fit sees."""
    families = visionrows.held_out()["family"]
    return tuple(step for step in vision_steps() if step.family in families)


def mpt_steps() -> tuple[Step, ...]:
    """Return the training steps of MPT models, several GPUs each."""
    known = tables(textrows.TABLES)
    return tuple(
        Step(
            *(row.id, row.model, row.family, catalog().record(row.gpu), row.precision, False),
            framework=row.framework,
            seconds=row.seconds,
            source=row.source,
            table=known[row.key],
            batch=row.batch,
            phases=row.phases,
            accumulation=row.accumulation,
            gpus=row.gpus,
        )
        for row in textrows.rows()
        if row.family == "mpt" and row.task == "train" and row.key in known
    )


def forward_steps(*, compiled: bool = False) -> tuple[Step, ...]:
    """Return the forward steps of timm's benchmark."""
    return tuple(step for step in vision_steps("infer") if step.compiled == compiled)


FIT_GPU = "rtx-3090"
"""The one GPU that timm trained on; forward steps on it are fitted beside, those on others not."""


def fitted_steps() -> tuple[Step, ...]:
    """Return all steps that the fit of the kernels may see."""
    families = visionrows.held_out()["family"]
    forward = [step for step in forward_steps() if step.gpu.id == FIT_GPU]
    return (*fitted_vision_steps(), *(step for step in forward if step.family not in families))
