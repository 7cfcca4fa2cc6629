"""What an out-of-memory message tells, in bytes, and what it means."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from trainwright.diagnose.outofmemory.timeline import Timeline
from trainwright.diagnose.verdict import Fix
from trainwright.messages import Message, UserError
from trainwright.quoting import one_line

Kind = Literal[
    "too-big", "fragmentation", "other-programs", "limit", "spilled", "driver", "cache", "host",
    "worker", "shared-memory", "kernel", "none",
]  # fmt: skip
"""``too-big``: more than there is. ``fragmentation``: enough is reserved, in pieces.
``other-programs``: would fit without them. ``limit``: a share was set, or the system refuses though
memory is free. ``spilled``: already in system memory (Windows). ``driver``: outside the allocator.
``cache``: a serving engine has no room for keys and values. ``host``: system memory. ``worker``:
a loader worker was ended. ``shared-memory``: /dev/shm is full. ``kernel``: what a kernel
may take within the GPU's processors. ``none``: no such error found."""
ON_GPU: tuple[Kind, ...] = ("too-big", "fragmentation", "limit", "spilled", "driver", "cache")
"""Kinds that settings help which lower the GPU's peak."""

_SIZES = {"bytes": 1, "byte": 1, "B": 1, "": 1, "kB": 1 << 10}
_SIZES |= {f"{prefix}{unit}": 1 << power for prefix, power in
           (("K", 10), ("M", 20), ("G", 30), ("T", 40)) for unit in ("iB", "B")}  # fmt: skip
"""torch counts in powers of two also where it writes GB."""
SIZE = r"(?<![0-9.,])([0-9][0-9,]*(?:\.[0-9]+)?) ?([KMGT]?i?B|bytes?)"
COUNT = r"(?<![0-9.,])([0-9]{1,20})()\b"
"""Bytes whose unit is not said."""
MOST_BYTES = 1 << 60
"""Largest size that is believed; assumed, a million times what a GPU has."""


@dataclass(frozen=True, slots=True)
class Account:
    """Bytes that the message tells; None where it does not."""

    asked: int | None = None
    total: int | None = None
    free: int | None = None
    process: int | None = None
    """All that this process holds, its context included."""
    others: int | None = None
    """What other processes hold."""
    allocated: int | None = None
    unused: int | None = None
    """Reserved by torch, but not allocated."""
    allowed: int | None = None
    """Limit that was set, or that the system has."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """What happened, and what follows from the message alone."""

    kind: Kind
    says: Message
    account: Account
    fixes: tuple[Fix, ...] = ()
    missing: int | None = None
    """Bytes that were lacking, where the message tells."""
    quoted: str = ""
    """The line that was read."""
    timeline: Timeline | None = None
    """Of a memory snapshot."""

    @property
    def on_gpu(self) -> bool:
        """Whether the GPU's memory ran out, so that a plan's settings can help."""
        return self.kind in ON_GPU


def unsized(kind: Kind, id: str, *fixes: str) -> Callable[[str], Explanation]:
    """Return what explains a message that tells nothing but what ran out."""

    def explained(text: str) -> Explanation:
        says = Message.of(f"diagnose.oom.{id}")
        return Explanation(kind, says, Account(), tuple(map(fix, fixes)), quoted=text[:600])

    return explained


def fix(id: str, patch: dict[str, object] | None = None) -> Fix:
    """Return what to do about an error, with the plan's keys where they say it."""
    return Fix(Message.of(f"diagnose.fix.{id}"), patch or {})


def found_bytes(pattern: re.Pattern[str], text: str) -> int | None:
    """Return the last size that a pattern with two groups, number and unit, finds.

    Raises:
        UserError: it is a size that no computer has.
    """
    found = pattern.findall(text)
    return as_bytes(*found[-1]) if found else None


def as_bytes(number: str, unit: str = "B") -> int:
    """Return a size in bytes.

    Raises:
        UserError: it is a size that no computer has.
    """
    size = float(number.replace(",", "")) * _SIZES[unit]
    if size > MOST_BYTES:
        raise UserError.of("diagnose.oom.odd-size", size=one_line(f"{number} {unit}"))
    return int(size)
