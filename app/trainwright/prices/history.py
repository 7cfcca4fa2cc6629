"""Undo and redo of what a person does to their prices, waiting rows and exchange rate.

A step holds what it changed and no more: what another window or program adds meanwhile stays.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date

from trainwright.prices import exchange, own_prices
from trainwright.prices.imports import Row, waiting
from trainwright.prices.observation import Observation
from trainwright.prices.price import Rate


@dataclass(frozen=True, slots=True)
class State:
    """All that a person keeps."""

    prices: tuple[Observation, ...]
    waiting: tuple[Row, ...]
    rate: Rate | None


def now() -> State:
    """Return what is kept now."""
    return State(own_prices.load().observations, waiting.load().rows, exchange.load()[0])


def move(before: State, after: State) -> None:
    """Change what differs between two states.

    Raises:
        UserError: a file cannot be written.
    """
    own_prices.add(one for one in after.prices if one not in set(before.prices))
    own_prices.withdraw(one for one in before.prices if one not in set(after.prices))
    waiting.add(row for row in after.waiting if row not in set(before.waiting))
    waiting.drop(row for row in before.waiting if row not in set(after.waiting))
    if after.rate == before.rate:
        return
    if after.rate is None:
        exchange.forget()
    else:
        exchange.keep(after.rate, date.today())


class Steps:
    """The steps that can be undone, and those that can be done again."""

    def __init__(self) -> None:
        self.past: list[tuple[State, State]] = []
        self.ahead: list[tuple[State, State]] = []

    @contextmanager
    def doing(self) -> Iterator[None]:
        """Take what happens within as one step; what raises is none."""
        before = now()
        yield
        after = now()
        if after != before:
            self.past.append((before, after))
            self.ahead.clear()

    def undo(self) -> None:
        """Take the last step back.

        Raises:
            UserError: a file cannot be written; the step stays.
        """
        if self.past:
            before, after = self.past[-1]
            move(after, before)
            self.ahead.append(self.past.pop())

    def redo(self) -> None:
        """Do the step again that was taken back last.

        Raises:
            UserError: as ``undo`` does.
        """
        if self.ahead:
            move(*self.ahead[-1])
            self.past.append(self.ahead.pop())
