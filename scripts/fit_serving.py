"""Fit the constants of serving on published times; GPUs that the rule keeps out are not looked at.

    python scripts/fit_serving.py            # writes resources/calibration/serving.json
    python scripts/fit_serving.py --check    # are the shipped constants the fitted ones?
    python scripts/fit_serving.py --interval # its factor, each GPU left out in turn

What is minimised is the mean of a pseudo-Huber loss of log(predicted / published), every group of
one publisher, GPU and kind counting alike, by steps along one constant after the other.
"""

import json
import sys
from collections import defaultdict
from collections.abc import Callable
from math import exp, log, sqrt
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "accuracy"))

from serving_rows import Row, compared, predicted  # noqa: E402

from trainwright.estimate.serving.serving_pass import ServingCalibration  # noqa: E402

FILE = ROOT / "resources" / "calibration" / "serving.json"
WIDTH = 0.1
"""Errors of more than this count linearly: no row may pull hard."""
RIDGE = 0.002
"""Pull of each constant towards where it started, on squared logarithms."""
BOUNDS = {
    **{"memory": (0.3, 0.95), "cache": (0.2, 0.95), "attention": (0.05, 0.9)},
    **{"products": (0.2, 1.05), "packed_products": (0.2, 1.05)},
    **{"sharpness": (1.0, 8.0), "packed_sharpness": (1.0, 8.0), "activations": (5.0, 200.0)},
    **{"layer_s": (5e-6, 2e-4), "pass_s": (1e-5, 3e-3), "unpack_flop": (1.0, 30.0)},
    "unpack": (0.2, 5.0),
}
FREE = {
    **{
        ("families", family, name): BOUNDS[name]
        for family in ("paged", "llama.cpp")
        for name in BOUNDS
        if name != "unpack" and (family, name) != ("paged", "unpack_flop")
    },
    **{
        ("makers", "Apple", name): bounds
        for name, bounds in {
            "memory": (0.5, 1.1),
            "products": (0.3, 1.2),
            "unpack": (0.2, 5.0),
        }.items()
    },
}
"""What is fitted; AMD and Intel have no row outside what is kept out, and stay assumed."""

Path3 = tuple[str, str, str]


def loss(document: dict[str, Any], start: dict[Path3, float], without: str = "") -> float:
    """Return what the fit makes small; ``without``: a GPU whose rows it does not see."""
    known = ServingCalibration.model_validate(document)
    groups: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for row in fitted():
        if row.gpu == without:
            continue
        error = log(predicted(row, known) / row.seconds)
        groups[row.publisher, row.gpu, row.kind].append(sqrt(1 + (error / WIDTH) ** 2) - 1)
    mean = sum(sum(group) / len(group) for group in groups.values()) / len(groups)
    return mean + RIDGE * sum(log(_get(document, at) / value) ** 2 for at, value in start.items())


def fitted() -> list[Row]:
    """Return the rows that the fit may see."""
    return [row for row in compared() if not row.held_out]


def fit(
    document: dict[str, Any], *, without: str = "", rounds: int = 40, step: float = 0.2
) -> float:
    """Change the document's free constants in place, and return the loss that is left."""
    start = {at: _get(document, at) for at in FREE}
    best = loss(document, start, without)
    for _ in range(rounds):
        before = best
        for at in FREE:
            best = _along(document, at, step, best, lambda: loss(document, start, without))
        if before - best < 1e-4 * best:
            step /= 2
        if step < 0.01:
            break
    for at in FREE:
        _set(document, at, float(f"{_get(document, at):.3g}"))
    return best


def _along(
    document: dict[str, Any], at: Path3, step: float, best: float, value: Callable[[], float]
) -> float:
    for factor in (1 + step, 1 / (1 + step)):
        while True:
            old = _get(document, at)
            low, high = FREE[at]
            _set(document, at, min(max(old * factor, low), high))
            now = value() if _get(document, at) != old else best
            if now >= best:
                _set(document, at, old)
                break
            best = now
    return best


def interval(document: dict[str, Any]) -> float:
    """Return the factor that 90 % of the errors stay within on a GPU that the fit has not seen.

    Every GPU counts alike, however many rows it has.
    """
    weighted: list[tuple[float, float]] = []
    for gpu in sorted({row.gpu for row in fitted()}):
        other = json.loads(json.dumps(document))
        fit(other, without=gpu, step=0.05)
        known = ServingCalibration.model_validate(other)
        mine = [row for row in fitted() if row.gpu == gpu]
        errors = [abs(log(predicted(row, known) / row.seconds)) for row in mine]
        weighted += [(error, 1 / len(mine)) for error in errors]
        print(f"{gpu:20} {len(mine):3} rows, median factor {exp(median(errors)):.2f}")
    weighted.sort()
    whole = sum(weight for _, weight in weighted)
    below = 0.0
    for error, weight in weighted:
        below += weight
        if below >= 0.9 * whole:
            return exp(error)
    raise AssertionError("weights sum to the whole")


def improvable(document: dict[str, Any]) -> list[str]:
    """Return the constants of which a step of 5 % would fit clearly better."""
    start = {at: _get(document, at) for at in FREE}
    best = loss(document, {})
    found = []
    for at in FREE:
        for factor in (1.05, 1 / 1.05):
            old = start[at]
            low, high = FREE[at]
            _set(document, at, min(max(old * factor, low), high))
            if loss(document, {}) < best - 0.01 * best:
                found.append(".".join(at))
            _set(document, at, old)
    return found


def _get(document: dict[str, Any], at: Path3) -> float:
    return float(document[at[0]][at[1]][at[2]])


def _set(document: dict[str, Any], at: Path3, value: float) -> None:
    document[at[0]][at[1]][at[2]] = value


def main() -> int:
    """Fit, or check."""
    document = json.loads(FILE.read_text(encoding="utf-8"))
    if "--check" in sys.argv:
        found = improvable(document)
        print("\n".join(found) or "the shipped constants are the fitted ones")
        return 1 if found else 0
    if "--interval" in sys.argv:
        print(f"interval_factor {interval(document):.2f}")
        return 0
    print(f"{len(fitted())} rows, loss {loss(document, {}):.4f} -> {fit(document):.4f}")
    FILE.write_text(json.dumps(document, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
