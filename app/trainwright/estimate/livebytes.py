"""Living bytes of a step alone: what any device needs for the tensors, a CPU too."""

import numpy as np

from trainwright.estimate.lives import joined
from trainwright.estimate.loops import loop_of
from trainwright.estimate.optimizers import traced_name
from trainwright.estimate.sharded import Sharding, sharded, sharding_of
from trainwright.profile.expand import training_events, training_structure
from trainwright.profile.profile import Profile
from trainwright.workload import FullSettings


def live_peak_bytes(
    profile: Profile, settings: FullSettings, batch: int, sequence: int, *, gpu_count: int = 1
) -> int:
    """Return the most bytes that live at once in two optimizer steps after the setup.

    ``batch`` is samples a micro-batch, ``sequence`` tokens a sample. No allocator rounds them, and
    no CUDA library takes its share. Of one of ``gpu_count`` where they share what they hold.

    Raises:
        KeyError: the optimizer is not in the profile.
    """
    sharding = sharding_of(settings, gpu_count)
    if sharding is not None:
        return _shared_peak(profile, settings, sharding, batch, sequence)
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


def _shared_peak(
    profile: Profile, settings: FullSettings, sharding: Sharding, batch: int, sequence: int
) -> int:
    update = f"optimizer:{traced_name(profile, settings.update)}"
    accumulation = min(settings.accumulation, 2)
    loop = loop_of(settings)
    parts = training_structure(profile, accumulation, settings.recomputing, update, 2, loop)
    layout = sharded(joined(profile, parts, steady=2), parts, sharding)
    nbytes = layout.bytes_of(batch, sequence)[layout.size]
    return int(np.cumsum(np.sign(layout.storage) * nbytes).max(initial=0))
