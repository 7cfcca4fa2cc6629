"""What is kept of a trace's events: numbers in arrays, names once."""

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeGuard

import numpy as np
from numpy.typing import NDArray

Place = Literal["device", "launch", "host", "annotation"]
_PLACES: dict[str, Place] = {
    "kernel": "device", "gpu_memcpy": "device", "gpu_memset": "device", "memcpy": "device",
    "memset": "device", "cuda_runtime": "launch", "cuda_driver": "launch", "runtime": "launch",
    "driver": "launch", "xpu_runtime": "launch", "hip_runtime": "launch", "privateuse1_runtime":
    "launch", "cpu_op": "host", "operator": "host", "user_annotation": "annotation",
}  # fmt: skip
"""Categories of kineto, old spellings with capitals included."""
MOST_EVENTS = 6_000_000
"""That are kept, which takes 0.2 GiB, and as much to sort; assumed: a trace of 2 GB."""
BELIEVED = 1e18
"""Microseconds in a trace that are believed; assumed: 30,000 years."""


@dataclass(slots=True)
class Columns:
    """The events of one place: times in microseconds."""

    start: "array[float]" = field(default_factory=lambda: array("d"))
    duration: "array[float]" = field(default_factory=lambda: array("d"))
    name: "array[int]" = field(default_factory=lambda: array("i"))
    lane: "array[int]" = field(default_factory=lambda: array("i"))
    """The thread or stream."""
    linked: "array[int]" = field(default_factory=lambda: array("q"))
    """The correlation of a launch with what it launched; -1 where there is none."""

    def arrays(self) -> "Events":
        """Return the events, by their start; the outer of two that start together first."""
        start, duration = np.frombuffer(self.start), np.frombuffer(self.duration)
        order = np.lexsort((-duration, start))
        return Events(
            start[order],
            (start + duration)[order],
            np.frombuffer(self.name, dtype=np.int32)[order],
            np.frombuffer(self.lane, dtype=np.int32)[order],
            np.frombuffer(self.linked, dtype=np.int64)[order],
        )


@dataclass(frozen=True, slots=True)
class Events:
    """Events of one place, sorted."""

    start: NDArray[np.float64]
    end: NDArray[np.float64]
    name: NDArray[np.int32]
    lane: NDArray[np.int32]
    linked: NDArray[np.int64]

    def where(self, held: NDArray[np.bool_] | NDArray[np.intp]) -> "Events":
        """Return those for which ``held`` is true, or those at its places."""
        return Events(
            self.start[held], self.end[held], self.name[held], self.lane[held], self.linked[held]
        )

    def __len__(self) -> int:
        return len(self.start)


@dataclass(frozen=True, slots=True)
class Trace:
    """The events of a trace by place."""

    names: tuple[str, ...]
    device: Events
    launches: Events
    host: Events
    annotations: Events
    odd: int
    """Events without a time that is believed."""
    left_out: int
    """Events beyond those that are kept."""
    processes: int
    """Processes whose operators were recorded."""

    def named(self, events: Events, held: NDArray[np.bool_]) -> Events:
        """Return the events whose name has a true entry in ``held``."""
        return events.where(held[events.name]) if len(events) else events


def collected(events: Iterable[dict[str, Any]]) -> Trace:
    """Return what is kept of the events of a trace."""
    columns: dict[Place, Columns] = {
        place: Columns() for place in ("device", "launch", "host", "annotation")
    }
    names: dict[str, int] = {}
    lanes: dict[tuple[object, object], int] = {}
    processes: set[object] = set()
    odd = kept = left_out = 0
    for event in events:
        if event.get("ph") != "X":
            continue
        place = _PLACES.get(str(event.get("cat", "")).lower())
        if place is None:
            continue
        start, duration, name = event.get("ts"), event.get("dur", 0), event.get("name")
        if not (_number(start) and _number(duration) and duration >= 0 and isinstance(name, str)):
            odd += 1
            continue
        if kept >= MOST_EVENTS:
            left_out += 1
            continue
        kept += 1
        column = columns[place]
        lane = (_plain(event.get("pid")), _plain(event.get("tid")))
        column.start.append(start)
        column.duration.append(duration)
        column.name.append(names.setdefault(name, len(names)))
        column.lane.append(lanes.setdefault(lane, len(lanes)))
        column.linked.append(_correlation(event) if place in ("device", "launch") else -1)
        if place == "host":
            processes.add(lane[0])
    sorted_ = {place: each.arrays() for place, each in columns.items()}
    return Trace(
        tuple(names), sorted_["device"], sorted_["launch"], sorted_["host"],
        sorted_["annotation"], odd, left_out, len(processes),
    )  # fmt: skip


def _number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < BELIEVED


def _plain(value: object) -> object:
    return value if isinstance(value, int | str) else None


def _correlation(event: dict[str, Any]) -> int:
    arguments = event.get("args")
    value = arguments.get("correlation") if isinstance(arguments, dict) else None
    return value if isinstance(value, int) and 0 <= value < 1 << 62 else -1
