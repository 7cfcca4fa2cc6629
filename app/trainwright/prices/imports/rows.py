"""What a line of a list says, before anybody knows which part it means."""

from dataclasses import dataclass
from datetime import date

from trainwright.catalog import PartKind
from trainwright.messages import Message
from trainwright.prices.observation import Asked, Condition, PriceKind, Tax
from trainwright.quoting import one_line


@dataclass(frozen=True, slots=True)
class Row:
    """A line with a part's name and what one piece costs."""

    line: int
    """In the list, from 1."""
    name: str
    """As the list writes it."""
    amount: float
    """Of one piece."""
    currency: Asked
    kind: PriceKind
    observed: date
    quantity: int = 1
    part_kind: PartKind | None = None
    """Where the list says it."""
    condition: Condition = "new"
    region: str = ""
    tax: Tax = "unknown"
    shipping: float | None = None
    seller: str = ""
    valid_until: date | None = None
    url: str = ""
    older: int = 0
    """Prices of earlier days that its line holds too, and that nobody takes."""
    origin: str = ""
    """The list that it came in, once it waits outside of it."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A line that is not a price, and why."""

    line: int
    text: str
    """Of the line, cut short."""
    reason: Message


Read = Row | Refused
MOST_SHOWN = 80
"""Characters of a refused line that are shown."""


def refused(line: int, text: str, id: str, /, **values: object) -> Refused:
    """Return a refusal for the reason of an id below ``prices.row``."""
    told = {
        key: one_line(value) if isinstance(value, str) else value for key, value in values.items()
    }
    return Refused(line, one_line(text, MOST_SHOWN), Message.of(f"prices.row.{id}", **told))


class RowError(Exception):
    """Why a line cannot be read; its reader knows the line."""

    def __init__(self, id: str, /, **values: object) -> None:
        super().__init__(id)
        self.id = id
        self.values = values

    def at(self, line: int, text: str) -> Refused:
        """Return the refusal of a line."""
        return refused(line, text, self.id, **self.values)
