"""The fit of the clock's constants to measured steps; ``scripts/fit_steptime.py`` ships them.

The seconds are those of the product's own ``kernel_seconds``: nothing is modelled twice. A
constant of a class changes that class's kernels alone, so its derivative costs little.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from clockrows import DTYPES, Block, Step
from scipy.optimize import least_squares

from trainwright.catalog import GpuRecord
from trainwright.estimate.time.efficiency import Curves
from trainwright.estimate.time.kernels import CLASSES, NUMBER
from trainwright.estimate.time.roofline import Rates, kernel_seconds
from trainwright.profile.profile import Floats

VERSIONS = ("torch 2.1.0", "torch 2.4.0")
"""Frameworks with a factor of their own; those before are one, 1."""
LAYOUTS = ("channels_first", "channels_last")
ROBUST = 0.1
"""Deviations in log time beyond this weigh less (assumed: pseudo-Huber)."""
PRIOR = 0.02
"""Weight of a constant's prior beside one row."""

DENSE = ("convolution", "convolution-input-gradient", "convolution-weight-gradient")
GROUPED = tuple(f"grouped-{name}" for name in DENSE)
WIDE = tuple(f"wide-grouped-{name}" for name in DENSE)
DEPTHWISE = tuple(f"depthwise-{name}" for name in DENSE)
NORMS = ("batch-norm", "batch-norm-backward")
POOLS = ("pooling", "pooling-backward")
BY_LAYOUT = (*DENSE, *GROUPED, *WIDE, *DEPTHWISE, *NORMS, *POOLS)
"""Classes that run other kernels in another layout."""
SHAPES = {
    "gemm": ("gemm",),
    "batched-gemm": ("batched-gemm",),
    "convolution": DENSE,
    "grouped-convolution": (*GROUPED, *WIDE),
}
"""Classes that share how small shapes cost."""


@dataclass(frozen=True, slots=True)
class Constant:
    """One number of the calibration, fitted in its logarithm."""

    part: str
    """compute | memory | half_m | half_n | half_k | odd | again | smoothing | gap | transposes |
    version"""
    classes: tuple[str, ...]
    """Empty: all. Of a version: the frameworks that it stands for."""
    layouts: tuple[str, ...]
    prior: float
    most: float
    least: float = 1e-7


def constants() -> tuple[Constant, ...]:
    """Return what is fitted; bounds are physics: 1.05 of the peak, 0.95 of the bandwidth.

    Boost clocks above the data sheet's allow a little more than the peak.
    """
    found: list[Constant] = []
    for name in CLASSES:
        if name in _NOT_FITTED:
            continue
        compute, memory = _PRIORS.get(name, (None, 0.8))
        for layouts in [(one,) for one in LAYOUTS] if name in BY_LAYOUT else [LAYOUTS]:
            if compute is not None:
                found.append(Constant("compute", (name,), layouts, compute, 1.05))
            least = _LEAST_MEMORY.get(name, 1e-7)
            found.append(Constant("memory", (name,), layouts, memory, 0.95, least))
    for names in SHAPES.values():
        for part, prior in (("half_m", 64.0), ("half_n", 16.0), ("half_k", 32.0)):
            most = _MOST_ROWS if (part, names) == ("half_m", ("gemm",)) else 1000.0
            found.append(Constant(part, names, LAYOUTS, min(prior, most), most))
        found.append(Constant("odd", names, LAYOUTS, 0.6, 1.0))
    found.append(Constant("again", ("gemm",), LAYOUTS, 1.0, 4.0))
    found += [Constant("half_n", NORMS, (one,), 8.0, 200.0) for one in LAYOUTS]
    found.append(Constant("transposes", DENSE, LAYOUTS[:1], 0.5, 2.0))
    found.append(Constant("transposes", DENSE, LAYOUTS[1:], 0.05, 2.0))
    found += [Constant("version", (name,), LAYOUTS, 1.0, 1.5, 0.6) for name in VERSIONS]
    found.append(Constant("smoothing", (), LAYOUTS, 4.0, 20.0, 1.0))
    found.append(Constant("gap", (), LAYOUTS, 2.5e-6, 3e-6))
    return tuple(found)


