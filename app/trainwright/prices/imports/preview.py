"""What would be kept of a list: every row with its state, before anything is kept."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from trainwright.prices.imports.matching import Matcher, Verdict, matcher
from trainwright.prices.imports.reading import Listing
from trainwright.prices.imports.rows import Read, Refused, Row
from trainwright.prices.observation import Observation
from trainwright.prices.shipped import Part, part_kind

State = Literal["matched", "ambiguous", "unmatched", "refused"]
_NOTHING = Verdict()


@dataclass(frozen=True, slots=True)
class Previewed:
    """A row of a list, and what it means."""

    read: Read
    verdict: Verdict = _NOTHING
    left_out: bool = False
    """Whether a person said that it is not to be kept."""

    @property
    def line(self) -> int:
        """In the list."""
        return self.read.line

    @property
    def state(self) -> State:
        """How the row ended."""
        if isinstance(self.read, Refused):
            return "refused"
        if self.verdict.part is not None:
            return "matched"
        return "ambiguous" if self.verdict.candidates else "unmatched"

    def observation(self, source: str) -> Observation | None:
        """Return the price that would be kept; None where no part is meant."""
        row, part = self.read, self.verdict.part
        if isinstance(row, Refused) or part is None:
            return None
        return Observation(
            part_kind=part_kind(part),
            part=part.id,
            amount=row.amount,
            currency=row.currency,
            kind=row.kind,
            observed=row.observed,
            condition=row.condition,
            region=row.region,
            tax=row.tax,
            shipping=row.shipping,
            seller=row.seller,
            valid_until=row.valid_until,
            url=row.url,
            source=f"{row.origin or source}:{row.line}",
            name=row.name,
        )


@dataclass(frozen=True, slots=True)
class Preview:
    """A list with what each of its rows means."""

    name: str
    rows: tuple[Previewed, ...]

    @property
    def counts(self) -> dict[State, int]:
        """Rows by state; every row of the list is in one."""
        found = Counter(row.state for row in self.rows)
        states: tuple[State, ...] = ("matched", "ambiguous", "unmatched", "refused")
        return {state: found[state] for state in states}

    @property
    def older(self) -> int:
        """Prices of earlier days that the list holds beside them, and that are passed over."""
        return sum(row.read.older for row in self.rows if isinstance(row.read, Row))

    def observations(self) -> tuple[Observation, ...]:
        """Return the prices that would be kept."""
        made = (row.observation(self.name) for row in self.rows)
        return tuple(one for one in made if one is not None)

    def matched(self) -> tuple[Row, ...]:
        """Return the rows whose part is known."""
        rows = (row.read for row in self.rows if row.state == "matched")
        return tuple(row for row in rows if isinstance(row, Row))

    def unplaced(self) -> tuple[Row, ...]:
        """Return the prices for which no part is known, and that nobody left out."""
        rows = (row.read for row in self.rows if row.state != "matched" and not row.left_out)
        return tuple(
            replace(row, origin=row.origin or self.name) for row in rows if isinstance(row, Row)
        )

    def chosen(self, choices: Mapping[int, Part | None], *, waits: bool = False) -> "Preview":
        """Return the preview with a person's choice for some rows, by index.

        None leaves a row out, or lets it wait.
        """
        rows = list(self.rows)
        for index, part in choices.items():
            before = rows[index].verdict
            known = (before.part, *before.candidates) if before.part else before.candidates
            others = tuple(one for one in known if one is not part)
            verdict = Verdict(part, "exact" if part else None, others)
            rows[index] = replace(rows[index], verdict=verdict, left_out=part is None and not waits)
        return replace(self, rows=tuple(rows))


def preview(listing: Listing, known: Matcher | None = None) -> Preview:
    """Return what each row of a list means in the catalog."""
    known = known or matcher()
    return Preview(listing.name, tuple(_previewed(row, known) for row in listing.rows))


def preview_rows(rows: Iterable[Row], name: str, known: Matcher | None = None) -> Preview:
    """Return what rows that waited mean in the catalog now."""
    known = known or matcher()
    return Preview(name, tuple(_previewed(row, known) for row in rows))


def _previewed(read: Read, known: Matcher) -> Previewed:
    if isinstance(read, Row):
        return Previewed(read, known.match(read.name, read.part_kind))
    return Previewed(read)
