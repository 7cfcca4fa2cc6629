"""Progress of a search: how many cards it has compared, and which one it compares now."""

from collections.abc import Callable, Iterator, Sequence

from trainwright.build.speeds import Cards
from trainwright.catalog import GpuRecord
from trainwright.messages import Message

Watch = Callable[[float, Message], None]
"""Takes the share of the cards that were compared, 0 to 1, and what is compared now."""


def unwatched(_share: float, _what: Message) -> None:
    """Show no progress."""


def in_turn(records: Sequence[GpuRecord], watch: Watch) -> Iterator[tuple[int, GpuRecord]]:
    """Yield cards with their number from 0, each after ``watch`` has it."""
    count = len(records)
    for number, record in enumerate(records):
        looked = Message.of("planner.looking", gpu=record.name, number=number + 1, count=count)
        watch(number / count, looked)
        yield number, record


def around(cards: Cards) -> Message:
    """Return that a computer is chosen around some cards."""
    return Message.of("planner.choosing", gpu=cards.record.name, cards=cards.count)
