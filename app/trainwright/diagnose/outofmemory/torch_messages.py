"""torch's messages that a table does not explain: its allocators', and its watchdog's."""

import re
from dataclasses import asdict, replace
from math import prod

from trainwright.diagnose import texts
from trainwright.diagnose.outofmemory.account import (
    BEFORE,
    BEHIND,
    SIZE,
    Account,
    Explanation,
    Kind,
    fix,
    found_bytes,
)
from trainwright.diagnose.verdict import Fix
from trainwright.messages import Message
from trainwright.quoting import one_line

OTHERS_SHARE = 0.1
"""Share of the memory from which other programs are worth a word; assumed."""
CONTEXT = 1 << 30
"""Bytes that a process may hold outside torch's allocator: CUDA's context, libraries; assumed."""
ROUNDING = 64 << 20
"""Bytes that stay unexplained where three sizes are each rounded to 0.01 GiB, and some more;
assumed."""
TIMES_THE_GPU = 10
"""From so many times the GPU's memory on, a size was computed wrongly; assumed."""

_RESERVED = re.compile(f"{SIZE} reserved in total by PyTorch")
_PROCESS = re.compile(f"Process [0-9]+ has {SIZE} memory in use")
_EXPANDABLE = re.compile(r"(?<!try setting )PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF[\"' =:]{1,4}"
                         r"[\"']?[^ \"']{0,200}expandable_segments:True")  # fmt: skip
"""As a shell or a script sets it, not as torch's own message proposes it."""


def allocator(account: Account, text: str, at: int) -> Explanation:
    """Explain a message of torch's allocators for CUDA, ROCm, XPU and others like them."""
    account = _with_others(account, text[at : at + BEHIND])
    if account.asked is not None:
        return judged(account, expandable=_EXPANDABLE.search(text, 0, at) is not None)
    if "pin_memory" in text[max(0, at - BEFORE) : at]:
        return Explanation("host", Message.of("diagnose.oom.pinned"), account, (fix("pinning"),))
    return Explanation("driver", Message.of("diagnose.oom.driver"), account, (fix("look-who"),))


def _with_others(account: Account, text: str) -> Account:
    """Return the account with what other processes hold, as far as the message tells."""
    reserved = found_bytes(_RESERVED, text)
    if account.unused is None and reserved is not None and account.allocated is not None:
        account = replace(account, unused=max(0, reserved - account.allocated))
    sizes = (found_bytes(_PROCESS, each[0]) for each in _PROCESS.finditer(text))
    named = [size for size in sizes if size is not None]
    others = sum(named) if named else _worked_out(account)
    return _own_process(replace(account, others=others), named)


def _worked_out(account: Account) -> int | None:
    """Return the others' memory where the message leaves it out: what nothing else explains.

    Without the memory of this process, only a share that no context explains is another's.
    """
    total, free, process = account.total, account.free, account.process
    if total is None or free is None:
        return None
    if process is not None:
        rest, least = total - free - process, ROUNDING
    elif account.allocated is not None and account.unused is not None:
        rest = total - free - account.allocated - account.unused
        least = max(int(OTHERS_SHARE * total), CONTEXT)
    else:
        return None
    return rest if rest >= least else None


def _own_process(account: Account, named: list[int]) -> Account:
    """Return the account with a named process that can only be this one moved to its place.

    In a container the driver numbers processes as the host does, so torch does not know its own.
    """
    total, free = account.total, account.free
    if account.process is not None or total is None or free is None:
        return account
    own = (account.allocated or 0) + (account.unused or 0)
    mine = min((size for size in named if size >= own), default=None)
    if mine is None or sum(named) + own <= total - free:
        return account
    return replace(account, process=mine, others=sum(named) - mine if len(named) > 1 else None)


def _missing(account: Account) -> int | None:
    """Return the bytes that were lacking; None where the message leaves too much out.

    With a limit, what the process has reserved counts against it. Where nobody says what is
    free, it is at most what torch has not reserved.
    """
    asked, own = account.asked or 0, (account.allocated or 0) + (account.unused or 0)
    if account.allowed is not None and account.allocated is not None:
        return max(0, asked + own - account.allowed)
    if account.free is not None:
        return max(0, asked - account.free)
    if account.total is not None and account.allocated is not None:
        return max(0, asked + own - account.total)
    return None


