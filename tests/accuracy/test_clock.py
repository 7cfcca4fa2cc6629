"""Predicted against measured time of public steps; ``make accuracy`` prints the tables.

What is kept out of the fit (``rows/held_out.csv``) was listed before anything was fitted.
"""

import csv
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import cache

import clockfit
import clockrows
import mpt
import numpy as np
import pytest
import spreadfit
import visionrows
from clockrows import Block, Step, blocks
from optables import ROWS
from scipy.optimize import nnls

from trainwright.data import resources
from trainwright.estimate.power import board_share
from trainwright.estimate.time.efficiency import load
from trainwright.estimate.time.spread import GROUPS, expected
from trainwright.profile.profile import Floats

GOALS = {"new families": (0.06, 0.10, 0.22), "new sizes": (0.03, 0.05, 0.12)}
GOALS["no rows"] = (0.11, 0.16, 0.36)
"""Median, mean and 90th percentile of |predicted / measured - 1|."""


@cache
def fitted() -> clockfit.Fitted:
    """The fit, made again from the rows: nothing shipped is used."""
    return clockfit.fit(blocks(clockrows.fitted_steps()))


@cache
def stack() -> mpt.Stack:
    return mpt.fit(mpt.fitted_steps(), fitted())


def kernels_of(block: Block) -> Floats:
    return clockfit.predict(block, fitted(), board_share(block.situation.gpu))


def sharded(block: Block) -> Floats:
    return mpt.predict(block, fitted(), stack())


def sharded_unseen(block: Block) -> Floats:
    reached = mpt.REACHED["Hopper"] / mpt.REACHED["Ampere datacenter"]
    return mpt.predict(block, fitted(), stack(), reached, mpt.H100_ATTENTION)


def forward_unseen() -> list[Step]:
    gpus = visionrows.held_out()["gpu"]
    return [step for step in clockrows.forward_steps() if step.gpu.id in gpus]


SETS: dict[str, tuple[Callable[[], Sequence[Step]], Callable[[Block], Floats]]] = {
    "vision training, fitted": (clockrows.fitted_vision_steps, kernels_of),
    "vision training, new families": (clockrows.unseen_vision_steps, kernels_of),
    "MPT on A100, fitted": (mpt.fitted_steps, sharded),
    "MPT on A100, new sizes": (mpt.unseen_sizes, sharded),
    "MPT on H100, no rows": (mpt.unseen_gpu, sharded_unseen),
    "vision forward, Blackwell, no rows": (forward_unseen, kernels_of),
}


def logs(steps: Iterable[Step], predict: Callable[[Block], Floats]) -> Floats:
    """Return log(predicted / measured) of steps."""
    return np.concatenate([np.log(predict(block) / block.seconds) for block in blocks(steps)])


def figures(found: Floats) -> tuple[float, float, float]:
    away = np.abs(np.exp(found) - 1)
    return float(np.median(away)), float(away.mean()), float(np.quantile(away, 0.9))


def shown(name: str, found: Floats) -> str:
    median, mean, tail = (100 * value for value in figures(found))
    bias = 100 * (np.exp(np.median(found)) - 1)
    return f"{name:44s} {len(found):5d} {median:6.1f} {mean:6.1f} {tail:6.1f} {bias:+7.1f}"


# Baselines, each with its constants from the same fitted rows


def work(steps: Sequence[Step]) -> Floats:
    """Return (steps, 3): FLOPs, bytes written, parameters; of all that a step runs."""
    found = []
    for step in steps:
        runs = step.table.count * np.isin(step.table.phase, step.phases) * step.accumulation
        point = np.array([1, step.batch], dtype=np.float64)
        flops, moved = (
            each @ point @ runs for each in (step.table.flops, step.table.bytes_written)
        )
        found.append((flops, moved, step.table.parameters))
    return np.array(found, dtype=np.float64)


