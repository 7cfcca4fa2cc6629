"""What Danawa's pages give: tables of prices by day, and quotes that people copy.

A cell of a table is a price, ``0`` or ``가격비교예정`` (none yet), or options between ``|``:
capacity, price a GB and price between ``_``, in the one order or, in older rows, the other.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date

from trainwright.catalog import PartKind
from trainwright.messages import UserError
from trainwright.prices.imports.money import in_range, read_money
from trainwright.prices.imports.own_csv import read_date, read_quantity, records
from trainwright.prices.imports.rows import Read, Refused, Row, RowError, refused
from trainwright.prices.imports.words import distributor, told_condition
from trainwright.prices.observation import SECOND_HAND

_NONE = ("", "0", "0원")
_PENDING = ("가격비교예정", "가격비교 예정", "일시품절", "단종", "출시예정", "판매중지")
_PRICE = re.compile(r"[\d,]+\s*원?")
_EACH = re.compile(r"(\d[\d,]*)\s*원\s*/\s*+(\d*)\s*+(GB|TB)", re.IGNORECASE)
_CAPACITY = re.compile(r"(?<!\d)(\d+(?:\.\d+)?)\s*+(GB|TB)", re.IGNORECASE)
TOLERANCE = 0.02
"""How far price a GB times capacity may be from the price; the price a GB is rounded. Assumed."""

_CATEGORIES: dict[str, PartKind | None] = {
    "cpu": "cpu",
    "메인보드": "board",
    "메모리": "memory",
    "ram": "memory",
    "그래픽카드": "gpu",
    "vga": "gpu",
    "ssd": "storage",
    "hdd": "storage",
    "하드디스크": "storage",
    "케이스": "case",
    "파워": "psu",
    "파워서플라이": "psu",
    "쿨러": "cooler",
    "쿨러/튜닝": "cooler",
    "cpu쿨러": "cooler",
    **dict.fromkeys(
        ("모니터", "키보드", "마우스", "소프트웨어", "odd", "스피커", "사운드카드", "조립비", "os")
    ),
}
_HEADS: dict[str, str] = {
    **dict.fromkeys(("분류", "카테고리", "품목", "부품"), "category"),
    **dict.fromkeys(("상품명", "제품명", "부품명", "품명", "상품"), "name"),
    **dict.fromkeys(("수량", "개수"), "quantity"),
    **dict.fromkeys(("단가", "판매가", "가격", "최저가"), "price"),
    **dict.fromkeys(("합계", "금액", "합계금액", "총액", "소계"), "sum"),
    **dict.fromkeys(("판매처", "판매자", "쇼핑몰"), "seller"),
}
_TOTALS = re.compile(
    r"(?:(?:총|견적|결제|주문|상품|예상)\s*+)*(?:합\s?계|금액|총액|배송비|할인|총)\s*+(?:금액\s*+)?(?:[:\t\d₩]|$)"
)
_CART_PRICE = re.compile(r"(?:[₩￦]\s?\d[\d,]{3,11}|\d[\d,]{3,11}\s?원)$")
_CART_COUNT = re.compile(r"(\d{1,3})\s?개$")
_ENDS_IN_PRICE = re.compile(r"[₩￦]?\s*[\d,]{4,}\s*원?|[\d,.]+\s*만\s*+[\d,]*\s*+원")


def is_table(text: str) -> bool:
    """Return whether a text is a table of prices by day."""
    head = text.lstrip("\r\n").split("\n", 1)[0]
    return re.match(r'"?id"?\s*,\s*"?name"?\s*,', head, re.IGNORECASE) is not None


def is_quote(text: str) -> bool:
    """Return whether a text is a copied quote: lines with tabs, and a price in Korean style."""
    lines = text.split("\n")
    tabbed = [line for line in lines if "\t" in line]
    if not tabbed:
        return any(map(_of_cart, lines))
    return any(set(map(str.strip, line.split("\t"))) & set(_HEADS) for line in tabbed) or any(
        _ENDS_IN_PRICE.fullmatch(line.split("\t")[-1].strip()) for line in tabbed
    )


def read_table(text: str, name: str, today: date) -> Iterator[Read]:
    """Yield the newest price of each row and option of a table of prices by day.

    Raises:
        UserError: a column is not a day.
    """
    days: list[date] = []
    for line, cells in records(text, name):
        if isinstance(cells, Refused):
            yield cells
        elif not days:
            days = _days(cells[2:], name, today)
        else:
            yield from _row_of_days(cells, days, line)


def _days(heads: list[str], name: str, today: date) -> list[date]:
    try:
        days = [read_date(head, today) for head in heads if head.strip()]
    except RowError as error:
        reason = refused(1, "", error.id, **error.values).reason
        raise UserError.of("prices.not-a-day", file=name, reason=reason) from None
    if not days:
        raise UserError.of("prices.no-days", file=name)
    return days


def _row_of_days(cells: list[str], days: list[date], line: int) -> Iterator[Read]:
    name = cells[1].strip()[:300] if len(cells) > 1 else ""
    if not name:
        yield refused(line, ",".join(cells), "no-name")
        return
    if len(cells) > 2 + len(days) and any(map(str.strip, cells[2 + len(days) :])):
        yield refused(line, name, "too-many-cells", cells=len(cells), columns=2 + len(days))
        return
    dated = [(day, cell.strip()) for day, cell in zip(days, cells[2:], strict=False)]
    told = [(day, cell) for day, cell in dated if cell not in _NONE and cell not in _PENDING]
    if not told:
        yield refused(line, name, "no-price")
        return
    day, cell = max(told, key=lambda one: one[0])
    for number, option in enumerate(cell.split("|")):
        try:
            row = _option(name, option, day, line)
            yield row if number else replace(row, older=len(told) - 1)
        except RowError as error:
            yield error.at(line, f"{name}: {option}")


def _option(name: str, option: str, day: date, line: int) -> Row:
    amount, what = read_option(option)
    return _korean(f"{name} {what}".strip(), amount, day, line)


def read_option(option: str) -> tuple[float, str]:
    """Return price and name of one option of a cell, whichever comes first in it.

    Raises:
        RowError: no price, several, or one that its price a GB contradicts.
    """
    tokens = [token.strip() for token in option.split("_") if token.strip()]
    each = [found for token in tokens if (found := _EACH.fullmatch(token))]
    prices = [token for token in tokens if _PRICE.fullmatch(token)]
    names = [token for token in tokens if token not in prices and not _EACH.fullmatch(token)]
    if any(token in _PENDING for token in tokens) or prices == ["0"]:
        raise RowError("no-price")
    if len(prices) != 1 or len(each) > 1:
        raise RowError("odd-cell", text=option.strip()[:40])
    amount, what = read_money(prices[0])[0], " ".join(names)
    if each and not _agrees(amount, what, each[0]):
        raise RowError("contradiction", text=option.strip()[:40])
    return amount, what


def _agrees(amount: float, what: str, each: re.Match[str]) -> bool:
    """Return whether the price is what the price a GB and the capacity say."""
    capacity = _CAPACITY.search(what)
    if capacity is None:
        return True
    size = float(capacity[1]) * (1024 if capacity[2].upper() == "TB" else 1)
    unit = float(each[2] or 1) * (1024 if each[3].upper() == "TB" else 1)
    said = float(each[1].replace(",", "")) * size
    decimal = said * 1000 / 1024  # a TB is 1000 GB to some
    stated = amount * unit
    return any(abs(stated - one) <= TOLERANCE * stated for one in (said, decimal))


def _korean(
    name: str,
    amount: float,
    day: date,
    line: int,
    *,
    quantity: int = 1,
    part_kind: PartKind | None = None,
    quoted: bool = False,
    seller: str = "",
) -> Row:
    condition = told_condition(name)
    return Row(
        line=line,
        name=name[:300],
        amount=amount,
        currency="KRW",
        kind="used" if condition in SECOND_HAND else "quote" if quoted else "new",
        observed=day,
        quantity=quantity,
        part_kind=part_kind,
        condition=condition,
        region="KR",
        tax="included",
        seller=seller or distributor(name),
    )


def read_quote(text: str, today: date) -> Iterator[Read]:
    """Yield the rows of a copied quote: name, quantity and sum between tabs."""
    heads: list[str] = []
    for number, raw in enumerate(text.split("\n"), 1):
        cells = _of_cart(raw) or [cell.strip() for cell in raw.split("\t")]
        if not any(cells) or _TOTALS.match(raw.strip()):
            continue
        named = [_HEADS.get(cell.replace(" ", ""), "") for cell in cells]
        if "name" in named:
            heads = named
            continue
        try:
            yield _quoted(cells, heads, number, today)
        except RowError as error:
            yield error.at(number, raw)


def _of_cart(line: str) -> list[str]:
    """Return name, quantity and sum of a line as text: ``name / 2개 / 490,000원``."""
    plain = line.strip()
    price = None if "\t" in plain else _CART_PRICE.search(plain[-24:])
    if price is None:
        return []
    rest = plain.removesuffix(price[0]).rstrip(" /|,:-·x×")
    count = _CART_COUNT.search(rest[-8:])
    name = rest.removesuffix(count[0]).rstrip(" /|,:-·x×") if count else rest
    return [name.lstrip(" -·*•"), count[1] if count else "", price[0]]


def _quoted(cells: list[str], heads: list[str], line: int, today: date) -> Row:
    found = dict(zip(heads or _guessed(cells), cells, strict=False))
    name = found.get("name", "")
    if not name:
        raise RowError("no-name")
    quantity = read_quantity(found.get("quantity", ""))
    if found.get("price"):
        amount = read_money(found["price"])[0]
        summed = found.get("sum")
        if summed and abs(read_money(summed)[0] - amount * quantity) > TOLERANCE * amount:
            raise RowError("contradiction", text=f"{found['price']} × {quantity} ≠ {summed}")
    else:
        amount = read_money(found.get("sum", ""))[0] / quantity
    category = found.get("category", "").replace(" ", "").casefold()
    return _korean(
        name,
        in_range(amount),
        today,
        line,
        quantity=quantity,
        quoted=True,
        part_kind=_CATEGORIES.get(category),
        seller=found.get("seller", ""),
    )


def _guessed(cells: list[str]) -> list[str]:
    """Return what the columns of a quote without headings are."""
    if cells[0].replace(" ", "").casefold() in _CATEGORIES:
        return ["category", *_guessed(cells[1:])]
    match len(cells):
        case 1:
            raise RowError("not-a-part")
        case 2:
            return ["name", "sum"]
        case 3:
            return ["name", "quantity", "sum"]
        case _:
            return ["name", "quantity", "price", "sum"]
