"""A value with its unit, kind, interval, source and derivation."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from trainwright.messages import Message


class Kind(StrEnum):
    """How a value is known. The kinds never look alike on any screen."""

    ESTIMATED = "estimated"
    MEASURED = "measured"
    QUOTED = "quoted"
    YOURS = "yours"
    ASSUMED = "assumed"


class Unit(StrEnum):
    """Base units; readable ones are made at the edge."""

    BYTES = "bytes"
    SECONDS = "seconds"
    SAMPLES_PER_SECOND = "samples/s"
    TOKENS_PER_SECOND = "tokens/s"
    BYTES_PER_SECOND = "bytes/s"
    REQUESTS_PER_SECOND = "requests/s"
    FLOP = "FLOP"
    FLOP_PER_SECOND = "FLOP/s"
    COUNT = "count"
    RATIO = "ratio"
    WATTS = "watts"


@dataclass(frozen=True, slots=True)
class Interval:
    """A range that holds the true value with the given probability."""

    low: float
    high: float
    probability: float = 0.9


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number that a person can open."""

    name: Message
    """What it is."""
    value: float
    """In base units."""
    unit: Unit
    kind: Kind
    formula: str = ""
    """How it was made from ``parts``, in the field's notation: ``2·B·S·V``."""
    parts: tuple["Quantity", ...] = ()
    """What it was made from, largest first where they are summed."""
    source: str = ""
    """Data sheet, paper or file that the value or formula comes from."""
    interval: Interval | None = None
    note: Message | None = None
    role: str = ""
    """Stable key for charts and colours: ``weights``, ``activations``."""

    def walk(self, depth: int = 0) -> Iterator[tuple[int, "Quantity"]]:
        """Yield this quantity and everything below it, with depths."""
        yield depth, self
        for part in self.parts:
            yield from part.walk(depth + 1)

    def named(self, name: Message) -> "Quantity":
        """Return the same quantity under another name."""
        return replace(self, name=name)


def total(name: Message, parts: Iterable[Quantity], *, role: str = "") -> Quantity:
    """Return the sum of quantities of one unit; it is as weakly known as its weakest part.

    Raises:
        ValueError: no parts, or parts of different units.
    """
    parts = tuple(parts)
    units = {part.unit for part in parts}
    if len(units) != 1:
        raise ValueError(f"cannot sum {sorted(units)}")
    kind = max((part.kind for part in parts), key=_WEAKNESS.__getitem__)
    value = sum(part.value for part in parts)
    return Quantity(name, value, units.pop(), kind, parts=parts, role=role)


_WEAKNESS = {Kind.YOURS: 0, Kind.MEASURED: 1, Kind.QUOTED: 2, Kind.ASSUMED: 3, Kind.ESTIMATED: 4}
