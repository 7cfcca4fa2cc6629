"""The other ways to share a GPU, for the same jobs: what they would take, and what they isolate."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from trainwright.messages import Message

Way = Literal["mig", "mps", "time-slicing", "sequence", "vgpu", "alone"]
SWITCHING = 1.1
"""What switching between programs multiplies their time by, at most; assumed."""


@dataclass(frozen=True, slots=True)
class OnWhole:
    """A job on the whole GPU, with nobody beside it."""

    name: str
    seconds: float | None
    memory_bytes: float


@dataclass(frozen=True, slots=True)
class Alternative:
    """One way to share."""

    way: Way
    fits: bool
    finish: tuple[float, float] | None
    """Least and most seconds until all are done; None where nobody knows."""
    isolation: Message
    because: Message


def alternatives(
    jobs: Sequence[OnWhole], total_bytes: float, mig: tuple[bool, float | None], gpus: int = 1
) -> tuple[Alternative, ...]:
    """Return the ways to share, MIG first.

    ``mig`` says whether all jobs have an instance, and the seconds until the last is done.
    """
    fits, finish = mig
    return (
        Alternative("mig", fits, _exactly(finish), _isolation("mig"), _because("mig")),
        _together("mps", jobs, total_bytes, gpus),
        _together("time-slicing", jobs, total_bytes, gpus),
        _sequence(jobs, total_bytes, gpus),
        Alternative("vgpu", False, None, _isolation("vgpu"), _because("vgpu")),
        _alone(jobs, total_bytes),
    )


def _exactly(seconds: float | None) -> tuple[float, float] | None:
    return None if seconds is None else (seconds, seconds)


def _isolation(way: Way) -> Message:
    return Message.of(f"mig.isolation.{way}")


def _because(way: Way, **values: object) -> Message:
    return Message.of(f"mig.because.{way}", **values)


def _times(jobs: Sequence[OnWhole]) -> list[float] | None:
    times = [job.seconds for job in jobs]
    return None if None in times else [time for time in times if time is not None]


def _together(way: Way, jobs: Sequence[OnWhole], total: float, gpus: int) -> Alternative:
    """All at once: with MPS between the longest alone and one after another; in time slices no
    sooner than one after another.
    """
    needed = sum(job.memory_bytes for job in jobs)
    fits = needed <= gpus * total and max(job.memory_bytes for job in jobs) <= total
    times = _times(jobs)
    finish = None
    if times is not None and fits:
        queue = max(max(times), sum(times) / gpus)
        finish = (max(times), queue) if way == "mps" else (queue, queue * SWITCHING)
    because = _because(way, needed=needed, total=gpus * total)
    return Alternative(way, fits, finish, _isolation(way), because)


def _sequence(jobs: Sequence[OnWhole], total: float, gpus: int) -> Alternative:
    """One after another on the whole GPU: longest first onto the GPU that is free first."""
    fits = all(job.memory_bytes <= total for job in jobs)
    times = _times(jobs)
    finish = None
    if times is not None and fits:
        busy = [0.0] * gpus
        for time in sorted(times, reverse=True):
            busy[busy.index(min(busy))] += time
        finish = _exactly(max(busy))
    return Alternative("sequence", fits, finish, _isolation("sequence"), _because("sequence"))


def _alone(jobs: Sequence[OnWhole], total: float) -> Alternative:
    fits = all(job.memory_bytes <= total for job in jobs)
    times = _times(jobs)
    finish = _exactly(max(times)) if times and fits else None
    because = _because("alone", asked=len(jobs))
    return Alternative("alone", fits, finish, _isolation("alone"), because)


def advice(found: Sequence[Alternative]) -> Message | None:
    """Return why MIG is the wrong way for these jobs; None where it is not."""
    by_way = {each.way: each for each in found}
    mig, queue = by_way["mig"], by_way["sequence"]
    if not mig.fits and queue.fits:
        return Message.of("mig.advice.does-not-fit")
    if mig.finish and queue.finish and queue.finish[1] < mig.finish[0]:
        return Message.of("mig.advice.sequence", mig=mig.finish[0], sequence=queue.finish[1])
    return None
