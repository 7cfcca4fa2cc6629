"""Our own CSV, and those of shops: a row a price, columns in any order.

``part_or_name,qty,unit_price,currency,condition,region,seller,url,date,tax_included``, of which the
name and the price are needed; ``kind``, ``shipping`` and ``valid_until`` may stand too. Columns of
other names are left alone, but for slips of ours.
"""

import csv
import difflib
import io
import re
from collections.abc import Iterator
from contextlib import suppress
from datetime import date
from functools import lru_cache
from typing import get_args

from trainwright.messages import UserError
from trainwright.prices.imports.money import in_range, read_currency, read_money
from trainwright.prices.imports.rows import Read, Refused, Row, RowError, refused
from trainwright.prices.imports.words import read_condition, told_condition
from trainwright.prices.observation import SECOND_HAND, Asked, PriceKind, Tax
from trainwright.quoting import cell_text, one_line

NEEDED = ("part_or_name", "unit_price")
COLUMNS = (
    "part_or_name",
    "qty",
    "unit_price",
    "currency",
    "condition",
    "region",
    "seller",
    "url",
    "date",
    "tax_included",
    "kind",
    "shipping",
    "valid_until",
)
_SAME = {
    "part": "part_or_name",
    "name": "part_or_name",
    "price": "unit_price",
    "quantity": "qty",
    "source": "seller",
    # What shops and people in Germany, France, Korea and Japan call them.
    **dict.fromkeys(
        ("artikel", "bezeichnung", "produkt", "produit", "désignation"), "part_or_name"
    ),
    **dict.fromkeys(("상품명", "제품명", "부품명", "품명", "제목"), "part_or_name"),
    **dict.fromkeys(("item", "item name", "product", "product name", "title"), "part_or_name"),
    **dict.fromkeys(("description", "商品名", "製品名", "品名"), "part_or_name"),
    **dict.fromkeys(("preis", "einzelpreis", "stückpreis", "prix", "unit price"), "unit_price"),
    **dict.fromkeys(("unit", "unit cost", "price each", "sold price"), "unit_price"),
    **dict.fromkeys(("가격", "단가", "판매가", "판매가격", "価格", "単価"), "unit_price"),
    **dict.fromkeys(("währung", "devise", "통화", "通貨"), "currency"),
    **dict.fromkeys(("menge", "anzahl", "quantité", "수량", "数量"), "qty"),
    **dict.fromkeys(("datum", "날짜", "日付"), "date"),
    **dict.fromkeys(("händler", "shop", "vendeur", "marchand", "판매처", "店舗"), "seller"),
    **dict.fromkeys(("zustand", "état", "상태", "状態"), "condition"),
    **dict.fromkeys(("link", "lien"), "url"),
}
EARLIEST = date(2000, 1, 1)
"""First day of a price; assumed, an earlier one is a slip: no part of the catalog is as old."""
MOST_PIECES = 10_000
"""Largest quantity; assumed, a slip above it."""
_DELIMITERS = (",", ";", "\t", "|")
_SLIP = 0.8
"""Likeness from which a column is a slip of one of ours; assumed, ``difflib``'s ratio."""
_IN_BRACKETS = re.compile(r"\s{0,8}[(（\[]([^()（）\[\]]{0,40})[)）\]]\s{0,8}")
_HANGUL = re.compile("[가-힣]")
_ODD = re.compile("[\0-\x08\x0e-\x19\x1c-\x1f]")
"""Control characters that no program writes into a list."""
_NOT_UTF8 = re.compile("[\ud800-\udfff]")
"""What ``surrogateescape`` makes of other bytes."""
_DATE = re.compile(r"(\d{4})[-./]?(\d{1,2})[-./]?(\d{1,2})\.?")
_GERMAN_DATE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{4})")
_TAXES: dict[str, Tax] = {
    **dict.fromkeys(("", "unknown"), "unknown"),
    **dict.fromkeys(("yes", "true", "1", "y", "included", "포함"), "included"),
    **dict.fromkeys(("no", "false", "0", "n", "excluded", "별도", "미포함"), "excluded"),
}


