"""Living bytes of a step alone: what any device needs for the tensors, a CPU too."""

import numpy as np

from trainwright.estimate.loops import loop_of
from trainwright.estimate.optimizers import traced_name
from trainwright.profile.expand import training_events
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings


def live_peak_bytes(profile: Profile, settings: FullSettings, batch: int, sequence: int) -> int:
    """Return the most bytes that live at once in two optimizer steps after the setup.

    ``batch`` is samples a micro-batch, ``sequence`` tokens a sample. No allocator rounds them, and
    no CUDA library takes its share.

    Raises:
        KeyError: the optimizer is not in the profile.
    """
    parts = training_events(
        profile,
        batch,
        sequence,
        accumulation=min(settings.accumulation, 2),
        checkpointing=settings.recomputing,
        optimizer=traced_name(profile, settings.update),
        loop=loop_of(settings),
    )
    changes = np.concatenate([part.signed for part in parts])
    return int(np.cumsum(changes).max(initial=0))
