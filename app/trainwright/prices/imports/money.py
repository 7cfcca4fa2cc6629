"""Amounts as people, shops and spreadsheets of several countries write them."""

import re
from functools import lru_cache

from trainwright.prices.imports.rows import RowError
from trainwright.prices.observation import MOST, Asked

_MARKS: dict[str, Asked] = {
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
    "€": "EUR",
    "eur": "EUR",
    "유로": "EUR",
    "£": "GBP",
    "gbp": "GBP",
    "파운드": "GBP",
    "¥": "JPY",
    "円": "JPY",
    "jpy": "JPY",
    "엔": "JPY",
    "\\": "KRW",  # cp949's backslash is drawn as a won sign
}
_FOREIGN = re.compile(
    r"[₹₽฿₫₺]|元|(?:cn|rmb)\s*¥|(?<![a-z])(?:cny|rmb|cad|aud|nzd|sgd|twd|hkd|inr|mxn|chf|sek|nok|dkk"
    r"|pln|czk|brl|try)(?![a-z])|\bzł|(?<![a-z])(?:ca|au|nz|sg|nt|hk|mx|c|a|r)\$"
)
_TEN_THOUSANDS = re.compile(r"([\d.,]+)\s*만\s*(?:([\d,]+)\s*)?")
_MARK = re.compile("|".join(map(re.escape, sorted(_MARKS, key=len, reverse=True))))
_NUMBER = re.compile(r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+")
_COMMA_DECIMAL = re.compile(r"(?:\d{1,3}(?:\.\d{3})+|\d+),(?:\d{1,2}|-{1,2}|–)")
"""``1.299,99`` and ``1299,-``."""
_DOTTED = re.compile(r"\d{1,3}(?:\.\d{3})+")
"""``1.299``: in euros and won no price has three decimals."""
_GROUPED = re.compile(r"(?<=\d)[ \u202f'’](?=\d{3}(?!\d))")
"""Thousands apart, as in France (``1 299,99``) and Switzerland."""


@lru_cache(maxsize=4096)
def read_money(text: str, usual: Asked | None = None) -> tuple[float, Asked | None]:
    """Return an amount, and its currency where the text names one.

    ``$1,299.99``, ``1.299,99 €``, ``148만 8,990원``, ``1.5만원`` and ``1488990`` are amounts.

    Args:
        text: as it stands in a list.
        usual: the currency of its column, which says what a dot is.

    Raises:
        RowError: no amount, one in a currency that we do not know, or one that no part costs.
    """
    plain = text.strip().strip("\"'").strip().casefold().replace("\u00a0", " ").replace("￥", "¥")
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
    currency = marks.pop() if marks else None
    dotted = (currency or usual) in ("EUR", "KRW")
    return in_range(_number(number.lstrip("+~ "), text, dotted=dotted)), currency


def _number(number: str, text: str, *, dotted: bool) -> float:
    units = _TEN_THOUSANDS.fullmatch(number)
    if units and _NUMBER.fullmatch(units[1]) and (units[2] is None or units[2].strip(",")):
        rest = float(units[2].replace(",", "")) if units[2] else 0.0
        return float(units[1].replace(",", "")) * 10_000 + rest
    number = _GROUPED.sub("", number)
    if _COMMA_DECIMAL.fullmatch(number):
        number = number.rstrip("-–").replace(".", "").replace(",", ".")
    elif dotted and _DOTTED.fullmatch(number):
        number = number.replace(".", "")
    number = number.rstrip(".")
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


def read_currency(text: str) -> Asked | None:
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