def is_ours(text: str) -> bool:
    """Return whether a text's first line names our columns, or both that are needed."""
    head = text.lstrip("\r\n").split("\n", 1)[0].casefold()
    names = {_column(cell) for mark in (",", ";", "|") for cell in head.split(mark)}
    return any(name in head for name in NEEDED) or names.issuperset(NEEDED)


def _column(cell: str) -> str:
    plain = _IN_BRACKETS.sub("", cell.strip().strip('"').strip().casefold())
    return _SAME.get(plain, plain)


def _money_of(cells: list[str], columns: list[str]) -> Asked | None:
    """Return the currency that the heading of the prices names; won where it is Korean."""
    heading = cells[columns.index("unit_price")].casefold()
    for words in _IN_BRACKETS.findall(heading):
        with suppress(RowError):
            return read_currency(words)
    return "KRW" if _HANGUL.search(heading) else None


def is_text(text: str) -> bool:
    """Return whether a text has no characters that only other files hold."""
    return not _ODD.search(text)


def read_csv(text: str, name: str, today: date) -> Iterator[Read]:
    """Yield the rows of our CSV.

    Raises:
        UserError: a column is missing, unknown or named twice.
    """
    head = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = max(_DELIMITERS, key=head.count)
    columns: list[str] = []
    usual: Asked | None = None
    for line, cells in records(text, name, delimiter):
        if isinstance(cells, Refused):
            yield cells
        elif not columns:
            columns = _columns(cells, name)
            usual = _money_of(cells, columns)
        else:
            yield _read(columns, cells, line, today, usual)


def records(
    text: str, name: str, delimiter: str = ","
) -> Iterator[tuple[int, list[str] | Refused]]:
    """Yield the records of a CSV that are not empty, each with the number of its last line.

    A line whose quotes do not match is refused alone, although the rest of the file might stand
    inside its quotes: from there on each line is a record of its own.

    Raises:
        UserError: the first record is broken, which names the columns.
    """
    done = 0
    whole = csv.reader(io.StringIO(text), delimiter=delimiter, strict=True)
    try:
        for cells in whole:
            done = whole.line_num
            if any(map(str.strip, cells)):
                yield done, cells
        return
    except csv.Error:
        if not done:
            raise UserError.of("prices.broken-csv", file=name, line=1) from None
    for line, each in enumerate(text.split("\n")[done:], done + 1):
        try:
            found = next(csv.reader([each], delimiter=delimiter, strict=True), [])
        except csv.Error:
            yield line, refused(line, each, "broken")
        else:
            if any(map(str.strip, found)):
                yield line, found


def _columns(cells: list[str], name: str) -> list[str]:
    columns = [_column(cell) for cell in cells]
    unknown = [one for one in columns if one not in COLUMNS]
    slips = [one for one in unknown if difflib.get_close_matches(one, COLUMNS, 1, _SLIP)]
    if slips:
        column = one_line(slips[0])
        raise UserError.of("prices.unknown-column", file=name, column=column, known=COLUMNS)
    missing = [one for one in NEEDED if one not in columns]
    if missing:
        raise UserError.of("prices.missing-column", file=name, column=missing[0])
    known = [one for one in columns if one in COLUMNS]
    if len(set(known)) < len(known):
        raise UserError.of("prices.repeated-column", file=name)
    return columns


def _read(
    columns: list[str], cells: list[str], line: int, today: date, usual: Asked | None
) -> Read:
    try:
        if any(map(_NOT_UTF8.search, cells)):
            raise RowError("not-text")
        if any(map(str.strip, cells[len(columns) :])):
            raise RowError("too-many-cells", cells=len(cells), columns=len(columns))
        return _row(dict(zip(columns, map(cell_text, cells), strict=False)), line, today, usual)
    except RowError as error:
        return error.at(line, ", ".join(cells))