def baseline(kind: str, known: Sequence[Step], asked: Sequence[Step]) -> Floats:
    """Return log(predicted / measured) of a simple predictor."""
    seconds, measured = (np.array([s.seconds for s in some]) for some in (known, asked))
    before, now = work(known), work(asked)
    if kind == "FLOPs + activations + parameters":
        # Each over the rate of its GPU, so that the constants carry over to another.
        before, now = before / _specs(known), now / _specs(asked)
        weights, _ = nnls(before / seconds[:, None], np.ones(len(seconds)))
        return np.log(now @ weights / measured)
    peaks = [[s.gpu.flops["fp16_fp32"].value for s in some] for some in (known, asked)]
    if kind == "constant MFU of the GPU and layout":
        keys = [[(s.gpu.id, s.channels_last) for s in some] for some in (known, asked)]
        rate = before[:, 0] / seconds / np.array(peaks[0])
        of = {k: np.median(rate[[key == k for key in keys[0]]]) for k in set(keys[0])}
        # Of a GPU without rows, what the others reach.
        shares = np.array([of.get(key, np.median(rate)) for key in keys[1]])
        return np.log(now[:, 0] / (np.array(peaks[1]) * shares) / measured)
    share = np.median(before[:, 0] / seconds / np.array(peaks[0]))
    return np.log(now[:, 0] / (np.array(peaks[1]) * share) / measured)


def _specs(steps: Sequence[Step]) -> Floats:
    gpus = [step.gpu for step in steps]
    rates = [(g.flops["fp16_fp32"].value, *(g.bandwidth_bytes_per_s.value,) * 2) for g in gpus]
    return np.array(rates)


BASELINES = (
    "FLOPs alone",
    "FLOPs + activations + parameters",
    "constant MFU of the GPU and layout",
)


BESIDE: dict[str, tuple[Callable[[], Sequence[Step]], Callable[[], Sequence[Step]]]] = {
    "vision training, new families": (
        clockrows.fitted_vision_steps,
        clockrows.unseen_vision_steps,
    ),
    "MPT on A100, new sizes": (mpt.fitted_steps, mpt.unseen_sizes),
    "MPT on H100, no rows": (mpt.fitted_steps, mpt.unseen_gpu),
    "vision forward, Blackwell, no rows": (
        lambda: [step for step in clockrows.fitted_steps() if not step.trains],
        forward_unseen,
    ),
}
"""Set -> what the baselines are fitted to, and what they are asked."""


def excluded() -> str:
    """Return how many rows no rule lets in, by reason."""
    counts: Counter[str] = Counter()
    for file in ("excluded-vision.csv", "excluded-text.csv"):
        with (ROWS / file).open(encoding="utf-8", newline="") as opened:
            counts.update(row["reason"] for row in csv.DictReader(opened))
    listed = [f"  {count:5d}  {reason}" for reason, count in counts.most_common()]
    return "\n".join(["rows that are not used, and why", *listed])


def report() -> str:
    head = f"\n{'step time: error in %':44s} {'rows':>5s} {'median':>6s} {'mean':>6s} {'p90':>6s}"
    lines = [head + f" {'bias':>7s}"]
    lines += [shown(name, logs(steps(), predict)) for name, (steps, predict) in SETS.items()]
    for name, (known, asked) in BESIDE.items():
        lines.append(f"beside it, {name}")
        found = ((kind, baseline(kind, known(), asked())) for kind in BASELINES)
        lines += [shown(f"  {kind}", logs_of) for kind, logs_of in found]
    new = clockrows.unseen_vision_steps()
    lines.append("by family, vision training, new families")
    for family in sorted({step.family for step in new}):
        some = [step for step in new if step.family == family]
        lines.append(shown(f"  {family}", logs(some, kernels_of)))
    lines.append("forward, by GPU and framework")
    forward = [*clockrows.forward_steps()]
    for key in sorted({(step.gpu.id, step.framework) for step in forward}):
        some = [step for step in forward if (step.gpu.id, step.framework) == key]
        lines.append(shown(f"  {' '.join(key)}", logs(some, kernels_of)))
    lines += [covered_text(), excluded()]
    return "\n".join(lines)