_ATTENTION = ("attention", "attention-backward")
_OPTIMIZERS = ("fused-optimizer", "foreach-optimizer")
_NOT_FITTED = ("view", "grouped-gemm", "dequantization", *_ATTENTION, *_OPTIMIZERS)
"""No vision row of the fit runs them."""

_MOST_ROWS = 60.0
"""A product of few rows waits for its weights, not for its tiles: fitted alone on vidur's tables,
m0 of A40, A100 and H100 is 63, 87 and 159, over their balance 23 to 43."""
_LEAST_MEMORY = {"gemm": 0.75, **dict.fromkeys(DENSE, 0.5)}
"""Weight-bound products reach 77 % of an A100's bandwidth (vidur's tables); timm's rows, all at
large batches, would hide other costs here. Convolutions: assumed, for the same reason."""

_PRIORS: Mapping[str, tuple[float | None, float]] = {
    "gemm": (0.75, 0.8),
    "batched-gemm": (0.4, 0.8),
    **{name: (0.6, 0.8) for name in DENSE},
    **{name: (0.1, 0.8) for name in (*GROUPED, *WIDE)},
    **{name: (0.3, 0.5) for name in DEPTHWISE},
    **{name: (None, 0.5) for name in ("other", "index", "reduction", "pooling-backward")},
}
"""Class -> (compute, memory) that the fit starts from and is drawn to (assumed)."""

UPDATE_BYTES = 44
"""A parameter in the loop over tensors of SGD with Nesterov momentum, torch 1.12: reads and
writes of its five operators in fp32."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """Constants with their values."""

    constants: tuple[Constant, ...]
    values: Floats
    update: float
    """Share of the bandwidth that the loop of the optimizer reaches."""

    def curves(self, layout: str) -> Curves:
        """Return the table of a layout."""
        return _curves(self.constants, self.values, layout)


def _curves(constants: Sequence[Constant], values: Floats, layout: str) -> Curves:
    many = len(CLASSES)
    made = Curves(
        *(np.ones(many), np.full(many, 0.8), np.zeros((3, many)), np.ones(many), np.zeros(many)),
        *(4.0, 0.0, 0.0),
    )
    single = {"smoothing": 4.0, "gap": 0.0, "transposes": 0.0}
    halves = ("half_m", "half_n", "half_k")
    for constant, value in zip(constants, values, strict=True):
        if layout not in constant.layouts:
            continue
        if constant.part == "version":
            continue
        numbers = [NUMBER[name] for name in constant.classes]
        if constant.part in single:
            single[constant.part] = float(value)
        elif constant.part in halves:
            made.half[halves.index(constant.part), numbers] = value
        else:
            getattr(made, constant.part)[numbers] = value
    return replace(made, **single)


def rates_of(gpu: GpuRecord, precision: str, ceiling: float = 1.0) -> Rates:
    """Return a GPU's peaks for ``DTYPES``, from its data sheet."""
    half = "bf16_fp32" if "bf16" in precision else "fp16_fp32"
    wide = "tf32_fp32" if precision == "tf32" else "fp32"
    vector = gpu.flops["fp32"].value
    flops = {"half": gpu.flops.get(half, gpu.flops["fp32"]).value * ceiling}
    flops["float32"] = gpu.flops.get(wide, gpu.flops["fp32"]).value * ceiling
    cache = gpu.l2_bytes.value if gpu.l2_bytes is not None else 0.0
    rate = gpu.bandwidth_bytes_per_s.value
    return Rates(flops, vector, rate, frozenset(), cache=cache)