def judged(account: Account, *, expandable: bool) -> Explanation:
    """Return what the bytes of an account mean, for torch's allocator."""
    asked, free, unused = account.asked or 0, account.free or 0, account.unused or 0
    total, others, allocated = account.total, account.others or 0, account.allocated or 0
    missing = _missing(account)

    def told(kind: Kind, *fixes: Fix, id: str = "") -> Explanation:
        known = {name: size or 0 for name, size in asdict(account).items()}
        message = Message.of(f"diagnose.oom.{id or kind}", **known, missing=missing or 0)
        return Explanation(kind, message, account, fixes, missing)

    if total is not None and asked > TIMES_THE_GPU * total:
        return told("too-big", fix("check-size"), id="computed")
    if account.allowed is not None and missing:
        return told("limit", fix("raise-limit"), id="allowed")
    if total is not None and asked > total:
        return told("too-big", id="more-than-all")
    if total is not None and allocated + unused > total:
        return told("spilled")
    if account.free is not None and free >= asked:
        return told("limit", fix("memory-limit"))
    if total and others >= OTHERS_SHARE * total and others + free + unused >= asked:
        return told("other-programs", fix("other-programs-gpu"))
    if unused + free >= asked and unused >= asked / 2:
        if expandable:
            return told("fragmentation", id="fragmentation-still")
        return told("fragmentation", fix("expandable", {"settings.allocator": "expandable"}))
    if None in (account.allocated, account.free, total):
        return told("too-big", id="too-big-cut")
    return told("too-big")


def metal(account: Account, text: str, at: int) -> Explanation:
    """Explain a message of torch's allocator for Apple's GPUs."""
    # Other allocations are Metal's, of this process too.
    taken = (account.allocated or 0) + (account.unused or 0)
    asked, allowed = account.asked or 0, account.allowed or 0
    missing = max(0, asked + taken - allowed) if asked and allowed and taken else None
    says = Message.of("diagnose.oom.mps", asked=asked, taken=taken, allowed=allowed,
                      missing=missing or 0)  # fmt: skip
    held = replace(account, process=taken or None, unused=None)
    return Explanation("too-big", says, held, (), missing)


def shape(account: Account, text: str, at: int) -> Explanation:
    """Explain TensorFlow's message, which names a tensor by its shape and type."""
    asked = _tensor_bytes(text[at : at + BEHIND])
    if asked is None:
        return Explanation("driver", Message.of("diagnose.oom.driver"), account)
    says = Message.of("diagnose.oom.driver-asked", asked=asked)
    return Explanation("too-big", says, replace(account, asked=asked))


_TENSOR = re.compile(
    r"tensor with shape\[([0-9]{1,20}(?:,[0-9]{1,20}){0,20})\] and type (\w{1,20})"
)
_ELEMENT = {"bool": 1, "int8": 1, "half": 2, "bfloat16": 2, "int32": 4, "float": 4, "int64": 8,
            "double": 8}  # fmt: skip
"""Bytes of TensorFlow's types, as its messages name them."""


def _tensor_bytes(text: str) -> int | None:
    found = _TENSOR.search(text)
    if found is None or found[2] not in _ELEMENT:
        return None
    size = float(_ELEMENT[found[2]]) * prod(map(float, found[1].split(",")))
    return int(size) if size < texts.BELIEVED else None


_WAITED = re.compile(
    r"Rank (?P<rank>[0-9]{1,6})\] Watchdog caught collective operation timeout: Work[A-Z]{2,8}"
    r"\((?:SeqNum=(?P<number>[0-9]{1,18}), )?OpType=(?P<operation>[A-Z0-9_]{1,40})"
    r"[^()]{0,300}Timeout\(ms\)=(?P<limit>[0-9]{1,15})"
)
"""What torch's watchdog prints in each rank that waited."""
MOST_RANKS = 80
"""Characters in which ranks are named; assumed."""
MOST_CALLS = 3
"""Calls that are listed, the last ones; assumed: more say no more."""


def collective(account: Account, text: str, at: int) -> Explanation:
    """Return the ranks that waited, by the call that they waited in, and what to look at."""
    waited: dict[tuple[str, int], set[int]] = {}
    for each in _WAITED.finditer(text):
        number = f" (SeqNum={each['number']})" if each["number"] else ""
        ranks = waited.setdefault((each["operation"] + number, int(each["limit"])), set())
        ranks.add(int(each["rank"]))
    named = []
    for (call, limit), ranks in list(waited.items())[-MOST_CALLS:]:
        listed = one_line(", ".join(map(str, sorted(ranks))), MOST_RANKS)
        named.append(fix("collective-ranks", ranks=listed, call=call, limit=limit / 1000))
    says = Message.of("diagnose.oom.other-collective-timeout")
    return Explanation("other", says, account, (*named, fix("other-collective-timeout")))
