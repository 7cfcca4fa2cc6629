"""What a person usually has, where a plan does not say: GPU, currency, price of electricity.

And how they write large numbers and memory, which no plan says.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from trainwright.messages import units

if TYPE_CHECKING:
    from trainwright.prices import Currency

GPU = "rtx-4090"
"""Of a new plan where nobody chose one; the first plan fits it."""

Digits = Literal["comma", "space", "plain"]
Memory = Literal["GiB", "GB"]
DIGITS: dict[Digits, str] = {"comma": ",", "space": "\u202f", "plain": ""}
"""What stands between thousands; the space is narrow and breaks no line (ISO 80000-1, 7.3.1)."""


@dataclass(frozen=True, slots=True)
class Usual:
    """None leaves it to the program."""

    gpu: str | None = None
    currency: "Currency | None" = None
    usd_per_kwh: float | None = None
    household_kwh: float | None = None
    """That the household uses a month without the computer; of the Korean tariff."""
    digits: Digits = "comma"
    memory: Memory = "GiB"
    """Unit of figures of memory. Sizes of parts and what a plan says stay in GiB."""


_usual = Usual()


def use(what: Usual) -> None:
    """Make these the ones that ``usual`` answers."""
    global _usual
    _usual = what
    units.mark_thousands(DIGITS[what.digits])
    units.measure_memory(what.memory)


def usual() -> Usual:
    """Return what a person set."""
    return _usual
