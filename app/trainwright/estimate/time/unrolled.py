"""Recurrent layers, whose time is not predicted: a GPU runs each as one kernel over all its steps.

The trace holds every step by itself. Of models whose time was mostly such layers (timm's
``sequencer2d``), a roofline over those steps was off by factors of 2 to 6, so that no figure
is given; memory is not affected.
"""

import numpy as np

from trainwright.estimate.time.clock import Clock
from trainwright.messages import Message
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings

REGION = -3
"""Of operators in a recurrent layer: ``RECURRENT`` of worker/programs/recorder.py."""
NEGLIGIBLE = 0.02
"""Share of the step, step by step, up to which recurrent layers are left in the figure; assumed.
Six times as long, they would make the step a tenth longer: less than what its range allows."""


def refusal(profile: Profile, clock: Clock, settings: FullSettings, batch: int) -> Message | None:
    """Return why no time is predicted; None where it can be."""
    layers = profile.model.get("recurrent")
    if not layers:
        return None
    share = recurrent_share(profile, clock, settings, batch)
    if share is None:
        return Message.of("time.recurrent", layers=layers)
    if share > NEGLIGIBLE:
        return Message.of("time.recurrent-share", layers=layers, share=share)
    return None


def recurrent_share(
    profile: Profile, clock: Clock, settings: FullSettings, batch: int
) -> float | None:
    """Return which part of a step recurrent layers take as traced, step by step.

    The larger of their parts of the kernels' time and of what the CPU takes to launch kernels,
    each of the time that the step computes. None where the trace does not tell: within
    checkpointed blocks, or traced before layers were marked.
    """
    within = np.array(profile.ops.region) == REGION
    if profile.model.get("recurrent_in_blocks") or not within.any():
        return None
    kernels = launches = 0.0
    for _, times, counts in clock.stages(profile, settings, batch):
        kernels += float((counts * times.seconds)[within].sum())
        launches += float((counts * times.launches)[within].sum())
    computing = clock.terms(profile, settings, batch).computing
    host = launches * clock.efficiency.host_s_per_kernel.value
    return min(max(kernels, host) / computing, 1.0) if computing else None
