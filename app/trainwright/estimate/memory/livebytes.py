"""Living bytes of a step alone: what any device needs for the tensors, a CPU too."""

import numpy as np

from trainwright.estimate.lifetimes import Layout, joined
from trainwright.estimate.memory.layout import gradient_bytes, loop_of
from trainwright.estimate.optimizers import traced_name
from trainwright.estimate.parallel.sharded import sharded, sharding_of
from trainwright.estimate.parallel.stages import Stage, staged, stages_of
from trainwright.profile.expand import training_events, training_structure
from trainwright.profile.profile import Profile
from trainwright.profile.structure import Structure
from trainwright.workload import FullSettings


def live_peak_bytes(
    profile: Profile, settings: FullSettings, batch: int, sequence: int, *, gpu_count: int = 1
) -> int:
    """Return the most bytes that live at once in two optimizer steps after the setup.

    ``batch`` is samples a micro-batch, ``sequence`` tokens a sample. No allocator rounds them, and
    no CUDA library takes its share. Of one of ``gpu_count`` where they share what they hold, with
    its buckets where each has a copy; of pipeline stages, of the one that needs the most.

    Raises:
        KeyError: the optimizer is not in the profile.
    """
    if stages := stages_of(settings, profile):
        return max(stage_peak_bytes(profile, settings, one, batch, sequence) for one in stages)
    sharding = sharding_of(settings, gpu_count)
    if sharding is not None:
        layout, structures = _run(profile, settings)
        return _peak(sharded(layout, structures, sharding), batch, sequence)
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
    buckets = gradient_bytes(_run(profile, settings)[0]) if settings.ranks_of(gpu_count) > 1 else 0
    return int(np.cumsum(changes).max(initial=0)) + buckets


def stage_peak_bytes(
    profile: Profile, settings: FullSettings, stage: Stage, batch: int, sequence: int
) -> int:
    """Return the same of one pipeline stage, in bytes."""
    layout, parts = _run(profile, settings)
    return _peak(staged(layout, parts, stage), batch, sequence)


def _run(profile: Profile, settings: FullSettings) -> tuple[Layout, tuple[Structure, ...]]:
    update = f"optimizer:{traced_name(profile, settings.update)}"
    accumulation = min(settings.accumulation, 2)
    loop = loop_of(settings)
    parts = training_structure(profile, accumulation, settings.recomputing, update, 2, loop)
    return joined(profile, parts, steady=2), parts


def _peak(layout: Layout, batch: int, sequence: int) -> int:
    nbytes = layout.bytes_of(batch, sequence)[layout.size]
    return int(np.cumsum(np.sign(layout.storage) * nbytes).max(initial=0))
