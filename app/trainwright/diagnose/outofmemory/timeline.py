"""What a device's allocator had given out over time, and who held the peak.

Made from the history of torch's memory snapshot. It is walked back from the end, as its beginning
may be missing (``max_entries``).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from trainwright.messages import Message
from trainwright.quoting import one_line

Event = dict[str, Any]
"""As ``torch.cuda.memory._snapshot`` documents ``TraceEntry``."""
MOST_OWNERS = 8
MOMENTS = 60
"""Points of a curve."""
MOST_BYTES = 1 << 60
"""Largest figure that is believed; assumed, a million times what a GPU has."""
_LIBRARIES = ("site-packages", "dist-packages", "/torch/", "<frozen", ".cpp", ".h")
"""Files of frames that are not the script's."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A line of the script, and what it held at the peak."""

    place: str
    """File, line and function; empty where nothing recorded it."""
    bytes: int
    count: int
    """Allocations."""

    @property
    def named(self) -> Message:
        """The place, or that nobody recorded it."""
        if not self.place:
            return Message.of("diagnose.timeline.unrecorded")
        return Message.of("diagnose.timeline.place", place=self.place)

    @property
    def counted(self) -> Message:
        """How many allocations it were."""
        return Message.of("diagnose.timeline.allocations", count=self.count)


@dataclass(frozen=True, slots=True)
class Timeline:
    """What one device's allocator had given out over the recorded time."""

    device: int
    events: int
    seconds: float
    """From the first event to the last."""
    peak_bytes: int
    peak_seconds: float
    """After the first event."""
    reserved_bytes: int
    """At the end, taken from the driver."""
    curve: tuple[int, ...]
    """Bytes at even distances of events; the highest within each."""
    owners: tuple[Owner, ...]
    """Of the peak, the largest first."""

    @property
    def says(self) -> Message:
        """What was recorded, and when the peak was."""
        if not self.events:
            return Message.of("diagnose.timeline.no-history", peak=self.peak_bytes)
        return Message.of(
            "diagnose.timeline",
            device=self.device,
            count=self.events,
            seconds=self.seconds,
            peak=self.peak_bytes,
            at=self.peak_seconds,
            reserved=self.reserved_bytes,
        )


def whole(value: Any) -> int:
    """Return a figure of a file as it is.

    Raises:
        ValueError: it is none, or too large to be meant.
    """
    if not isinstance(value, int) or not 0 <= value < MOST_BYTES:
        raise ValueError("no such figure")
    return value


GIVEN = {"alloc": 1, "free_completed": -1}
"""Actions by which what is given out changes, and its direction."""
RESERVED = {"segment_alloc": 1, "segment_map": 1, "segment_free": -1, "segment_unmap": -1}
"""Actions by which what is taken from the driver changes."""


def change(event: Event, actions: dict[str, int] = GIVEN) -> int:
    """Return by how many bytes an event changes what is given out, or reserved."""
    sign = actions.get(event["action"], 0)
    return sign * whole(event["size"]) if sign else 0


def timeline_of(
    number: int, events: Sequence[Event], blocks: Iterable[dict[str, Any]], reserved: int
) -> Timeline:
    """Return the curve, its peak and the peak's owners."""
    live = {
        each["address"]: (whole(each.get("requested_size") or each["size"]), each["frames"])
        for each in blocks
        if each["state"] != "inactive"
    }
    changes = [change(each) for each in events]
    before = sum(size for size, _ in live.values()) - sum(changes)
    totals = list(accumulate(changes, initial=before))  # totals[n]: before event n
    peak = max(range(len(totals)), key=lambda at: totals[at])
    times = [whole(each.get("time_us", 0)) / 1e6 for each in events] or [0.0]
    each = max(1, -(-len(totals) // MOMENTS))
    return Timeline(
        device=number,
        events=len(events),
        seconds=max(0.0, times[-1] - times[0]),
        peak_bytes=max(0, totals[peak]),
        peak_seconds=max(0.0, times[max(0, peak - 1)] - times[0]),
        reserved_bytes=reserved,
        curve=tuple(max(0, *totals[at : at + each]) for at in range(0, len(totals), each)),
        owners=_owners(_live_at(peak, events, live)),
    )


Live = dict[int, tuple[int, Any]]
"""Address -> bytes, and the frames of their allocation."""


def _live_at(place: int, events: Sequence[Event], live: Live) -> Live:
    """Return what was alive before an event, from what is alive at the end."""
    found = dict(live)
    for event in reversed(events[place:]):
        if event["action"] == "alloc":
            found.pop(event["addr"], None)
        elif event["action"] == "free_completed":
            found[event["addr"]] = (whole(event["size"]), None)
    for event in events[:place]:
        if event["action"] == "alloc" and event["addr"] in found:
            size, frames = found[event["addr"]]
            found[event["addr"]] = (size, event["frames"] or frames)
    return found


def _owners(live: Live) -> tuple[Owner, ...]:
    held: defaultdict[str, list[int]] = defaultdict(list)
    for size, frames in live.values():
        held[_place(frames or ())].append(size)
    owners = (Owner(place, sum(sizes), len(sizes)) for place, sizes in held.items())
    return tuple(sorted(owners, key=lambda each: -each.bytes)[:MOST_OWNERS])


def _place(frames: Sequence[dict[str, Any]]) -> str:
    """Return the innermost line of the script, or of a library where no other is known."""
    named = [each for each in frames if str(each["filename"]).strip("?")]
    own = (each for each in named if not any(word in each["filename"] for word in _LIBRARIES))
    for frame in (*own, *named):
        return one_line(f"{frame['filename']}:{frame['line']} {frame['name']}", 200)
    return ""
