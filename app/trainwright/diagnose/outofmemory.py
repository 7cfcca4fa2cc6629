"""An out-of-memory error explained: what was asked, who holds the rest, and what would help.

Reads the messages of torch's CUDA, ROCm, XPU, MPS and processor allocators from 1.0 to 2.13, of
cuBLAS and cuDNN, and of loader workers that the system ended.
"""

import re
from dataclasses import dataclass, fields, replace
from typing import Literal

from trainwright.diagnose.verdict import Fix
from trainwright.messages import Message, UserError
from trainwright.quoting import one_line

Kind = Literal[
    "too-big", "fragmentation", "other-programs", "limit", "spilled", "driver", "host", "worker",
    "shared-memory", "none",
]  # fmt: skip
"""``too-big``: more than there is. ``fragmentation``: enough is reserved, in pieces.
``other-programs``: would fit without them. ``limit``: a share was set, or the system refuses though
memory is free. ``spilled``: already in system memory (Windows). ``driver``: outside the allocator.
``host``: system memory. ``worker``: a loader worker was ended. ``shared-memory``: /dev/shm is full.
``none``: no such error in the text."""

MAX_BYTES = 4 << 20
"""Longest text that is read; assumed, a log's end is enough."""
OTHERS_SHARE = 0.1
"""Share of the memory from which other programs are worth a word; assumed."""
OUTSIDE_SHARE = 0.15
"""Share that this process holds outside torch from which that is worth a word; assumed."""
ONE_ERROR = 4000
"""Characters in which the lines of one error stand, a worker's traceback among them; assumed."""
_SIZES = {"bytes": 1, "byte": 1, "B": 1}
_SIZES |= {f"{prefix}{unit}": 1 << power for prefix, power in
           (("K", 10), ("M", 20), ("G", 30), ("T", 40)) for unit in ("iB", "B")}  # fmt: skip
"""torch counts in powers of two also where it writes GB."""
_SIZE = r"(?<![0-9.])([0-9]+(?:\.[0-9]+)?) ?([KMGT]?i?B|bytes?)"
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
    """What happened, and what to do."""

    kind: Kind
    says: Message
    account: Account
    fixes: tuple[Fix, ...] = ()
    missing: int | None = None
    """Bytes that were lacking, where the message tells."""
    quoted: str = ""
    """The line that was read."""


def explain(text: str) -> Explanation:
    """Return the last out-of-memory error in a text, explained.

    Raises:
        UserError: it tells a size that no computer has.
    """
    text = " ".join(text[-MAX_BYTES:].split())
    found = []
    for side in (_ON_DEVICE, _ON_HOST):
        places = [(_last_place(pattern, text), form) for pattern, form in side]
        seen = [(place, form) for place, form in places if place >= 0]
        if seen:
            last = max(place for place, _ in seen)
            # Of one error's lines the most telling counts, which is not always the last.
            found.append((last, next(each for each in seen if each[0] > last - ONE_ERROR)))
    if not found:
        return Explanation("none", Message.of("diagnose.oom.none"), Account())
    _, (place, form) = max(found, key=lambda each: each[0])
    return form(text[max(0, place - 200) : place + 2000])


def _last_place(pattern: re.Pattern[str], text: str) -> int:
    """Return where a pattern is found for the last time; -1: nowhere."""
    return max((each.start() for each in pattern.finditer(text)), default=-1)


