"""Parts of one kind as a table: filtered by any field and by words, sorted by any field.

Columns, their order and the searched text are made once, so that a question to ten thousand
rows costs a few milliseconds.
"""

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from trainwright.catalog.cells import Part, Plain, values
from trainwright.catalog.names import name_key
from trainwright.messages import UserError

_FILTER = re.compile(r"([\w.]+)\s*(>=|<=|!=|=|>|<|~)\s*(.*)", re.DOTALL)
_SAID = ("architecture", "socket", "chip", "chipset", "interface")
"""Fields that words are looked for in, beside names."""
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


@dataclass(frozen=True, slots=True)
class Filter:
    """What a part's field has to be: ``watts >= 850``."""

    field: str
    sign: str
    """``=``, ``!=``, ``>``, ``>=``, ``<``, ``<=``, or ``~``: contains."""
    value: str


@dataclass(frozen=True, slots=True)
class Found:
    """Parts that a question found."""

    parts: tuple[Part, ...]
    unknown: int
    """Parts that were left out because they do not say what was asked for."""


@dataclass(frozen=True, slots=True)
class Table:
    """Parts of one kind."""

    parts: tuple[Part, ...]
    columns: dict[str, list[Plain | None]]
    """Every field that some part has, as first met: its value in each part."""
    _texts: list[str]
    _orders: dict[str, tuple[list[int], list[int]]] = field(default_factory=dict)
    """By field: rows that have it, in its order, and rows that have not."""

    def find(
        self,
        words: str = "",
        filters: Iterable[Filter] = (),
        sort: str = "",
        *,
        descending: bool = False,
    ) -> Found:
        """Return the parts that hold every word and pass every filter, sorted.

        Parts without the field that is sorted by come last. Without ``sort`` the order of
        the catalog stays.

        Raises:
            UserError: ``catalog.unknown-field`` with the nearest, or ``catalog.filter-number``.
        """
        rows: Iterable[int] = self._sorted(sort, descending) if sort else range(len(self.parts))
        for word in filter(None, map(_searched, words.split())):
            rows = [row for row in rows if word in self._texts[row]]
        unknown = 0
        for each in filters:
            rows, left_out = self._filtered(list(rows), each)
            unknown += left_out
        return Found(tuple(self.parts[row] for row in rows), unknown)

    def _filtered(self, rows: list[int], asked: Filter) -> tuple[list[int], int]:
        column = self._column(asked.field)
        passes = _test(asked)
        known = [(row, value) for row in rows if (value := column[row]) is not None]
        return [row for row, value in known if passes(value)], len(rows) - len(known)

    def _sorted(self, field: str, descending: bool) -> list[int]:
        if field not in self._orders:
            column = self._column(field)
            known = [row for row, value in enumerate(column) if value is not None]
            known.sort(key=lambda row: _sortable(column[row]))
            unknown = [row for row, value in enumerate(column) if value is None]
            self._orders[field] = known, unknown
        known, unknown = self._orders[field]
        return [*(reversed(known) if descending else known), *unknown]

    def _column(self, field: str) -> list[Plain | None]:
        if field not in self.columns:
            known = list(self.columns)
            near = get_close_matches(field, known, n=3, cutoff=0.5) or sorted(known)
            raise UserError.of("catalog.unknown-field", field=field[:60], known=near)
        return self.columns[field]


def table(parts: Iterable[Part]) -> Table:
    """Return a table of parts of one kind."""
    parts = tuple(parts)
    columns: dict[str, list[Plain | None]] = {
        "name": [part.name for part in parts],
        "id": [part.id for part in parts],
    }
    for row, part in enumerate(parts):
        for name, value in values(part):
            columns.setdefault(name, [None] * len(parts))[row] = value
    return Table(parts, columns, [_text(part) for part in parts])


def parsed(text: str) -> Filter:
    """Return a filter as people type it: ``watts>=850``, ``vendor=Corsair``, ``boards~eeb``.

    Raises:
        UserError: ``catalog.bad-filter``.
    """
    if (found := _FILTER.fullmatch(text.strip())) is None or not found[3]:
        raise UserError.of("catalog.bad-filter", text=text[:60])
    return Filter(found[1], found[2], found[3])


def _text(part: Part) -> str:
    """Return what words are looked for in, a line for each name so that none spans two."""
    shared = getattr(part, "shared_names", ())
    names = (part.name, part.id, part.vendor or "", *part.aliases, *shared)
    more = (getattr(part, key, None) for key in _SAID)
    return "\n".join(_searched(each) for each in (*names, *filter(None, more)))


def _searched(text: str) -> str:
    return name_key(text) or text.casefold()


def _test(asked: Filter) -> Callable[[Plain], bool]:
    """Return what tells whether a value passes."""
    wanted = asked.value.casefold()
    match asked.sign:
        case "~":
            return lambda value: any(wanted in each.casefold() for each in _texts(value))
        case "=":
            return lambda value: any(_equal(each, wanted) for each in _each(value))
        case "!=":
            return lambda value: not any(_equal(each, wanted) for each in _each(value))
        case _:
            on_side = _on_side(asked)
            return lambda value: any(map(on_side, _each(value)))


def _on_side(asked: Filter) -> Callable[[str | float], bool]:
    """Return what tells whether a number, or a text such as a date, passes a limit."""
    compare, text = _COMPARE[asked.sign], asked.value.casefold()
    limit = _number(asked.value)

    def passes(value: str | float) -> bool:
        if isinstance(value, str):
            return compare(value.casefold(), text)
        if limit is None:
            values = {"field": asked.field, "sign": asked.sign, "value": asked.value[:40]}
            raise UserError.of("catalog.filter-number", **values)
        return compare(value, limit)

    return passes


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _each(value: Plain) -> tuple[str | float, ...]:
    return value if isinstance(value, tuple) else (value,)


def _texts(value: Plain) -> Iterable[str]:
    return (f"{each:g}" if isinstance(each, float) else str(each) for each in _each(value))


def _equal(value: str | float, wanted: str) -> bool:
    if isinstance(value, bool):
        return _WORDS.get(wanted) is value
    if isinstance(value, str):
        return value.casefold() == wanted
    return value == _number(wanted)


def _sortable(value: Plain | None) -> tuple[int, float, str]:
    """Return a key that numbers, texts and lists of a column can be compared by."""
    if isinstance(value, tuple):
        return 2, len(value), str(value)
    if isinstance(value, str):
        return 1, 0, value.casefold()
    return 0, float(value or 0), ""
