"""What can be bought: records with what they cost, and what is there already."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Generic, Self, TypeVar

from trainwright.build.request import Request, Wishes
from trainwright.catalog import (
    BoardRecord,
    CpuRecord,
    GpuRecord,
    PartKind,
    PartRecord,
    list_parts,
)
from trainwright.messages import Message
from trainwright.prices import Currency, Item, Price, PriceBook, Total, price_book, price_of, total

R = TypeVar("R", bound=GpuRecord | PartRecord)
Record = GpuRecord | PartRecord

SOLD_YEARS = 4
"""After its launch a card is taken to be gone from shops, unless somebody saw a price of it;
assumed: generations follow one another every two years and the last one sells off."""
GONE = {
    **dict.fromkeys(
        ("Maxwell", "Pascal", "Volta", "Turing", "Ampere", "GCN 5.1", "RDNA 2"), date(2024, 1, 1)
    ),
    "Xe": date(2026, 1, 1),
    "Ada": date(2026, 2, 1),
    "RDNA 3": date(2026, 3, 1),
    **dict.fromkeys(("Zen", "Zen+", "Zen 2", "Skylake", "Cypress Cove"), date(2024, 1, 1)),
    **dict.fromkeys(("TR4", "sTRX4", "LGA1151", "LGA1200"), date(2024, 1, 1)),
}
"""Since when nobody sells cards and processors of an architecture, or boards of a socket, new, but
what is left over at any price. Assumed: of cards a year after the first one of the next
architecture, whose makers had ended the older by then; of the rest two years."""
STILL_MADE = frozenset(("rtx-3060-12gb", "rtx-3050-6gb"))
"""Of those, what shops list new in 2026 (press)."""
SEGMENTS = ("consumer", "workstation")
"""That shops sell; cards for servers have neither fans nor a price list."""


@dataclass(frozen=True, slots=True)
class Offer(Generic[R]):
    """A part with its price."""

    record: R
    price: Price | None
    """Of one piece; None: nobody knows one."""
    owned: int = 0
    """Pieces that are there already."""

    @property
    def anew(self) -> Self:
        """The same where pieces come on top of those that are there."""
        return replace(self, owned=0)

    def cost(self, count: int) -> float | None:
        """Return the expected price of those of so many pieces that must be bought."""
        bought = max(count - self.owned, 0)
        if not bought:
            return 0.0
        return None if self.price is None else self.price.expected * bought


class Market:
    """The catalog with the prices of a day; each part is priced once."""

    def __init__(
        self,
        book: PriceBook,
        currency: Currency,
        wishes: Wishes,
        shelves: Mapping[PartKind, Sequence[Record]] | None = None,
    ) -> None:
        """Take the whole catalog, or only what is on ``shelves``."""
        self.currency: Currency = currency
        self.notes: tuple[Message, ...] = book.notes
        self._book = book
        self._wishes = wishes
        self._shelves = shelves
        self._owned = {(one.kind, one.id): one.count for one in wishes.owned}
        self._offers: dict[tuple[PartKind, str], Offer[Record]] = {}
        self.unrated: set[str] = set()
        """Cards on sale whose record has no FLOP/s: nobody can say how fast they are."""

    @classmethod
    def of(cls, request: Request) -> Self:
        """Return the market of a request: the catalog, and the prices that a person keeps."""
        book = price_book(request.today, accept_expired=request.wishes.expired)
        currency: Currency = request.budget.currency if request.budget else "USD"
        return cls(book, currency, request.wishes)

    def wishing(self, wishes: Wishes) -> "Market":
        """Return the same market for somebody with other wishes."""
        return Market(self._book, self.currency, wishes, self._shelves)

    def records(self, kind: PartKind) -> Sequence[Record]:
        """Return all parts of a kind that the wishes leave."""
        found = list_parts(kind) if self._shelves is None else self._shelves.get(kind, ())
        only = {one.id for one in self._wishes.only if one.kind == kind}
        without = self._wishes.without
        if not only and not without:
            return found
        return [one for one in found if (one.id in only or not only) and not _left(one, without)]

    def offer(self, kind: PartKind, record: R) -> Offer[R]:
        """Return what a part costs: new, or used where that is wished and cheaper."""
        key = (kind, record.id)
        if key not in self._offers:
            self._offers[key] = Offer(record, self._price(record), self._owned.get(key, 0))
        return self._offers[key]  # type: ignore[return-value]

    def offers(self, kind: PartKind) -> Iterator[Offer[Record]]:
        """Yield all parts of a kind with their prices."""
        for record in self.records(kind):
            yield self.offer(kind, record)

    def cards(self) -> Iterator[GpuRecord]:
        """Yield graphics cards that are sold, or there already, and can be timed."""
        for record in self.records("gpu"):
            if not isinstance(record, GpuRecord):
                continue
            if self.offer("gpu", record).owned or self._sold(record):
                if record.flops:
                    yield record
                else:
                    self.unrated.add(record.id)

    def _sold(self, record: GpuRecord) -> bool:
        if record.segment not in SEGMENTS or record.form not in (None, "card"):
            return False
        price = self.offer("gpu", record).price
        if price is None and self.gone(record):
            return False
        if self._wishes.quiet and record.cooling in ("blower", "passive"):
            return False
        if price is None or price.kind != "msrp" or record.launch is None:
            return True
        return _years(record.launch, self._book.today) <= SOLD_YEARS

    def gone(self, record: Record) -> bool:
        """Return whether no shop sells a card, processor or board new."""
        match record:
            case GpuRecord() | CpuRecord():
                generation = record.architecture
            case BoardRecord():
                generation = record.socket
            case _:
                return False
        since = GONE.get(generation, date.max)
        return record.id not in STILL_MADE and self._book.today >= since

    def used(self, record: Record) -> Price | None:
        """Return what a used part changes hands for; None where nobody knows."""
        return price_of(record, self._book, self.currency, used=True)

    def _price(self, record: Record) -> Price | None:
        conditions = (False, True) if self._wishes.used else (False,)
        found = [
            price
            for used in conditions
            if (price := price_of(record, self._book, self.currency, used=used)) is not None
            # A price that the person saw shows that it is sold.
            and (used or price.kind not in ("assumed", "msrp") or not self.gone(record))
        ]
        return min(found, key=lambda price: price.expected, default=None)


def _left(record: Record, without: frozenset[str]) -> bool:
    """Return whether a part, or all GPUs of its maker, are left out."""
    return record.id in without or (isinstance(record, GpuRecord) and record.vendor in without)


def _years(launch: str, today: date) -> float:
    year, month = (*map(int, launch.split("-")), 1)[:2]
    return today.year - year + (today.month - month) / 12


def summed(parts: Sequence[tuple[Offer[Record], int]], currency: Currency) -> Total:
    """Return what parts cost together; what is there already costs nothing."""
    return total(
        (
            Item(offer.record.id, count - offer.owned, offer.price)
            for offer, count in parts
            if count > offer.owned
        ),
        currency,
    )