def cover(found: Sequence[spreadfit.Miss], extra: float) -> tuple[float, float]:
    """Return the share of steps within their interval, and its median factor."""
    spread = load().spread
    of_work = np.array([expected(miss.shares, spread.work) for miss in found])
    whole = np.sqrt((spread.quantile.value * of_work) ** 2 + extra**2)
    inside = np.abs([miss.log for miss in found]) <= whole
    return float(inside.mean()), float(np.exp(np.median(whole)))


def covered() -> dict[str, tuple[float, float]]:
    spread = load().spread
    known = spreadfit.misses(clockrows.unseen_vision_steps(), fitted())
    unseen = spreadfit.misses(forward_unseen(), fitted())
    none = float(np.hypot(spread.evidence["none"].value, spread.stack.value))
    return {"a GPU with rows": cover(known, 0.0), "a GPU without": cover(unseen, none)}


def covered_text() -> str:
    return "\n".join(
        f"90 % interval, {name}: holds {100 * share:.0f} %, median factor {factor:.2f}"
        for name, (share, factor) in covered().items()
    )


def test_what_no_fit_has_seen_is_predicted():
    print(report())
    for name, (steps, predict) in SETS.items():
        goal = next((goal for end, goal in GOALS.items() if name.endswith(end)), None)
        if goal is not None:
            found = figures(logs(steps(), predict))
            assert all(f <= g for f, g in zip(found, goal, strict=True)), (name, found)


def test_it_beats_what_people_use():
    known, new = clockrows.fitted_vision_steps(), clockrows.unseen_vision_steps()
    own = figures(logs(new, kernels_of))
    for kind in BASELINES:
        assert figures(baseline(kind, known, new))[0] > 1.5 * own[0], kind


def test_the_interval_holds_what_it_says():
    for name, most in (("a GPU with rows", 1.20), ("a GPU without", 1.5)):
        share, factor = covered()[name]
        assert 85 <= round(100 * share) <= 95, name
        assert factor <= most, name


def test_the_shipped_constants_are_those_of_the_rows():
    shipped = json.loads(resources("calibration", "steptime.json").read_text(encoding="utf-8"))
    made = clockfit.entries(fitted(), shipped)
    made["ceilings"] = shipped["ceilings"] | mpt.ceilings(stack(), shipped["ceilings"])
    now = numbers({part: shipped[part] for part in made})
    for name, value in numbers(made).items():
        assert value == pytest.approx(now[name], rel=0.03, abs=2e-3), name


def numbers(entry: object, name: str = "") -> dict[str, float]:
    """Return the numbers of nested entries by their path."""
    if isinstance(entry, dict):
        parts = (numbers(value, f"{name}.{key}") for key, value in entry.items())
        return {path: value for part in parts for path, value in part.items()}
    return {name: entry} if isinstance(entry, float | int) else {}


def test_no_class_is_faster_than_physics():
    efficiency = load()
    for entry in (*efficiency.classes.values(), *efficiency.channels_last.values()):
        assert entry.compute <= 1.05
        assert entry.memory <= 0.95
    assert all(entry.value <= 1 for entry in efficiency.ceilings.values())


def test_nothing_kept_out_is_fitted():
    out = visionrows.held_out()
    seen = clockrows.fitted_steps()
    assert not [s.id for s in seen if s.family in out["family"] or s.gpu.id in out["gpu"]]
    assert not {s.id for s in seen} & {s.id for s in clockrows.unseen_vision_steps()}
    assert not {s.id for s in mpt.fitted_steps()} & {s.id for s in mpt.unseen_sizes()}
    assert len(GROUPS) == len(load().spread.work)


def test_rows_are_small_enough_to_live_here():
    files = [path for path in (ROWS).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) <= 15e6
