"""Who is told how far a search is, and what it looks at."""

from collections.abc import Callable, Iterator, Sequence

from trainwright.build.speeds import Cards
from trainwright.catalog import GpuRecord
from trainwright.messages import Message

Watch = Callable[[float, Message], None]
"""Takes the share of the cards that were looked at, 0 to 1, and what is looked at now."""


def unwatched(_share: float, _what: Message) -> None:
    """Tell nobody."""


def in_turn(records: Sequence[GpuRecord], watch: Watch) -> Iterator[tuple[int, GpuRecord]]:
    """Yield cards with their number from 0, each after ``watch`` was told of it."""
    count = len(records)
    for number, record in enumerate(records):
        looked = Message.of("planner.looking", gpu=record.name, number=number + 1, count=count)
        watch(number / count, looked)
        yield number, record


def around(cards: Cards) -> Message:
    """Return that a computer is chosen around some cards."""
    return Message.of("planner.choosing", gpu=cards.record.name, cards=cards.count)
