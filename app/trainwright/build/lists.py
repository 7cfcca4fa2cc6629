"""A computer as a list of parts: Markdown, CSV, PCPartPicker-style text."""

from collections.abc import Callable

from trainwright.build.answer import Candidate, Part
from trainwright.build.report import candidate_as_json
from trainwright.catalog import PartKind
from trainwright.prices import Price
from trainwright.quoting import csv_row, json_text, visible
from trainwright.quoting import markdown as in_markdown

LABELS: dict[PartKind, str] = {
    "cpu": "CPU",
    "cooler": "CPU Cooler",
    "board": "Motherboard",
    "memory": "Memory",
    "storage": "Storage",
    "gpu": "Video Card",
    "case": "Case",
    "psu": "Power Supply",
}
"""As lists of parts on the web call them, in their order."""
_SIGNS = {"USD": "${:,.2f}", "KRW": "₩{:,.0f}"}


def _ordered(one: Candidate) -> list[Part]:
    order = list(LABELS)
    return sorted(one.parts, key=lambda part: order.index(part.kind))


def _price(part: Part) -> str:
    if part.owned >= part.count:
        return "owned"
    if part.price is None:
        return "unpriced"
    return _SIGNS[part.price.currency].format(part.price.expected)


def _kind(price: Price) -> str:
    return f"used, {price.kind}" if price.second_hand and price.kind != "used" else price.kind


def _total(one: Candidate) -> str:
    total = one.total
    text = "unpriced" if total.expected is None else _SIGNS[total.currency].format(total.expected)
    return f"{text} + {len(total.unpriced)} unpriced" if total.unpriced else text


def markdown(one: Candidate) -> str:
    """Return a table; the price is the expected one of a piece, with its kind and day."""
    lines = ["| Type | Item | Count | Price | Kind | Date |", "|:--|:--|--:|--:|:--|:--|"]
    for part in _ordered(one):
        kind, day = (_kind(part.price), part.price.observed or "") if part.price else ("", "")
        label = LABELS[part.kind]
        price = _price(part)
        lines.append(
            f"| **{label}** | {in_markdown(part.name)} | {part.count} | {price} | {kind} | {day} |"
        )
    lines.append(f"| | **Total** | | **{_total(one)}** | | |")
    return "\n".join(lines) + "\n"


def comma_separated(one: Candidate) -> str:
    """Return rows as ``catalog prices`` reads them, prices of a piece."""
    rows: list[tuple[object, ...]] = [
        ("part_or_name", "qty", "unit_price", "currency", "kind", "condition", "date", "source")
    ]
    rows += [(part.id, part.count, *_cells(part.price)) for part in _ordered(one)]
    return "".join(map(csv_row, rows))


def _cells(price: Price | None) -> tuple[object, ...]:
    if price is None:
        return ("",) * 6
    amount = f"{price.expected:.2f}"
    return (
        *(amount, price.currency, price.kind),
        *(price.condition, price.observed, price.source),
    )


def plain_list(one: Candidate) -> str:
    """Return lines as forums know them: ``CPU: name ($299.00)``."""
    lines = [
        f"{LABELS[part.kind]}: {visible(part.name)}{' (used)' * part.used} ({_price(part)})"
        for part in _ordered(one)
        for _ in range(part.count)
    ]
    return "\n".join([*lines, f"Total: {_total(one)}"]) + "\n"


def as_data(one: Candidate) -> str:
    """Return the computer as JSON."""
    return json_text(candidate_as_json(one), indent=2) + "\n"


FORMATS: dict[str, Callable[[Candidate], str]] = {
    "markdown": markdown,
    "csv": comma_separated,
    "pcpartpicker": plain_list,
    "json": as_data,
}