def _row(cells: dict[str, str], line: int, today: date, usual: Asked | None) -> Row:
    name = cells.get("part_or_name", "").strip()
    if not name:
        raise RowError("no-name")
    stated = read_currency(cells.get("currency", ""))
    amount, told = read_money(cells.get("unit_price", ""), stated or usual)
    if told and stated and told != stated:
        raise RowError("two-currencies", text=f"{cells['unit_price'].strip()} {stated}"[:40])
    currency = stated or told or usual
    if currency is None:
        raise RowError("no-currency")
    stated_condition = cells.get("condition", "").strip()
    condition = read_condition(stated_condition) if stated_condition else told_condition(name)
    shipping = cells.get("shipping", "").strip()
    return Row(
        line=line,
        name=name[:300],
        amount=amount,
        currency=currency,
        kind=_kind(cells.get("kind", ""), used=condition in SECOND_HAND),
        observed=read_date(cells.get("date", ""), today),
        quantity=read_quantity(cells.get("qty", "")),
        condition=condition,
        region=_region(cells.get("region", "")),
        tax=_tax(cells.get("tax_included", "")),
        shipping=_shipping(shipping),
        seller=cells.get("seller", "").strip()[:300],
        valid_until=read_day(cells.get("valid_until", "")),
        url=cells.get("url", "").strip()[:300],
    )


@lru_cache(maxsize=4096)
def read_date(text: str, today: date) -> date:
    """Return the day of a column; an empty one is today.

    Raises:
        RowError: no day, or one that is still to come.
    """
    found = read_day(text)
    if found is None:
        return today
    if found > today:
        raise RowError("future", date=found.isoformat())
    return found


def read_day(text: str) -> date | None:
    """Return the day of a text; None where it is empty.

    Raises:
        RowError: no day, or one before ``EARLIEST``.
    """
    plain = text.strip().split("T")[0].split(" ")[0]
    if not plain:
        return None
    german = _GERMAN_DATE.fullmatch(plain)
    parts = german or _DATE.fullmatch(plain)
    try:
        if parts is None:
            raise ValueError(plain)
        numbers = tuple(map(int, parts.groups()))
        found = date(*(numbers[::-1] if german else numbers))
    except ValueError:
        raise RowError("not-a-date", text=plain[:40]) from None
    if found < EARLIEST:
        raise RowError("too-early", date=found.isoformat(), first=EARLIEST.isoformat())
    return found


def read_quantity(text: str) -> int:
    """Return the pieces of a column; an empty one is one.

    Raises:
        RowError: not a whole number of pieces.
    """
    plain = text.strip().removesuffix("개").removesuffix("ea").strip().replace(",", "")
    if not plain:
        return 1
    if not plain.isdecimal() or not 1 <= int(plain[:9]) <= MOST_PIECES or len(plain) > 9:
        raise RowError("not-a-quantity", text=text.strip()[:40])
    return int(plain)


def _kind(text: str, *, used: bool) -> PriceKind:
    plain = text.strip().casefold()
    if not plain:
        return "used" if used else "new"
    if plain not in get_args(PriceKind):
        raise RowError("unknown-kind", text=text.strip()[:40])
    kind: PriceKind = next(one for one in get_args(PriceKind) if one == plain)
    return kind


def _region(text: str) -> str:
    plain = text.strip().upper()
    if plain and not re.fullmatch(r"[A-Z]{2}", plain):
        raise RowError("not-a-region", text=text.strip()[:40])
    return plain


def _tax(text: str) -> Tax:
    plain = text.strip().casefold()
    if plain not in _TAXES:
        raise RowError("not-a-tax", text=text.strip()[:40])
    return _TAXES[plain]


def _shipping(text: str) -> float | None:
    if not text:
        return None
    return 0.0 if text in ("0", "free", "무료") else in_range(read_money(text)[0])