def version(constants: Sequence[Constant], values: Floats, framework: str) -> float:
    """Return the factor on the kernels of a framework; those after the last known are as it."""
    known = {
        constant.classes[0]: float(value)
        for constant, value in zip(constants, values, strict=True)
        if constant.part == "version"
    }
    unknown = 1.0 if framework.startswith("torch 1.") else known[VERSIONS[-1]]
    return known.get(framework, unknown)


def layout_of(step: Step) -> str:
    """Return the name of a step's layout."""
    return LAYOUTS[int(step.channels_last)]


def kernel_times(block: Block, curves: Curves, ceiling: float = 1.0) -> Floats:
    """Return seconds of one run of each kernel of a block."""
    situation = block.situation
    rates = rates_of(situation.gpu, situation.precision, ceiling)
    launches = np.ones(len(block.kernels.group))
    return kernel_seconds(block.kernels, launches, rates, curves, DTYPES).seconds


def kernels_total(block: Block, curves: Curves, ceiling: float = 1.0) -> Floats:
    """Return seconds of each step's kernels, without the update."""
    return block.total(kernel_times(block, curves, ceiling))


def updates(block: Block) -> Floats:
    """Return seconds of each step's update at the whole bandwidth; 0 without training."""
    rate = block.situation.gpu.bandwidth_bytes_per_s.value
    return np.array(
        [UPDATE_BYTES * step.table.parameters / rate * step.trains for step in block.steps]
    )


def predict(block: Block, fitted: Fitted, ceiling: float = 1.0) -> Floats:
    """Return seconds of each step of a block."""
    kernels = kernels_total(block, fitted.curves(layout_of(block.situation)), ceiling)
    own = version(fitted.constants, fitted.values, block.situation.framework)
    return own * kernels + updates(block) / fitted.update


FORWARD = 0.2
"""Weight of a forward step beside a training step, which holds it (assumed)."""


def fit(blocks: Iterable[Block], start: Fitted | None = None) -> Fitted:
    """Return the constants with which the steps' log times deviate least, robustly."""
    known = constants()
    problem = _Problem(known, tuple(blocks))
    prior = np.log([*(constant.prior for constant in known), 0.7])
    first = prior if start is None else np.log([*start.values, start.update])
    least = np.log([*(constant.least for constant in known), 0.1])
    most = np.log([*(constant.most for constant in known), 0.95])
    found = least_squares(
        problem.deviations,
        np.clip(first, least + 1e-6, most - 1e-6),
        jac=problem.slopes,
        args=(prior,),
        bounds=(least, most),
        loss="soft_l1",
        f_scale=ROBUST,
        x_scale=1.0,
        ftol=1e-5,
        xtol=1e-5,
        max_nfev=60,
    )
    values = np.exp(found.x)
    return Fitted(known, values[:-1], float(values[-1]))


_STEP = 1e-4
"""Of a constant's logarithm, for its derivative."""