def halved(explanation: Explanation, micro_batch: int, accumulation: int) -> Explanation:
    """Return the explanation with the batch of a plan halved where that is a fix."""
    if micro_batch < 2:
        kept = tuple(fix for fix in explanation.fixes if fix != _SMALLER[0])
    else:
        patch = {
            "settings.micro_batch": micro_batch // 2,
            "settings.accumulation": accumulation * micro_batch // (micro_batch // 2),
        }
        smaller = Fix(Message.of("diagnose.fix.smaller-batch", batch=micro_batch // 2), patch)
        kept = tuple(smaller if fix == _SMALLER[0] else fix for fix in explanation.fixes)
    return replace(explanation, fixes=kept)


def _size(number: str, unit: str) -> int:
    size = float(number) * _SIZES[unit]
    if size > MOST_BYTES:
        raise UserError.of("diagnose.oom.odd-size", size=one_line(f"{number} {unit}"))
    return int(size)


def _bytes(pattern: re.Pattern[str], text: str) -> int | None:
    """Return the last size that a pattern finds."""
    found = pattern.findall(text)
    return _size(*found[-1]) if found else None


_ASKED = re.compile("[Tt]ried to allocate " + _SIZE)
_ALREADY = re.compile(_SIZE + " already allocated")
_ALLOCATED = re.compile(_SIZE + " is allocated by PyTorch")
_UNALLOCATED = re.compile(_SIZE + " is reserved by PyTorch but unallocated")
_RESERVED = re.compile(_SIZE + " reserved in total by PyTorch")
_CACHED = re.compile(_SIZE + " cached")
_CAPACITY_OF = re.compile("total capac?i?ty of " + _SIZE)
_CAPACITY = re.compile(_SIZE + " total capacity")
_OF_WHICH_FREE, _FREE = (
    re.compile("of which " + _SIZE + " is free"),
    re.compile("; " + _SIZE + " free"),
)
_IN_USE = re.compile("this process has " + _SIZE + " memory in use")
_ALLOWED = re.compile(_SIZE + " allowed")
_OTHERS = re.compile("Process [0-9]+ has " + _SIZE + " memory in use")
_MPS_ALLOCATED = re.compile("MPS allocated: " + _SIZE)
_MPS_OTHER = re.compile("other allocations: " + _SIZE)
_MPS_ALLOWED = re.compile("max allowed: " + _SIZE)
_HOST_ASKED = re.compile("tried to allocate ([0-9]+) (bytes)")


def _device(text: str) -> Explanation:
    asked = _bytes(_ASKED, text)
    allocated = _bytes(_ALREADY, text)
    allocated = _bytes(_ALLOCATED, text) if allocated is None else allocated
    unused = _bytes(_UNALLOCATED, text)
    reserved = _bytes(_RESERVED, text)
    if unused is None and reserved is not None and allocated is not None:
        unused = max(0, reserved - allocated)
    if unused is None:  # torch before 1.4 says what it caches beside what is allocated
        unused = _bytes(_CACHED, text)
    account = Account(
        asked=asked,
        total=_bytes(_CAPACITY_OF, text) or _bytes(_CAPACITY, text),
        free=_first(_bytes(_OF_WHICH_FREE, text), _bytes(_FREE, text)),
        process=_bytes(_IN_USE, text),
        others=_others(text),
        allocated=allocated,
        unused=unused,
        allowed=_bytes(_ALLOWED, text),
    )
    if asked is None:
        return Explanation("driver", Message.of("diagnose.oom.driver"), account, _SMALLER)
    return _judged(_completed(account), text)


def _first(*values: int | None) -> int | None:
    return next((value for value in values if value is not None), None)


def _others(text: str) -> int | None:
    """Return what is named of other processes; None where none is."""
    found = _OTHERS.findall(text)
    return sum(_size(*each) for each in found) if found else None


def _completed(account: Account) -> Account:
    """Return the account with the others' memory worked out where the message leaves it out."""
    total, free, held = account.total, account.free, account.process
    if account.others is not None or None in (total, free, held):
        return account
    assert total is not None
    assert free is not None
    assert held is not None
    values = {each.name: getattr(account, each.name) for each in fields(account)}
    return Account(**values | {"others": max(0, total - free - held)})


def _judged(account: Account, text: str) -> Explanation:
    asked, free, unused = account.asked or 0, account.free or 0, account.unused or 0
    total, others, allocated = account.total, account.others or 0, account.allocated or 0
    missing = max(0, asked - free)
    quoted = text[max(0, text.find("out of memory") - 60) :][:600]

    def told(kind: Kind, *fixes: Fix) -> Explanation:
        known = {"asked": asked, "free": free, "unused": unused, "total": total or 0}
        known |= {"others": others, "missing": missing, "allocated": allocated}
        untold = kind == "too-big" and None in (account.allocated, account.free, total)
        message = Message.of(f"diagnose.oom.{kind}{'-untold' if untold else ''}", **known)
        return Explanation(kind, message, account, fixes, missing, quoted)

    if total is not None and asked > total:
        return told("too-big", *_SMALLER)
    if total is not None and allocated + unused > total:
        return told("spilled", *_SMALLER)
    if free >= asked:
        return told("limit", *_LIMIT, *_SMALLER)
    if unused + free >= asked and unused >= asked / 2:
        return told("fragmentation", _EXPANDABLE, *_SMALLER)
    if total and others >= OTHERS_SHARE * total and others + free + unused >= asked:
        return told("other-programs", _fix("other-programs-gpu"), *_SMALLER)
    return told("too-big", *_SMALLER)


def _mps(text: str) -> Explanation:
    allocated = _bytes(_MPS_ALLOCATED, text)
    besides = _bytes(_MPS_OTHER, text)  # by Metal, of this process too
    taken = (allocated or 0) + (besides or 0)
    account = Account(
        asked=_bytes(_ASKED, text),
        process=taken or None,
        allocated=allocated,
        allowed=_bytes(_MPS_ALLOWED, text),
    )
    allowed = account.allowed or 0
    missing = max(0, (account.asked or 0) + taken - allowed)
    says = Message.of(
        "diagnose.oom.mps", asked=account.asked or 0, taken=taken, allowed=allowed, missing=missing
    )
    return Explanation("too-big", says, account, _SMALLER, missing, text[:600])


def _host(text: str) -> Explanation:
    account = Account(asked=_bytes(_HOST_ASKED, text))
    says = Message.of("diagnose.oom.host", asked=account.asked or 0)
    if account.asked is None:
        says = Message.of("diagnose.oom.host-unsized")
    return Explanation("host", says, account, (_SMALLER[0], _fix("swapping")), quoted=text[:600])


def _shared(text: str) -> Explanation:
    fixes = (
        _fix("shared-memory"),
        _fix("no-workers", {"settings.loader.num_workers": 0}),
    )
    says = Message.of("diagnose.oom.shared-memory")
    return Explanation("shared-memory", says, Account(), fixes, quoted=text[:600])


def _worker(text: str) -> Explanation:
    fixes = (_fix("swapping"), _fix("no-workers", {"settings.loader.num_workers": 0}))
    return Explanation(
        "worker", Message.of("diagnose.oom.worker"), Account(), fixes, quoted=text[:600]
    )


def _library(text: str) -> Explanation:
    says = Message.of("diagnose.oom.library")
    return Explanation("driver", says, Account(), _SMALLER, quoted=text[:600])


def _fix(id: str, patch: dict[str, object] | None = None) -> Fix:
    return Fix(Message.of(f"diagnose.fix.{id}"), patch or {})


_EXPANDABLE = _fix("expandable", {"settings.allocator": "expandable"})
_SMALLER = (
    _fix("halve-batch"),
    _fix("checkpointing", {"settings.checkpointing": "full"}),
    _fix("optimizer-8bit", {"settings.optimizer": "adamw-8bit"}),
)
_LIMIT = (_fix("memory-limit"),)
_ON_DEVICE = tuple(
    (re.compile(words), form)
    for words, form in (
        (r"MPS backend out of memory", _mps),
        (r"(CUDA|HIP|XPU) out of memory|Tried to allocate [0-9.]+ [KMG]iB \(GPU", _device),
        (r"(CUDA|HIP) error: out of memory|cudaErrorMemoryAlloc|CUDA_ERROR_OUT_OF_MEMORY", _device),
        (r"C(UBLAS|UDNN|USOLVER)_STATUS_ALLOC_FAILED", _library),
    )
)
_ON_HOST = tuple(
    (re.compile(words), form)
    for words, form in (
        (r"[Bb]us error|out of shared memory|unable to (write to file|mmap)[^.]{0,200}/?torch_"
         r"|No space left on device[^.]{0,200}(shm|torch_)"
         r"|shm[^.]{0,200}No space left on device", _shared),
        (r"DefaultCPUAllocator|[Cc]annot allocate memory|can't allocate memory|MemoryError"
         r"|bad_alloc", _host),
        (r"worker \(pid\(?s?\)? [0-9, ]+\) (is killed by signal: Killed|exited unexpectedly)",
         _worker),
        (r"(^|\s)Killed\s*$|signal 9|SIGKILL|oom-kill|Out of memory: Killed process", _host),
    )
)  # fmt: skip
"""What is looked for, the most telling first."""
