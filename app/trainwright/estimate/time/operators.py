"""What a stage's seconds are made of: classes of kernels, and the slowest operators of each."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from trainwright.estimate.time.kernels import IS_PRODUCT
from trainwright.estimate.time.measured import shown
from trainwright.estimate.time.roofline import CLASSES, OpTimes
from trainwright.explain import Quantity
from trainwright.explain.quantity import Kind, Unit
from trainwright.machine.measured import MeasuredGpu
from trainwright.messages import Message
from trainwright.profile.memo import KEPT
from trainwright.profile.profile import Floats, Profile

_SHOWN = 5
_FORMULA = "n · (((FLOP / (peak · e))^p + (bytes / (bandwidth · m))^p)^(1/p) + gap)"


def class_parts(
    profile: Profile, times: OpTimes, counts: Floats, measured: MeasuredGpu | None = None
) -> list[Quantity]:
    """Return the classes of a stage, the slowest first, each with its slowest operators.

    ``counts`` is how often each row of the profile's operators runs in the stage, ``measured``
    what the GPU was seen to reach.
    """
    sums = _Sums.of(profile, times, counts)
    by_class = sums.seconds.sum(axis=1)
    order = [number for number in np.argsort(-by_class).tolist() if by_class[number] > 0]
    return [
        Quantity(
            Message.of(f"time.class.{CLASSES[number]}"),
            float(by_class[number]),
            Unit.SECONDS,
            Kind.ESTIMATED,
            formula="Σ n · t",
            parts=tuple(_slowest(sums, number, shown(measured, product=bool(IS_PRODUCT[number])))),
            role=CLASSES[number],
        )
        for number in order
    ]


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Sums over the rows of each class and operator; arrays (classes, operators)."""

    names: tuple[str, ...]
    runs: Floats
    seconds: Floats
    flops: Floats
    bytes: Floats

    @classmethod
    def of(cls, profile: Profile, times: OpTimes, counts: Floats) -> "_Sums":
        names, numbers = _names(profile)
        place = times.group.astype(np.int64) * len(names) + numbers

        def summed(values: Floats) -> Floats:
            found = np.bincount(place, weights=values, minlength=len(CLASSES) * len(names))
            result: Floats = found.astype(np.float64).reshape(len(CLASSES), len(names))
            return result

        quantities = (counts * each for each in (times.seconds, times.flops, times.bytes))
        return cls(names, summed(counts), *map(summed, quantities))


@lru_cache(maxsize=KEPT)
def _names(profile: Profile) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Return the operators' names, each once, and the number of each row's."""
    names = tuple(dict.fromkeys(profile.ops.name))
    number = {name: place for place, name in enumerate(names)}
    return names, np.array([number[name] for name in profile.ops.name], dtype=np.int64)


def _slowest(sums: _Sums, group: int, rates: tuple[Quantity, ...]) -> Iterator[Quantity]:
    """Yield the slowest operators of a class by name, and the rest as one."""
    seconds = sums.seconds[group]
    ranked = np.argsort(-seconds, kind="stable")
    for place in ranked[:_SHOWN].tolist():
        if sums.runs[group, place] <= 0:
            return
        runs = int(sums.runs[group, place])
        yield Quantity(
            Message.of("time.operator", name=sums.names[place], count=runs),
            float(seconds[place]),
            Unit.SECONDS,
            Kind.ESTIMATED,
            formula=_FORMULA,
            parts=(
                _work("time.flop", float(sums.flops[group, place]), Unit.FLOP),
                _work("time.bytes", float(sums.bytes[group, place]), Unit.BYTES),
                *rates,
            ),
        )
    rest = float(seconds[ranked[_SHOWN:]].sum())
    if rest > 0:
        yield Quantity(Message.of("time.other-operators"), rest, Unit.SECONDS, Kind.ESTIMATED)


def _work(id: str, value: float, unit: Unit) -> Quantity:
    return Quantity(Message.of(id), value, unit, Kind.ESTIMATED, formula="traced")