class _Problem:
    """Deviations of blocks, and their derivatives; keeps each class's kernels apart."""

    def __init__(self, known: tuple[Constant, ...], blocks: tuple[Block, ...]) -> None:
        self.known = known
        self.blocks = blocks
        self.updates = [updates(block) for block in blocks]
        self.logs = np.log(np.concatenate([block.seconds for block in blocks]))
        trains = np.concatenate([[step.trains for step in block.steps] for block in blocks])
        self.weights = np.where(trains, 1.0, FORWARD) ** 0.5
        self._parts: dict[tuple[int, tuple[str, ...]], Block] = {}

    def deviations(self, logs: Floats, prior: Floats) -> Floats:
        totals = np.concatenate(self._totals(logs))
        away = self.weights * (np.log(totals) - self.logs)
        return np.concatenate([away, np.sqrt(PRIOR) * (logs - prior)])

    def _totals(self, logs: Floats) -> list[Floats]:
        values, update = np.exp(logs[:-1]), np.exp(logs[-1])
        return [
            version(self.known, values, block.situation.framework)
            * kernels_total(block, _curves(self.known, values, layout_of(block.situation)))
            + extra / update
            for block, extra in zip(self.blocks, self.updates, strict=True)
        ]

    def slopes(self, logs: Floats, prior: Floats) -> Floats:
        totals = self._totals(logs)
        ends = np.cumsum([len(total) for total in totals])
        result = np.zeros((ends[-1], len(logs)))
        values = np.exp(logs[:-1])
        for place, constant in enumerate(self.known):
            moved = values.copy()
            moved[place] *= np.exp(_STEP)
            for number, block in enumerate(self.blocks):
                layout, framework = layout_of(block.situation), block.situation.framework
                rows = slice(ends[number] - len(totals[number]), ends[number])
                if constant.part == "version":
                    extra = self.updates[number] / np.exp(logs[-1])
                    share = 1 - extra / totals[number]
                    result[rows, place] = share * (framework in constant.classes)
                    continue
                part = self._part(number, constant.classes)
                if layout not in constant.layouts or part is None:
                    continue
                before, after = (
                    kernels_total(part, _curves(self.known, some, layout))
                    for some in (values, moved)
                )
                own = version(self.known, values, framework)
                result[rows, place] = own * (after - before) / _STEP / totals[number]
        for number, extra in enumerate(self.updates):
            rows = slice(ends[number] - len(extra), ends[number])
            result[rows, -1] = -extra / np.exp(logs[-1]) / totals[number]
        result *= self.weights[:, None]
        return np.concatenate([result, np.sqrt(PRIOR) * np.eye(len(logs))])

    def _part(self, number: int, classes: tuple[str, ...]) -> Block | None:
        if not classes:
            return self.blocks[number]
        if (number, classes) not in self._parts:
            numbers = [NUMBER[name] for name in classes]
            self._parts[number, classes] = self.blocks[number].of_classes(numbers)
        part = self._parts[number, classes]
        return part if len(part.runs) else None


SOURCE = "fitted, RTX 3090: timm's benchmark (tests/accuracy/rows/vision.csv)"


def entries(fitted: Fitted, known: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the calibration file gets from a fit; numbers of four digits."""
    first, last = (fitted.curves(layout) for layout in LAYOUTS)
    classes = dict(known["classes"])
    for name in CLASSES:
        if name != "view" and name not in _NOT_FITTED:
            classes[name] = _entry(first, name)
    update = classes["foreach-optimizer"] | {"memory": _rounded(fitted.update)}
    classes["foreach-optimizer"] = update | {"source": f"{SOURCE}; the loop over tensors of SGD"}
    transposes = "share of a 16-bit convolution's activations that is moved again"
    return {
        "classes": {name: classes[name] for name in CLASSES if name in classes},
        "channels_last": {name: _entry(last, name) for name in BY_LAYOUT},
        "layout_traffic": {
            layout: {"value": _rounded(curves.transposes), "source": f"{SOURCE}: {transposes}"}
            for layout, curves in zip(LAYOUTS, (first, last), strict=True)
        },
        "framework": {"torch-1.12": {"value": 1.0, "source": f"{SOURCE}: training steps, 1.12"}}
        | {
            own: {
                "value": _rounded(version(fitted.constants, fitted.values, of)),
                "source": f"{SOURCE}: forward steps, {of} over 1.13; later ones assumed alike",
            }
            for own, of in zip(("torch-2.0", "torch-2.4"), VERSIONS, strict=True)
        },
        "smoothing": {"value": _rounded(first.smoothing), "source": SOURCE},
        "kernel_gap_s": {"value": _rounded(first.gap), "source": SOURCE},
    }


def _entry(curves: Curves, name: str) -> dict[str, float | str]:
    number = NUMBER[name]
    halves = {
        f"half_{part}": _rounded(value)
        for part, value in zip("mnk", curves.half[:, number], strict=True)
    }
    return {
        "compute": _rounded(curves.compute[number]),
        "memory": _rounded(curves.memory[number]),
        **halves,
        "odd": _rounded(curves.odd[number]),
        "again": _rounded(curves.again[number]),
        "source": SOURCE,
    }


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
