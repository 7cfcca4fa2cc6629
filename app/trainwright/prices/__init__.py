"""What parts cost: observations with a date, how they age, and what a list costs by them."""

from trainwright.catalog import PartKind
from trainwright.prices import abroad, exchange, own_prices
from trainwright.prices.ageing import Freshness
from trainwright.prices.book import (
    PriceBook,
    Wish,
    freshness_of_own,
    has_expired,
    item_of,
    price_of,
    total_of,
)
from trainwright.prices.current import price_book
from trainwright.prices.observation import (
    Asked,
    Condition,
    Currency,
    Observation,
    PriceKind,
    Tax,
)
from trainwright.prices.price import Item, Price, Rate, Sum, Total, total
from trainwright.prices.shipped import AssumedPrice, part_kind

__all__ = [
    "Asked",
    "AssumedPrice",
    "Condition",
    "Currency",
    "Freshness",
    "Item",
    "Observation",
    "PartKind",
    "Price",
    "PriceBook",
    "PriceKind",
    "Rate",
    "Sum",
    "Tax",
    "Total",
    "Wish",
    "abroad",
    "exchange",
    "freshness_of_own",
    "has_expired",
    "item_of",
    "own_prices",
    "part_kind",
    "price_book",
    "price_of",
    "total",
    "total_of",
]
