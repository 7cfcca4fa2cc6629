"""Prices that ship: what parts of a class are assumed to cost, where nobody has seen one.

They make a first answer possible, say that they are assumed, and give way to any price of a
person's own. ``hardware_db/price/*.yaml``.
"""

from collections.abc import Mapping
from datetime import date
from functools import lru_cache
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from trainwright.catalog import PartKind
from trainwright.catalog.compiled import yaml_files
from trainwright.catalog.part_records import (
    BoardRecord,
    CaseRecord,
    CoolerRecord,
    CpuRecord,
    DriveRecord,
    MemoryRecord,
    PartRecord,
    PsuRecord,
)
from trainwright.catalog.records import GpuRecord
from trainwright.data import hardware_db
from trainwright.prices.observation import Amount, Currency

Part = GpuRecord | PartRecord
Per = Literal["piece", "gib", "tb", "msrp_usd"]
Wanted = str | int | float | bool | None | tuple[str | int | float, ...] | dict[str, float]
"""A value, one of several, or ``{min: , max: }``."""

_KINDS: tuple[tuple[type[GpuRecord] | type[PartRecord], PartKind], ...] = (
    (GpuRecord, "gpu"),
    (CpuRecord, "cpu"),
    (BoardRecord, "board"),
    (MemoryRecord, "memory"),
    (DriveRecord, "storage"),
    (PsuRecord, "psu"),
    (CaseRecord, "case"),
    (CoolerRecord, "cooler"),
)


def part_kind(part: Part) -> PartKind:
    """Return which kind of part a record is of."""
    return next(kind for made, kind in _KINDS if isinstance(part, made))


class AssumedPrice(BaseModel):
    """What parts of a class are assumed to cost: lowest, expected, highest."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    name: str
    """In words: ``DDR5 UDIMM, per GiB``."""
    part: PartKind
    ids: tuple[str, ...] = ()
    """Parts that it is of by name; such a price comes before a launch price."""
    where: dict[str, Wanted] = {}
    """Fields of the record that a part of the class has; a field of the record's connectors or
    the like is not asked for."""
    condition: Literal["new", "used"] = "new"
    per: Per = "piece"
    """What the amounts are for: a piece, a GiB or TB of it, or a dollar of its launch price."""
    usd: tuple[Amount, Amount, Amount] | None = None
    """Without sales tax."""
    krw: tuple[Amount, Amount, Amount] | None = None
    """With 10 % VAT."""
    least_usd: tuple[Amount, Amount, Amount] | None = None
    least_krw: tuple[Amount, Amount, Amount] | None = None
    """That even the smallest piece costs: a drive is more than its flash."""
    before_msrp: bool = False
    """Whether the class says more than a launch price does: where markets have moved since."""
    assumed: date
    """Day for which it was assumed."""
    basis: str
    """What it rests on."""

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        for three in (self.usd, self.krw, self.least_usd, self.least_krw):
            if three is not None and list(three) != sorted(three):
                raise ValueError("amounts are lowest, expected, highest")
        return self

    def amounts(self, currency: Currency) -> tuple[float, float, float] | None:
        """Return lowest, expected and highest amount in a currency."""
        return self.usd if currency == "USD" else self.krw

    def cost(self, part: Part, currency: Currency) -> tuple[float, float, float] | None:
        """Return what one part is assumed to cost; None where nothing says."""
        each, pieces = self.amounts(currency), self.pieces(part)
        if each is None or pieces is None:
            return None
        least = (self.least_usd if currency == "USD" else self.least_krw) or (0.0, 0.0, 0.0)
        low, expected, high = (max(a * pieces, b) for a, b in zip(each, least, strict=True))
        return low, expected, high

    def covers(self, part: Part, kind: PartKind) -> bool:
        """Return whether a part is of this class."""
        if kind != self.part or (self.ids and part.id not in self.ids):
            return False
        return all(_holds(getattr(part, key, None), wanted) for key, wanted in self.where.items())

    def pieces(self, part: Part) -> float | None:
        """Return how many of ``per`` a part has; None where its record does not say."""
        match self.per:
            case "gib":
                return part.gib if isinstance(part, MemoryRecord) else None
            case "tb":
                capacity = part.capacity_gb if isinstance(part, DriveRecord) else None
                return capacity / 1000 if capacity else None
            case "msrp_usd":
                launched = msrp(part)
                return launched[0] if launched else None
            case _:
                return 1.0


def _holds(value: object, wanted: Wanted) -> bool:
    if isinstance(wanted, dict):
        if not isinstance(value, int | float):
            return False
        return wanted.get("min", value) <= value <= wanted.get("max", value)
    if isinstance(wanted, tuple):
        if isinstance(value, tuple):
            return any(one in wanted for one in value)
        return value in wanted
    return value == wanted


def msrp(part: Part) -> tuple[float, str] | None:
    """Return the maker's launch price in USD and its source; None where nobody says."""
    if isinstance(part, GpuRecord):
        return (part.msrp_usd.value, part.msrp_usd.source) if part.msrp_usd else None
    if part.msrp_usd is None:
        return None
    return part.msrp_usd, part.provenance("msrp_usd").source


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    schema_: Annotated[Literal[1], Field(alias="schema")]
    defaults: dict[str, Any] = {}
    prices: tuple[dict[str, Any], ...]


@lru_cache(maxsize=1)
def assumed_prices() -> tuple[AssumedPrice, ...]:
    """Return the shipped prices, those of named parts first, then as the files list them."""
    from trainwright.catalog.yaml_file import read_yaml  # loads the YAML reader

    found: list[AssumedPrice] = []
    for path in yaml_files(hardware_db("price")):
        file = _File.model_validate(read_yaml(path))
        found += [AssumedPrice.model_validate(_filled(file.defaults, one)) for one in file.prices]
    return tuple(sorted(found, key=lambda one: not one.ids))


def _filled(defaults: Mapping[str, Any], entry: Mapping[str, Any]) -> dict[str, Any]:
    return {**defaults, **entry}
