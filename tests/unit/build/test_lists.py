"""Lists of parts as other programs read them: a CSV reader, a Markdown table, our importers."""

import csv
import io
from datetime import date
from types import SimpleNamespace

import pytest

from trainwright.build.answer import Part
from trainwright.build.lists import comma_separated, markdown, plain_list
from trainwright.build.report import price_as_json
from trainwright.catalog import find_case, find_cpu, find_drive, find_gpu, find_memory
from trainwright.cli.build import kind_of, used_or_new
from trainwright.prices import Item, Price, total
from trainwright.prices.imports import Refused, read

TODAY = date(2026, 7, 1)


def price(amount: float, currency: str = "USD", kind: str = "user", **more: str) -> Price:
    day = date(2026, 6, 28)
    return Price(amount, amount, amount, currency, kind, day, "fresh", "a shop", **more)


def listed(currency: str = "USD") -> SimpleNamespace:
    """Return a computer: two cards, one of them there already, a case without a price."""
    unit = 1.0 if currency == "USD" else 1400.0
    records = (
        ("gpu", find_gpu("rtx-5070-ti").record, 2, price(999.99 * unit, currency), 1),
        ("cpu", find_cpu("ryzen-9-9950x"), 1, price(539.0 * unit, currency), 0),
        ("memory", find_memory("corsair-vengeance-ddr5-6000-cl30-2x16gb"), 2,
         price(110.5 * unit, currency), 0),
        ("storage", find_drive("samsung-870-evo-1tb"), 1, price(80.0 * unit, currency), 1),
        ("case", find_case("corsair-4000d-airflow"), 1, None, 0),
    )  # fmt: skip
    parts = tuple(
        Part(kind, record.id, record.name, count, one, there)
        for kind, record, count, one, there in records
    )
    bought = (Item(p.id, p.count - p.owned, p.price) for p in parts if p.count > p.owned)
    return SimpleNamespace(parts=parts, total=total(bought, currency))


def test_the_total_is_what_must_be_bought_and_tells_what_has_no_price() -> None:
    text = markdown(listed())
    assert "$1,759.99 + 1 unpriced" in text, "999.99 + 539 + 2 x 110.50"


def test_markdown_is_one_table_of_equally_many_cells() -> None:
    lines = markdown(listed()).splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert {len(row) for row in rows} == {6}
    assert all(set(cell) <= set(":-") for cell in rows[1])
    kinds = [row[0].strip("*") for row in rows[2:-1]]
    assert kinds == ["CPU", "Memory", "Storage", "Video Card", "Case"]
    prices = {row[0].strip("*"): row[3] for row in rows[2:-1]}
    assert prices["Case"] == "unpriced", "never 0"
    assert prices["Storage"] == "owned"
    assert {row[5] for row in rows[2:-2]} == {"2026-06-28"}


@pytest.mark.parametrize("currency", ["USD", "KRW"])
def test_csv_comes_back_through_a_csv_reader_and_through_our_importer(currency: str) -> None:
    one = listed(currency)
    text = comma_separated(one)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["part_or_name"], int(row["qty"])) for row in rows] == [
        ("ryzen-9-9950x", 1),
        ("corsair-vengeance-ddr5-6000-cl30-2x16gb", 2),
        ("samsung-870-evo-1tb", 1),
        ("rtx-5070-ti", 2),
        ("corsair-4000d-airflow", 1),
    ]
    known = {part.id: part for part in one.parts if part.price is not None}
    found = read(text, "parts.txt", TODAY).rows
    back = [line for line in found if not isinstance(line, Refused)]
    assert {(line.name, line.quantity, line.currency) for line in back} == {
        (part.id, part.count, currency) for part in known.values()
    }
    for line in back:
        assert line.amount == pytest.approx(known[line.name].price.expected, abs=0.01)
        assert line.observed == date(2026, 6, 28)


def test_the_plain_list_comes_back_through_the_importer_of_pcpartpicker_lists() -> None:
    text = plain_list(listed())
    found = read(text, "parts.txt", TODAY).rows
    back = [line for line in found if not isinstance(line, Refused)]
    found = {(line.part_kind, line.name): line.amount for line in back}
    assert found[("cpu", find_cpu("ryzen-9-9950x").name)] == 539.0
    assert found[("gpu", find_gpu("rtx-5070-ti").record.name)] == 999.99
    memory = find_memory("corsair-vengeance-ddr5-6000-cl30-2x16gb").name
    assert found[("memory", memory)] == 110.5
    assert not any("Total" in line.name for line in back)


def test_a_used_card_is_marked_wherever_the_computer_is_listed() -> None:
    record = find_gpu("rtx-3090").record
    one = listed()
    paid = price(700.0, kind="assumed", condition="used")
    one.parts = (Part("gpu", record.id, record.name, 2, paid), *one.parts[1:])
    assert "| used, assumed |" in markdown(one)
    assert f"{record.name} (used) ($700.00)" in plain_list(one)
    for text in (comma_separated(one), plain_list(one)):
        rows = read(text, "parts.txt", TODAY).rows
        cards = [row for row in rows if not isinstance(row, Refused) and "3090" in row.name.lower()]
        assert {row.condition for row in cards} == {"used"}
    assert used_or_new(one.parts[0], "2 × RTX 3090").id == "planner.used"
    assert kind_of(paid).id == "planner.kind.second-hand"
    assert price_as_json(paid)["condition"] == "used"
