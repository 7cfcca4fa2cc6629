"""What fewer or more devices and computers make of a step: how well a run scales."""

import re
from math import log2

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.trials import factor_of, has_fewer, saved_by, step_times

_NORMAL = re.compile(r"(?<!not )(?<!ab)\b(normal|as (expected|usual)|full speed|no slow)")
MUCH = 0.25
"""Share of a step that several devices lose, and that is much however many they are; assumed."""


def one_computer(evidence: Evidence) -> bool:
    """Whether a run is on one computer, as far as it is said."""
    return evidence.setup is None or (evidence.setup.nodes or 1) == 1


def normal_with_fewer(evidence: Evidence) -> str | None:
    """Return what is said of fewer devices that are as fast as they should be, without a figure."""
    said = (
        trial.to
        for trial in evidence.trials
        if has_fewer(trial, evidence)
        if step_times(trial, evidence) is None and _NORMAL.search(trial.to.lower())
    )
    return next(said, None)


def kept_by_fewer_devices(evidence: Evidence) -> float | None:
    """Return what fewer devices give all together over what all of them do, the most of them."""
    found = [
        factor / times
        for trial in evidence.trials
        if trial.changed == "devices" and has_fewer(trial, evidence)
        if (factor := factor_of(trial, evidence)) and (times := step_times(trial, evidence))
    ]
    epoch = evidence.steps is not None and evidence.steps.unit == "epoch"
    return max(found) if found and not epoch else None


def lost_by_doubling(evidence: Evidence) -> float | None:
    """Return the share of a step that each doubling of the devices takes, up to all of them.

    Thirty-two devices wait for more than two do, of the same link. A quarter of the step is much
    for any number.
    """
    saved = saved_by("single_device")(evidence)
    fewer = (each for each in evidence.trials if has_fewer(each, evidence))
    tried = [factor_of(each, evidence) or 1.0 for each in fewer]
    if saved is None or saved >= MUCH or not tried:
        return None
    return saved / max(1.0, log2(1 / min(tried)))
