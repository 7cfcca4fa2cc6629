"""The fit of the interval: what mixes of work deviated by when their family was not fitted."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from clockfit import Fitted, fit, kernel_times, layout_of, predict
from clockrows import Block, Step, blocks
from scipy.optimize import nnls

from trainwright.estimate.power import board_share
from trainwright.estimate.time.kernels import CLASSES
from trainwright.estimate.time.spread import GROUPS, shares
from trainwright.profile.profile import Floats

FOLDS = 6
LEAST = 0.02
"""Deviation that no mix of work goes below: versions of one stack differ by 1 to 2 % (assumed)."""


@dataclass(frozen=True, slots=True, eq=False)
class Miss:
    """How far a prediction was off, and what the step did."""

    step: Step
    log: float
    """log(predicted / measured)."""
    shares: Floats
    """Of ``GROUPS``."""


def misses(steps: Iterable[Step], fitted: Fitted) -> list[Miss]:
    """Return what a fit makes of steps."""
    return [miss for block in blocks(steps) for miss in _misses(block, fitted)]


def _misses(block: Block, fitted: Fitted) -> Iterable[Miss]:
    share = board_share(block.situation.gpu)
    logs = np.log(predict(block, fitted, share) / block.seconds)
    by_class = _by_class(block, fitted)
    for number, step in enumerate(block.steps):
        yield Miss(step, float(logs[number]), shares(by_class[number]))


def _by_class(block: Block, fitted: Fitted) -> Floats:
    """Return (steps, classes) of seconds."""
    seconds = kernel_times(block, fitted.curves(layout_of(block.situation))) * block.runs
    result = np.zeros((len(block.steps), len(CLASSES)))
    np.add.at(result, (block.kernels.row, block.kernels.group), seconds)
    return result


def crossed(steps: Sequence[Step], beside: Sequence[Step], start: Fitted) -> list[Miss]:
    """Return what fits without their families make of steps; ``beside`` is fitted with them."""
    families = sorted({step.family for step in steps})
    found: list[Miss] = []
    for fold in range(FOLDS):
        out = set(families[fold::FOLDS])
        known = [step for step in (*steps, *beside) if step.family not in out]
        left = [step for step in steps if step.family in out]
        found += misses(left, fit(blocks(known), start))
    return found


def work(found: Sequence[Miss]) -> dict[str, float]:
    """Return the deviation that each kind of work explains: non-negative least squares.

    Families weigh alike, or the largest would speak for all.
    """
    counts = {miss.step.family: 0 for miss in found}
    for miss in found:
        counts[miss.step.family] += 1
    weights = np.array([counts[miss.step.family] ** -0.5 for miss in found])
    mixes = np.stack([miss.shares for miss in found])
    sizes = np.abs([miss.log for miss in found])
    values, _ = nnls(mixes * weights[:, None], sizes * weights)
    return {name: max(LEAST, round(float(v), 4)) for name, v in zip(GROUPS, values, strict=True)}


def ratios(found: Sequence[Miss], of_work: dict[str, float]) -> Floats:
    """Return each deviation over what its mix lets expect."""
    expected = np.array([of_work[name] for name in GROUPS])
    return np.array([abs(miss.log) / float(miss.shares @ expected) for miss in found])
