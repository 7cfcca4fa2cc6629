"""Amounts as people, shops and spreadsheets write them, in dollars and won."""

import re
from functools import lru_cache

from trainwright.prices.imports.rows import RowError
from trainwright.prices.observation import MOST, Currency

_MARKS: dict[str, Currency] = {
    "$": "USD",
    "＄": "USD",
    "us$": "USD",
    "usd": "USD",
    "달러": "USD",
    "불": "USD",
    "₩": "KRW",
    "￦": "KRW",
    "원": "KRW",
    "krw": "KRW",
    "won": "KRW",
    "\\": "KRW",  # cp949's backslash is drawn as a won sign
}
_FOREIGN = re.compile(
    r"[£€¥₹₽฿₫]|円|元|엔|\b(?:eur|gbp|jpy|cny|cad|aud|nzd|sgd|twd|hkd|inr|mxn|chf|sek|pln)\b"
    r"|(?<![a-z])(?:ca|au|nz|sg|nt|hk|mx|c|a)\$"
)
_TEN_THOUSANDS = re.compile(r"([\d.,]+)\s*만\s*(?:([\d,]+)\s*)?")
_MARK = re.compile(
    r"us\$|usd|krw|won|[$＄₩￦\\]|달러|불|원",
)
_NUMBER = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+")


@lru_cache(maxsize=4096)
def read_money(text: str) -> tuple[float, Currency | None]:
    """Return an amount, and its currency where the text names one.

    ``$1,299.99``, ``₩1,488,990``, ``148만 8,990원``, ``1.5만원`` and ``1488990`` are amounts.

    Raises:
        RowError: no amount, one in a currency that we do not know, or one that no part costs.
    """
    plain = text.strip().strip("\"'").strip().casefold().replace("\u00a0", " ")
    if not plain or plain in ("-", "–", "—", "n/a"):
        raise RowError("no-price")
    foreign = _FOREIGN.search(plain)
    if foreign:
        raise RowError("unknown-currency", currency=foreign[0].upper())
    marks = {_MARKS[mark] for mark in _MARK.findall(plain)}
    if len(marks) > 1:
        raise RowError("two-currencies", text=text.strip()[:40])
    number = _MARK.sub("", plain).strip()
    if number.startswith(("-", "−", "(")):
        raise RowError("negative", text=text.strip()[:40])
    return in_range(_number(number.lstrip("+~ "), text)), marks.pop() if marks else None


def _number(number: str, text: str) -> float:
    units = _TEN_THOUSANDS.fullmatch(number)
    if units:
        rest = float(units[2].replace(",", "")) if units[2] else 0.0
        return float(units[1].replace(",", "")) * 10_000 + rest
    if not _NUMBER.fullmatch(number):
        raise RowError("not-an-amount", text=text.strip()[:40])
    return float(number.replace(",", ""))


def in_range(amount: float) -> float:
    """Return an amount that a part may cost.

    Raises:
        RowError: nothing, or more than any.
    """
    if amount == 0:
        raise RowError("no-price")
    if not 0 < amount <= MOST:
        raise RowError("too-much", limit=MOST)
    return amount


def read_currency(text: str) -> Currency | None:
    """Return the currency of a column; None where it is empty.

    Raises:
        RowError: one that we do not know.
    """
    plain = text.strip().casefold()
    if not plain:
        return None
    if plain not in _MARKS:
        raise RowError("unknown-currency", currency=text.strip()[:12])
    return _MARKS[plain]
