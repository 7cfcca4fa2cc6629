"""What is on sale, sorted by price."""

from typing import TypeVar

from trainwright.build.offers import Market
from trainwright.catalog import PartKind
from trainwright.catalog.part_records import PartRecord

P = TypeVar("P", bound=PartRecord)


class Shelves:
    """Parts with what they cost; each kind is priced once."""

    def __init__(self, market: Market) -> None:
        self._market = market
        self._cost: dict[tuple[PartKind, str], float] = {}

    def cost(self, kind: PartKind, record: PartRecord) -> float:
        """Return what one piece of a part on these shelves costs."""
        return self._cost[kind, record.id]

    def sorted(self, kind: PartKind, made: type[P]) -> list[P]:
        """Return a kind's parts, cheapest first: those with a price, where any has one."""
        offers = [offer for offer in self._market.offers(kind) if isinstance(offer.record, made)]
        priced = [offer for offer in offers if offer.cost(1) is not None]
        found: list[tuple[float, P]] = []
        for offer in priced or offers:
            cost = offer.cost(1) or 0.0
            self._cost[kind, offer.record.id] = cost
            found.append((cost, offer.record))  # type: ignore[arg-type]
        # Of equally cheap ones that of which most is known comes first: it can be checked.
        found.sort(key=lambda one: (one[0], _unsaid(one[1]), one[1].id))
        return [record for _, record in found]

    def several(self, kind: PartKind, record: PartRecord, count: int) -> float:
        """Return what several pieces cost; those that are there already cost nothing."""
        return self._market.offer(kind, record).cost(count) or 0.0

    def owned(self, kind: PartKind, record: PartRecord) -> int:
        """Return how many pieces are there already."""
        return self._market.offer(kind, record).owned


def _unsaid(record: PartRecord) -> int:
    """Return how many fields nobody filled."""
    return sum(value is None for _, value in record)
