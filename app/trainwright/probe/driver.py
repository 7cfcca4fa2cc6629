"""The conversation with the child that asks the NVIDIA driver: no call of its can hang this one.

A call that does not return, or takes its process down, costs the readings of one GPU: the child
is ended, and another reads the GPUs that are left.
"""

import queue
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from trainwright.messages import Message
from trainwright.probe.conversation import Conversation
from trainwright.probe.reading import Missing
from trainwright.worker.client import PROGRAMS

PATIENCE_S = 10.0
"""Seconds that one call may take: a driver without persistence mode starts each GPU again, a
second or two apiece (NVIDIA's driver persistence documentation), and under load one walk over
all GPUs was seen to take ten (a comment in NVIDIA's k8s-dra-driver-gpu)."""
STARTING_S = 30.0
"""Seconds that a child may take to its first line; assumed, Python and the binding take 0.2."""
SYSTEM = -1
"""Index that stands for the driver itself."""
IDENTIFIERS = frozenset({"uuid", "serial"})
"""Readings by which one device is told from every other in the world."""
AGAIN = 16
"""Most children in one reading; assumed, more GPUs than hang at once in one computer."""


@dataclass(slots=True)
class Told:
    """What children said: values, and reasons in place of them, by GPU and reading."""

    readings: dict[tuple[int, str], Any] = field(default_factory=dict)
    errors: dict[tuple[int, str], int | str] = field(default_factory=dict)
    faults: dict[int, Message] = field(default_factory=dict)
    """Of GPUs whose reading ended before its end; ``SYSTEM``: the driver did not start."""
    done: bool = False
    unasked: frozenset[str] = frozenset()
    """Readings that nobody asked for."""

    def take(self, line: dict[str, Any]) -> None:
        """Note one line; what is none of the program's is passed over."""
        match line:
            case {"done": True}:
                self.done = True
            case {"gpu": int(gpu), "reading": str(name), "value": value}:
                self.readings[gpu, name] = value
            case {"gpu": int(gpu), "reading": str(name), "error": int() | str() as error}:
                self.errors[gpu, name] = error


_stuck: dict[int, Message] = {}
"""GPUs that stopped a child of this process, so that not every edit of a plan waits for them."""


def ask(*, identifiers: bool = False, patience_s: float = PATIENCE_S, anew: bool = True) -> Told:
    """Return everything that the driver tells before each call's limit.

    Args:
        identifiers: whether serial numbers and UUIDs are asked for.
        patience_s: seconds that one call may take.
        anew: whether GPUs are asked again that stopped a child before.
    """
    unasked = frozenset() if identifiers else IDENTIFIERS
    told = Told(faults={} if anew else dict(_stuck), unasked=unasked)
    _converse_on(told, identifiers, patience_s)
    _stuck.clear()
    _stuck.update(told.faults)
    return told


def _converse_on(told: Told, identifiers: bool, patience_s: float) -> None:
    """Start one child after the other until one comes to its end."""
    for _ in range(AGAIN):
        if SYSTEM in told.faults:
            return
        stopped = _converse(told, identifiers, patience_s)
        if stopped is None:
            return
        gpu, fault = stopped
        if gpu in told.faults:  # it was to be skipped
            return
        told.faults[gpu] = fault


def _converse(told: Told, identifiers: bool, patience_s: float) -> tuple[int, Message] | None:
    """Listen to one child; return the GPU that stopped it and how, or None at its end."""
    skipped = [word for gpu in sorted(told.faults) for word in ("--skip", str(gpu))]
    options = [*(["--identifiers"] if identifiers else []), *skipped]
    asking = SYSTEM
    with closing(Conversation([str(PROGRAMS / "nvml.py"), *options])) as child:
        patience = max(STARTING_S, patience_s)
        while True:
            try:
                line = child.line(patience)
            except queue.Empty:
                return asking, Message.of("probe.no-answer", seconds=patience_s)
            if line is None:
                over = told.done or (SYSTEM, "start") in told.errors
                return None if over else (asking, Message.of("probe.driver-crashed"))
            if "asking" in line and isinstance(line.get("gpu"), int):
                asking, patience = line["gpu"], patience_s
            told.take(line)


def absent(told: Told, where: tuple[int, str]) -> Missing:
    """Return why a reading is not there."""
    if where[1] in told.unasked:
        return Missing(Message.of("probe.not-read"))
    fault = told.faults.get(where[0])
    error = told.errors.get(where)
    if error is not None:
        return Missing(because(error))
    return Missing(fault or Message.of("probe.not-read"))


_REASONS = {
    3: "probe.not-supported",
    4: "probe.no-permission",
    9: "probe.driver-not-loaded",
    10: "probe.timed-out",
    12: "probe.no-driver",
    13: "probe.old-driver",
    15: "probe.gpu-lost",
    16: "probe.reset-needed",
    18: "probe.driver-updated",
    "garbled": "probe.garbled",
    "implausible": "probe.implausible",
}
"""By the numbers of nvml.h."""


def because(error: int | str) -> Message:
    """Return what an error of NVML means to a person."""
    known = _REASONS.get(error)
    return Message.of(known) if known else Message.of("probe.nvml-error", code=error)
