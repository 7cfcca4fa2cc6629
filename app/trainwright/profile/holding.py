"""What a training loop holds longer than the step needs: the model's output, old gradients.

The trace is of a step that holds neither. What a loop holds dies later, and nothing else changes.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trainwright.profile.profile import CATEGORIES, PHASES, Ints
from trainwright.profile.structure import Structure, joined

_GRADIENTS = CATEGORIES.index("gradients")
_BACKWARD, _OPTIMIZER = PHASES.index("backward"), PHASES.index("optimizer")

Steps = tuple[Structure, ...]


def outputs_held(
    steps: Steps,
    outputs: Sequence[tuple[Ints, Ints]],
    stride: int,
    how: str,
    *,
    inside: bool,
) -> Steps:
    """Return the steps with the model's outputs held.

    Args:
        steps: Optimizer steps, in order.
        outputs: Ids of what the model returned in each micro-batch of the first step, and of
            what its graph keeps for as long.
        stride: What is added to them from step to step.
        how: ``step``: all outputs of a step die at its end. ``next``: an output dies when the
            loop's name for it stands for the one after it.
        inside: Whether the model makes the loss before it returns.
    """
    found, held = [], steps[0].at(np.zeros(len(steps[0].storage), dtype=np.bool_))
    for number, step in enumerate(steps):
        for ids, kept in outputs:
            dies = np.isin(step.storage, -(np.concatenate([ids, kept]) + number * stride))
            if not dies.any():
                continue
            sign = -1 if inside else 1
            returned = np.isin(step.storage, sign * (ids + number * stride))
            own, place = step.at(dies), int(np.flatnonzero(returned)[-1]) + 1
            place -= int(dies[:place].sum())
            step = step.at(~dies)
            if how == "next":
                step, held = _with_deaths(step, place, held), own
            else:
                held = joined([held, own])
        if how == "step":
            step, held = _with_deaths(step, len(step.storage), held), held.at(_none(held))
        found.append(step)
    return tuple(found)


def cleared_late(steps: Steps) -> Steps:
    """Return the steps with gradients that die before the next step's backward begins."""
    found, old = [], steps[0].at(_none(steps[0]))
    for step in steps:
        dies = (step.storage < 0) & (step.term == _GRADIENTS) & (step.phase == _OPTIMIZER)
        backward = np.flatnonzero(step.phase == _BACKWARD)
        own, place = step.at(dies), int(backward[0]) if backward.size else len(step.storage)
        found.append(_with_deaths(step.at(~dies), place, old))
        old = own
    return tuple(found)


def _none(step: Structure) -> NDArray[np.bool_]:
    return np.zeros(len(step.storage), dtype=np.bool_)


def _with_deaths(step: Structure, place: int, deaths: Structure) -> Structure:
    """Return the step with the deaths before the event at the place."""
    before = np.arange(len(step.storage)) < place
    phase = step.phase[min(place, len(step.phase) - 1)]
    here = replace(deaths, phase=np.full_like(deaths.phase, phase))
    return joined([step.at(before), here, step.at(~before)])
