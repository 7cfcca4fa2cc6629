"""How far a real step may lie from its predicted time: wider where rows say less."""

from collections.abc import Mapping
from dataclasses import dataclass
from math import exp, sqrt
from typing import Literal

import numpy as np

from trainwright.catalog import GpuRecord
from trainwright.estimate.support import widening
from trainwright.estimate.time.efficiency import Spread
from trainwright.estimate.time.kernels import CLASSES
from trainwright.profile.profile import Floats

Evidence = Literal["gpu", "generation", "none"]
"""Whether steps were measured on this GPU, on another of its generation, or on none of them."""

_GROUPS = (
    ("grouped-convolution", "grouped"),
    ("depthwise", "depthwise"),
    ("convolution", "convolutions"),
    ("batched-gemm", "attention"),
    ("attention", "attention"),
    ("gemm", "products"),
    ("norm", "norms"),
    ("optimizer", "update"),
)
GROUPS = (*dict.fromkeys(name for _, name in _GROUPS), "moves")
"""Kinds of work whose errors are alike."""


def _group(name: str) -> str:
    return next((group for part, group in _GROUPS if part in name), "moves")


GROUP_OF = np.array([GROUPS.index(_group(name)) for name in CLASSES])
"""Class -> its kind of work."""


def shares(by_class: Floats) -> Floats:
    """Return the share of each group in the seconds of each class."""
    by_group = np.zeros(len(GROUPS))
    np.add.at(by_group, GROUP_OF, by_class)
    total = float(by_group.sum())
    result: Floats = by_group / total if total > 0 else by_group
    return result


@dataclass(frozen=True, slots=True)
class Factor:
    """The interval of a time is time / value to time * value, in 9 of 10 cases."""

    value: float
    work: float
    """What of its logarithm's deviation comes from the kinds of work."""
    evidence: Evidence


def factor(by_class: Floats, gpu: GpuRecord, spread: Spread) -> Factor:
    """Return the 90 % factor of a step on a GPU, from the seconds of each class.

    Normalised split conformal (Papadopoulos et al., 2002): deviations of models that their fit
    had not seen, over what their mix of work lets expect; the 90th percentile of that ratio
    scales what the mix of this step lets expect. What another GPU and another version of the
    framework add is independent; other vendors' kernels are further from what was measured.
    """
    work = expected(shares(by_class), spread.work)
    found = evidence(gpu, spread)
    deviation = sqrt((spread.quantile.value * work) ** 2 + spread.stack.value**2)
    whole = sqrt(deviation**2 + spread.evidence[found].value ** 2)
    return Factor(exp(whole) * widening(gpu), work, found)


def expected(of_groups: Floats, work: Mapping[str, float]) -> float:
    """Return the deviation of the logarithm that a mix of work lets expect."""
    return float(of_groups @ np.array([work[name] for name in GROUPS]))


def evidence(gpu: GpuRecord, spread: Spread) -> Evidence:
    """Return what was measured of a GPU."""
    if gpu.id in spread.gpus:
        return "gpu"
    return "generation" if gpu.architecture.split()[0] in spread.generations else "none"
