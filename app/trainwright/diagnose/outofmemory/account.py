"""What an out-of-memory message tells, in bytes, and what it means."""

import re
from dataclasses import dataclass
from typing import Literal

from trainwright.diagnose import texts
from trainwright.diagnose.outofmemory.timeline import Timeline
from trainwright.diagnose.verdict import Fix
from trainwright.messages import Message

Kind = Literal[
    "too-big", "fragmentation", "other-programs", "limit", "spilled", "driver", "cache", "host",
    "worker", "shared-memory", "kernel", "other", "none",
]  # fmt: skip
"""``too-big``: more than there is. ``fragmentation``: enough is reserved, in pieces.
``other-programs``: would fit without them. ``limit``: a share was set, or the system refuses though
memory is free. ``spilled``: already in system memory (Windows). ``driver``: outside the allocator.
``cache``: a serving engine has no room for keys and values. ``host``: system memory. ``worker``:
a loader worker was ended. ``shared-memory``: /dev/shm is full. ``kernel``: what a kernel
may take within the GPU's processors. ``other``: an error that is not about memory. ``none``: no
error found."""
ON_GPU: tuple[Kind, ...] = ("too-big", "fragmentation", "limit", "spilled", "driver", "cache")
"""Kinds that settings help which lower the GPU's peak."""

SIZE = r"(?<![0-9.,])([0-9][0-9,]*(?:\.[0-9]*)?) ?([KMGT]?i?B|[KMGT]i?\b|kB|bytes?)"
"""A number and its unit, NumPy's ``298. GiB`` too; torch means powers of two also by GB."""
COUNT = r"(?<![0-9.,])([0-9]{1,20})()\b"
"""Bytes whose unit is not stated."""
MOST_BYTES = 1 << 60
"""Largest size that is believed; assumed. In WSL the driver says 2^64 of a process that it does
not know, and torch prints it."""
BEFORE, BEHIND = 600, 2000
"""Characters before an error's words, and from them on, in which its sizes stand; assumed."""


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
    timeline: Timeline | None = None
    """Of a memory snapshot."""

    @property
    def on_gpu(self) -> bool:
        """Whether the GPU's memory ran out, so that a plan's settings can help."""
        return self.kind in ON_GPU


def fix(id: str, patch: dict[str, object] | None = None, **values: float | str) -> Fix:
    """Return what to do about an error, with the plan's keys where they say it."""
    return Fix(Message.of(f"diagnose.fix.{id}", **values), patch or {})


def found_bytes(pattern: re.Pattern[str], text: str) -> int | None:
    """Return the first size that a pattern with two groups, number and unit, finds in a text."""
    found = pattern.search(text)
    size = texts.size("".join(filter(None, found.groups()))) if found is not None else None
    return int(size) if size is not None and size <= MOST_BYTES else None
