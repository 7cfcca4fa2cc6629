"""What a person usually has, where a plan does not say: GPU, currency, price of electricity."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from trainwright.prices import Currency

GPU = "rtx-4090"
"""Of a new plan where nobody chose one; the first plan fits it."""


@dataclass(frozen=True, slots=True)
class Usual:
    """None leaves it to the program."""

    gpu: str | None = None
    currency: "Currency | None" = None
    usd_per_kwh: float | None = None
    household_kwh: float | None = None
    """That the household uses a month without the computer; of the Korean tariff."""


_usual = Usual()


def use(what: Usual) -> None:
    """Make these the ones that ``usual`` answers."""
    global _usual
    _usual = what


def usual() -> Usual:
    """Return what a person set."""
    return _usual
