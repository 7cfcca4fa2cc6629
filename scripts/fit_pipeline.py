"""Fit the CPU side of ``resources/calibration/pipeline.json`` to the rows that are not kept out.

``python scripts/fit_pipeline.py`` prints what it finds; ``--write`` puts it into the file.
Deterministic, a few seconds. What the file holds beside that is measured, published or assumed,
and stays. The rows are ``tests/accuracy/rows/pipeline.csv``, what is kept out is listed beside.
"""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests" / "accuracy"))

from loaderrows import Row, from_one_core, held_out, kept_out, rows, sweeps  # noqa: E402

from trainwright.estimate.input.pipeline_calibration import PipelineCalibration  # noqa: E402

FILE = ROOT / "resources" / "calibration" / "pipeline.json"
BENCHMARK = "ternaus/imread_benchmark"
FIRST = "AMD EPYC 9B14"
"""On which a library that is kept out shows its speed: the first processor by name."""
ARM = ("Neoverse", "Apple")
KEEPERS = ("kornia",)
KEEPS = (
    "kornia-rs 0.1.10 lets no other thread run while it decodes (measured; Pillow, OpenCV,"
    " simplejpeg and imagecodecs do); of the up to three waits of a batch, unpacking hides some"
)
"""Which decoders keep the interpreter's lock."""
Figures = dict[str, Any]
Floats = NDArray[np.float64]


def fitted(shipped: Figures) -> Figures:
    """Return the calibration with all that the rows decide."""
    new: Figures = json.loads(json.dumps(shipped))
    _core_rates(new["decoding"])
    _pipes(new)
    return new


# One core


def _core_rates(decoding: Figures) -> None:
    """Fit bytes a cycle of each generation, times a factor of each library, in the logarithm."""
    core = [row for row in rows() if row.measures == "core"]
    used = [row for row in core if not kept_out(row)]
    generations = sorted({row.architecture for row in used})
    libraries = sorted({row.library for row in used} - {"pillow"})
    columns = {name: number for number, name in enumerate((*generations, *libraries))}
    matrix = np.zeros((len(used), len(columns)))
    for number, row in enumerate(used):
        matrix[number, columns[row.architecture]] = 1
        if row.library != "pillow":
            matrix[number, columns[row.library]] = 1
    target = np.log([row.value * row.sample_bytes / (row.boost_ghz * 1e9) for row in used])
    found = np.exp(_least_absolute(matrix, target))
    each = {name: float(found[columns[name]]) for name in (*generations, *libraries)}
    source = f"fitted: one core, {BENCHMARK}"
    decoding["architectures"] = {name: _constant(each[name], source) for name in generations}
    decoding["unknown_architecture"] = _constant(
        _mean([each[name] for name in generations]), f"mean of the generations above, {BENCHMARK}"
    )
    rate = {row.cpu: each[row.architecture] * row.boost_ghz * 1e9 for row in used}
    decoding["unknown_core_bytes_per_s"] = _constant(
        _mean(list(rate.values())), f"mean core of {len(rate)} processors, {BENCHMARK}"
    )
    factors = {"pillow": _constant(1.0, "the unit")}
    factors |= {name: _constant(each[name], source) for name in libraries}
    factors |= _kept_out_libraries(core, rate[FIRST])
    decoding["libraries"] = dict(sorted(factors.items()))


def _least_absolute(matrix: Floats, target: Floats) -> Floats:
    """Return the solution whose misses are smallest in sum: a few rows are far off."""
    weights = np.ones(len(target))
    for _ in range(100):
        scaled = np.sqrt(weights)
        found = np.linalg.lstsq(matrix * scaled[:, None], target * scaled, rcond=None)[0]
        weights = 1 / np.maximum(np.abs(matrix @ found - target), 1e-3)
    return found


def _kept_out_libraries(core: list[Row], rate: float) -> Figures:
    """Return the speed of libraries that are kept out, from one core rate each."""
    source = f"one core of {FIRST}, {BENCHMARK}; all else of it is kept out of the fit"
    return {
        row.library: _constant(row.value * row.sample_bytes / rate, source)
        for row in core
        if row.cpu == FIRST and row.library in held_out()["library"]
    }


# Workers


def _pipes(new: Figures) -> None:
    """Fit what hand-over costs, on sweeps whose core rate the row without workers tells."""
    used = [sweep for sweep in sweeps() if not kept_out(sweep[0])]
    generations = sorted({sweep[0].architecture for sweep in used})
    known = [row for sweep in used for row in sweep[1:]]

    def loss(point: list[float]) -> float:
        figures = _with(new, generations, point[:4], *point[4:])
        calibration = PipelineCalibration.model_validate(figures)
        errors = [math.log(from_one_core(row, calibration) / row.value) for row in known]
        return sum(abs(error) + error * error for error in errors) / len(errors)

    best = _descend(loss, [0.4, 5.0, 0.03, 1.0, *[1e-9] * len(generations)])
    new |= _with(new, generations, best[:4], *best[4:])


def _with(new: Figures, generations: list[str], shape: list[float], *each: float) -> Figures:
    """Return the calibration with these hand-over costs; families are means of generations."""
    source = f"fitted: loader sweeps, {BENCHMARK}"
    costs = dict(zip(generations, each, strict=True))
    main = {name: _constant(value, source) for name, value in costs.items()}
    for family, mine in (
        ("x86", [cost for name, cost in costs.items() if not name.startswith(ARM)]),
        ("arm", [cost for name, cost in costs.items() if name.startswith(ARM[0])]),
    ):
        main[family] = _constant(_mean(mine), f"mean of the family's generations, {BENCHMARK}")
    pipes = {
        "main_s_per_byte": main,
        "worker_share": _constant(shape[0], source),
        "crowding": {"macos": _constant(shape[2], source)},
    }
    workers = new["workers"] | {"softness": _constant(shape[1], source)}
    waits = {name: _constant(shape[3], f"{source}; {KEEPS}") for name in KEEPERS}
    decoding = new["decoding"] | {"lock_waits": waits}
    return new | {"pipes": pipes, "workers": workers, "decoding": decoding}


def _descend(loss: Callable[[list[float]], float], point: list[float]) -> list[float]:
    """Return the minimum by steps along each coordinate that shrink when none helps."""
    best, step = loss(point), 0.2
    while step > 0.002:
        better = False
        for number in range(len(point)):
            for factor in (1 + step, 1 / (1 + step)):
                tried = [*point[:number], point[number] * factor, *point[number + 1 :]]
                if (value := loss(tried)) < best - 1e-9:
                    point, best, better = tried, value, True
        step = step if better else step / 2
    return point


def _mean(values: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(sum(map(math.log, values)) / len(values))


def _constant(value: float, source: str) -> Figures:
    return {"value": float(f"{value:.4g}"), "source": source}


if __name__ == "__main__":
    result = fitted(json.loads(FILE.read_text(encoding="utf-8")))
    for section in ("decoding", "pipes"):
        sys.stdout.write(json.dumps(result[section], indent=1, ensure_ascii=False) + "\n")
    if "--write" in sys.argv:
        text = json.dumps(result, indent=1, ensure_ascii=False) + "\n"
        FILE.write_text(text, encoding="utf-8", newline="\n")
