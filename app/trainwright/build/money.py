"""Amounts of money as people write them: 3000USD, $2,500, 3000000KRW, 300만원."""

import re
from dataclasses import dataclass

from trainwright.messages import Message, UserError
from trainwright.prices import Currency

MOST = 1e10
"""Largest budget in either currency; assumed, a rack of GPUs costs a tenth of it in won."""

_SIGNS: dict[str, Currency] = {
    **dict.fromkeys(("usd", "$", "us$", "달러", "불", "dollar", "dollars"), "USD"),
    **dict.fromkeys(("krw", "₩", "￦", "원", "won"), "KRW"),
}
_SCALES = {"": 1.0, "k": 1e3, "천": 1e3, "만": 1e4, "백만": 1e6, "천만": 1e7, "m": 1e6, "억": 1e8}
_NUMBER = re.compile(
    r"(?P<minus>[-−]?) ?(?P<digits>\d[\d, _\u202f']*(?:\.\d+)?(?:e\+?\d+)?)\s*"
    r"(?P<scale>천만|백만|천|만|억|[km](?![a-z]))?"
)


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in one currency."""

    amount: float
    currency: Currency

    def __str__(self) -> str:
        digits = 0 if self.currency == "KRW" or float(self.amount).is_integer() else 2
        return f"{self.amount:.{digits}f} {self.currency}"


def amount(currency: Currency, value: float, digits: int | None = None) -> Message:
    """Return a sum of money as a sentence holds it, rounded to so many digits."""
    return Message.of(f"planner.amount.{currency.lower()}", amount=round(value, digits))


def money(text: str) -> Money:
    """Return the amount that a text means; the currency must be said.

    Raises:
        UserError: it is not an amount, its currency is unknown, it is not above 0, or larger than
            any computer costs.
    """
    plain = " ".join(text[:80].split()).casefold()
    found = _NUMBER.search(plain)
    if found is None:
        raise UserError.of("planner.budget-no-number", text=text[:40])
    number = float(re.sub(r"[, _\u202f']", "", found["digits"]))
    worth = number * _SCALES[found["scale"] or ""]
    if found["minus"] or worth <= 0:
        raise UserError.of("planner.budget-not-positive", text=text[:40])
    if worth > MOST:
        raise UserError.of("planner.budget-too-large", text=text[:40], most=MOST)
    sign = (plain[: found.start()] + plain[found.end() :]).strip(" .")
    if not sign:
        raise UserError.of("planner.budget-no-currency", text=text[:40])
    if sign not in _SIGNS:
        raise UserError.of("planner.budget-unknown-currency", text=text[:40], currency=sign[:20])
    return Money(worth, _SIGNS[sign])
