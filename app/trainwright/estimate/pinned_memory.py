"""What waits in system memory between a checkpointed block's forward and its second one."""

from trainwright.profile.expand import offloaded_rows
from trainwright.profile.profile import Ints, Profile, evaluate


def offloaded_bytes(profile: Profile, policy: str, batch: int, sequence: int) -> Ints:
    """Return the bytes of each tensor that a micro-batch keeps in system memory."""
    sizes: Ints = evaluate(profile.sizes, batch, sequence)
    kept: Ints = sizes[offloaded_rows(profile, policy)]
    return kept


def pinned_bytes(profile: Profile, policy: str, batch: int, sequence: int) -> int:
    """Return what torch's pinned allocator takes for them."""
    sizes = offloaded_bytes(profile, policy, batch, sequence).tolist()
    return sum(power_of_two(size) for size in sizes)


def power_of_two(nbytes: int) -> int:
    """Return what torch's pinned allocator takes for a tensor: the next power of two of bytes.

    Source: torch, ``ATen/core/CachingHostAllocator.h``.
    """
    return 1 << (nbytes - 1).bit_length() if nbytes else 0
