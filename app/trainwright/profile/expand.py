"""From a profile to what the allocator and the clock see, for given settings."""

from trainwright.profile.profile import Events, Floats, Profile


def training_events(
    profile: Profile,
    batch: int,
    sequence: int,
    *,
    accumulation: int,
    checkpointing: str,
    optimizer: str,
    steps: int = 2,
) -> tuple[Events, ...]:
    """Return the setup, then ``steps`` optimizer steps; ids go on through all of them.

    Storages that live on (parameters, optimizer state) are born in the setup or the first
    step. At most two accumulating micro-batches are written out: the others repeat them.

    Raises:
        KeyError: the optimizer is not in the profile.
    """
    raise NotImplementedError


def op_counts(
    profile: Profile, *, accumulation: int, checkpointing: str, optimizer: str
) -> dict[str, Floats]:
    """Return how often each op row runs in one optimizer step, by stage.

    Stages: forward, recompute, backward, optimizer; each an array over ``profile.ops``.
    """
    raise NotImplementedError
