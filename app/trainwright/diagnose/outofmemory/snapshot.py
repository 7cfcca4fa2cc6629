"""torch's memory snapshot: what was allocated when, who held the peak, and what did not fit.

The format is that of ``torch.cuda.memory._dump_snapshot`` from 2.0 on: the allocator's segments at
the end, and the history of each device.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trainwright import reading
from trainwright.diagnose.outofmemory.account import Account, Explanation
from trainwright.diagnose.outofmemory.timeline import RESERVED, change, timeline_of, whole
from trainwright.diagnose.outofmemory.torch_messages import judged
from trainwright.messages import Message, UserError
from trainwright.plainpickle import plain_data

MARK = b"\x80"
"""The first byte of a pickle."""
MOST_BYTES = 64 << 20
"""Largest snapshot that is read, some million events; assumed: half a minute."""


def is_snapshot(source: str) -> bool:
    """Return whether a file begins as a pickle does; what cannot be read is none."""
    try:
        with reading.opened(Path(source), source) as stream:
            return stream.read(1) == MARK
    except UserError:
        return False


def read(source: str) -> Explanation:
    """Return what a snapshot says of the device that ran out of memory, or held most.

    Raises:
        UserError: it cannot be read, or is not a snapshot.
    """
    try:
        found = plain_data(reading.content(source, MOST_BYTES))
        devices = [_device(found, number) for number in range(len(found["device_traces"]))]
        told = [each for each in devices if each.timeline is not None]
    except (ValueError, TypeError, LookupError, AttributeError):
        raise UserError.of("diagnose.oom.pickle", file=source) from None
    if not told:
        raise UserError.of("diagnose.oom.pickle", file=source)
    failed = [each for each in told if each.kind != "none"]
    return max(failed or told, key=lambda each: each.timeline.peak_bytes if each.timeline else 0)


def _device(found: dict[str, Any], number: int) -> Explanation:
    """Return what a device's part says; no timeline where it allocated nothing."""
    segments = [each for each in found["segments"] if each["device"] == number]
    events = found["device_traces"][number]
    blocks = list(_blocks(segments))
    reserved = sum(whole(each["total_size"]) for each in segments)
    timeline = timeline_of(number, events, blocks, reserved) if events or blocks else None
    nothing = Explanation("none", Message.of("diagnose.oom.no-failure"), Account())
    failures = [at for at, each in enumerate(events) if each["action"] == "oom"]
    if not failures:
        return replace(nothing, timeline=timeline)
    expandable = bool((found.get("allocator_settings") or {}).get("expandable_segments"))
    explained = _explained(events, failures[-1], blocks, reserved, expandable=expandable)
    return replace(explained, timeline=timeline)


def _blocks(segments: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yield all blocks with their addresses, which torch before 2.2 leaves out."""
    for segment in segments:
        address = segment["address"]
        for block in segment["blocks"]:
            yield {"address": address, "frames": [], **block}
            address += block["size"]


def _explained(
    events: Sequence[dict[str, Any]],
    at: int,
    blocks: Sequence[dict[str, Any]],
    reserved: int,
    *,
    expandable: bool,
) -> Explanation:
    """Return why the allocation at an event failed, by what was reserved and given out then."""
    failure = events[at]
    given = sum(whole(each["size"]) for each in blocks if each["state"] != "inactive")
    allocated = given - sum(change(each) for each in events[at:])
    held = reserved - sum(change(each, RESERVED) for each in events[at:])
    account = Account(
        asked=whole(failure["size"]),
        free=whole(failure["device_free"]),
        allocated=max(0, allocated),
        unused=max(0, held - allocated),
    )
    explained = judged(account, expandable=expandable)
    if explained.kind != "too-big":
        return explained
    values = {"asked": account.asked or 0, "free": account.free or 0, "missing": explained.missing}
    says = Message.of("diagnose.oom.snapshot", allocated=account.allocated or 0, **values)
    return replace(explained, says=says)
