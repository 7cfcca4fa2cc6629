"""Single values that a person types, in the forms that lists may use."""

from datetime import date
from typing import Any

from pydantic import TypeAdapter, ValidationError

from trainwright.messages import UserError
from trainwright.prices.imports.money import read_money
from trainwright.prices.imports.own_csv import read_day
from trainwright.prices.imports.rows import RowError
from trainwright.prices.observation import Asked, Observation
from trainwright.quoting import dotted

_OBSERVATION = TypeAdapter(Observation)


def money(text: str) -> tuple[float, Asked | None]:
    """Return an amount, and its currency where the text names one.

    Raises:
        UserError: no amount.
    """
    try:
        return read_money(text)
    except RowError as error:
        raise UserError(error.at(0, text).reason) from None


def day(text: str, *, before: date | None = None) -> date | None:
    """Return a day, at the latest ``before``; None where the text is empty.

    Raises:
        UserError: no day, one before 2000, or one that is still to come.
    """
    try:
        found = read_day(text)
        if found and before and found > before:
            raise RowError("future", date=found.isoformat())
    except RowError as error:
        raise UserError(error.at(0, text).reason) from None
    return found


def observation(**given: Any) -> Observation:
    """Return an observation of typed values.

    Raises:
        UserError: one of them cannot be.
    """
    try:
        return _OBSERVATION.validate_python(given)
    except ValidationError as error:
        first = error.errors()[0]
        key = dotted(first["loc"])
        raise UserError.of("prices.bad-value", key=key, given=str(first["input"])[:40]) from None
