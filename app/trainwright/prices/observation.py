"""What somebody saw a part cost: one amount, with everything that it holds for."""

from dataclasses import dataclass, field
from datetime import date
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, StringConstraints, with_config

from trainwright.catalog import PartKind

Currency = Literal["USD", "KRW"]
"""We count in, by ISO 4217; the won has no decimals."""
Asked = Literal["USD", "KRW", "EUR", "GBP", "JPY"]
"""Shops ask in; what is neither dollars nor won is converted (``abroad``)."""
PriceKind = Literal["new", "used", "msrp", "quote", "user", "assumed"]
"""``new`` and ``used``: a shop asks it; ``quote``: an offer made to you; ``user``: what you paid or
think; ``msrp``: the maker's at launch; ``assumed``: nobody offered it."""
Condition = Literal["new", "used", "refurbished", "overseas", "bulk"]
"""``overseas`` comes from a shop abroad, ``bulk`` without a box: both new, with less warranty."""
Tax = Literal["included", "excluded", "unknown"]

SECOND_HAND: frozenset[Condition] = frozenset(("used", "refurbished"))
MOST = 1e10
"""Largest amount taken, in either currency; assumed, a rack of GPUs costs a tenth of it in won."""

Amount = Annotated[float, Field(gt=0, le=MOST, allow_inf_nan=False)]
Text = Annotated[str, StringConstraints(max_length=500)]


@with_config(ConfigDict(extra="forbid"))
@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One price of one part, for one piece."""

    part_kind: PartKind
    part: Annotated[str, StringConstraints(min_length=1, max_length=120)]
    """Id in the catalog."""
    amount: Amount
    currency: Asked
    kind: PriceKind
    observed: date
    condition: Condition = "new"
    region: Annotated[str, StringConstraints(pattern=r"^([A-Z]{2})?$")] = ""
    """Country of the shop, ISO 3166; empty: unknown."""
    tax: Tax = "unknown"
    """Lists in the US leave sales tax out; Korean ones include 10 % VAT."""
    shipping: Annotated[float, Field(ge=0, le=MOST, allow_inf_nan=False)] | None = None
    """On top, in the same currency; None: unknown."""
    seller: Text = ""
    valid_until: date | None = None
    """Last day of an offer."""
    url: Text = ""
    source: Text = ""
    """Where it was read: a file with its line, a pasted list, by hand."""
    name: Text = field(default="", compare=False)
    """What the source calls the part."""

    @property
    def second_hand(self) -> bool:
        """Whether somebody used it before."""
        return self.kind == "used" or self.condition in SECOND_HAND
