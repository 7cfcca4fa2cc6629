"""Fit what the exchange of gradients costs: ``resources/calibration/communication.json``.

``python scripts/fit_communication.py [--check]`` fits the constants whose source says "fitted" to
the rows of ``tests/accuracy/rows`` that ``held_out.csv`` does not name, and writes them; with
``--check`` it fails where the shipped ones differ. It takes seconds and has no randomness: each
constant in turn is searched on a grid that gets finer round by round.

The error to be small: the mean absolute error of scaling efficiencies, in which the rows of one
GPU, workload and source count as the square root of their number; and, of all-reduces, the mean
absolute logarithm of predicted to measured seconds, each kind of link alike.
"""

import json
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "app"), str(ROOT / "tests" / "accuracy")]

import numpy as np  # noqa: E402
from scaling import (  # noqa: E402
    ScalingRow,
    collective_rows,
    link_of,
    predicted,
    predicted_seconds,
    scaling_rows,
)

from trainwright.estimate.parallel.communication import Calibration  # noqa: E402

FILE = ROOT / "resources" / "calibration" / "communication.json"
POINT = 10.0
"""What an error of 1 in efficiency weighs, against a factor of e in the time of an all-reduce."""
ROUNDS = 6
RANGES: dict[str, tuple[float, float]] = {
    "bus_share.nvlink": (0.3, 0.95),
    "bus_share.bridge": (0.3, 0.95),
    "bus_share.peer": (0.1, 0.85),
    "bus_share.host": (0.05, 0.9),
    "crowding.nvlink": (0.0, 0.5),
    "crowding.peer": (0.0, 0.5),
    "crowding.host": (0.0, 0.5),
    "latency_s": (5e-6, 1e-4),
    "hop_s": (0.0, 5e-6),
    "low_latency_s": (2e-6, 5e-5),
    "low_latency_share": (0.05, 0.5),
    "contention.nvlink": (0.0, 1.0),
    "contention.cards": (0.0, 1.0),
    "straggler": (0.0, 0.1),
    "straggler_varied": (0.0, 0.2),
}
"""Constant -> what is physically possible. ``cards``: one value for all cards on PCIe, with
bridges and without, because too few rows tell them apart. No all-reduce beats a copy from GPU to
GPU, which reaches 0.84 of PCIe (six RTX A6000, NVIDIA/nvbandwidth issue 50)."""


def main() -> int:
    """Write the fitted constants, or compare them with the shipped ones."""
    document = json.loads(FILE.read_text(encoding="utf-8"))
    text = json.dumps(fitted(document), indent=2) + "\n"
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text, encoding="utf-8")
        return 0
    same = text == FILE.read_text(encoding="utf-8")
    print("The shipped constants are those of the fit." if same else "The fit gives others.")
    return 0 if same else 1


def fitted(document: dict[str, object]) -> dict[str, object]:
    """Return the document with fitted values; what it held of them before does not matter."""
    values = {name: (low + high) / 2 for name, (low, high) in RANGES.items()}
    best = loss(put(document, values))
    for number in range(ROUNDS):
        for name, (low, high) in RANGES.items():
            for value in grid(values[name], low, high, number):
                error = loss(put(document, values | {name: value}))
                if error < best:
                    best, values[name] = error, value
    rounded = {name: float(f"{value:.3g}") for name, value in values.items()}
    document = put(document, rounded)
    return put(document, {"efficiency_spread": round(spread(document), 3)})


def grid(value: float, low: float, high: float, number: int) -> list[float]:
    """Return the values to try: over the whole range first, then ever closer around the best."""
    if number < 2:
        return [low + (high - low) * step / 16 for step in range(17)]
    width = (high - low) / 4**number
    around = (value + width * step for step in (-4, -2, -1, 1, 2, 4))
    return [min(max(each, low), high) for each in around]


def put(document: Mapping[str, object], values: Mapping[str, float]) -> dict[str, object]:
    """Return a copy of the document with the values in their places."""
    changed = json.loads(json.dumps(document))
    for name, value in values.items():
        group, _, key = name.partition(".")
        for each in ("bridge", "peer", "host") if key == "cards" else (key,):
            (changed[group][each] if each else changed[group])["value"] = value
    return changed  # type: ignore[no-any-return]


def loss(document: dict[str, object]) -> float:
    """Return the error of the constants on the rows of the fit."""
    calibration = Calibration.model_validate(document)
    efficiency = sum(
        weight * abs(predicted(row, calibration) - row.efficiency)
        for row, weight in zip(FITTED, WEIGHTS, strict=True)
    )
    by_path: defaultdict[str, list[float]] = defaultdict(list)
    for row in COLLECTIVES:
        ratio = predicted_seconds(row, calibration) / row.seconds
        by_path[link_of(row).path].append(abs(math.log(ratio)))
    seconds = np.mean([np.mean(errors) for errors in by_path.values()])
    return float(POINT * efficiency + seconds)


def spread(document: dict[str, object]) -> float:
    """Return the 90th percentile of the error of efficiencies on the rows of the fit."""
    calibration = Calibration.model_validate(document)
    errors = [abs(predicted(row, calibration) - row.efficiency) for row in FITTED]
    return float(np.quantile(errors, 0.9))


def _weights(rows: list[ScalingRow]) -> list[float]:
    kinds = [(row.gpu, row.workload, row.source) for row in rows]
    count = Counter(kinds)
    weights = [count[kind] ** -0.5 for kind in kinds]
    return [weight / sum(weights) for weight in weights]


FITTED = [row for row in scaling_rows() if not row.held]
WEIGHTS = _weights(FITTED)
COLLECTIVES = [row for row in collective_rows() if not row.held]

if __name__ == "__main__":
    raise SystemExit(main())
