"""Rows that no part is known for are kept until somebody matches or discards them."""

from datetime import date

import pytest

from trainwright.messages import UserError, render
from trainwright.prices.imports import Row, preview_rows, read, waiting
from trainwright.prices.imports.preview import preview

LIST = """part_or_name,qty,unit_price,currency,date
RTX 3090,1,900000,KRW,2026-06-20
RTX 4060 Ti,1,500000,KRW,2026-06-20
RTX 7090 슈퍼 "특가",1,"1,234,000",KRW,2026-06-21
no price at all,1,-,KRW,2026-06-21
"""


def row(name="RTX 7090", **more):
    return Row(3, name, 100.0, "USD", "new", date(2026, 6, 1), origin="list.csv", **more)


@pytest.fixture
def found(today):
    return preview(read(LIST, "list.csv", today))


def test_only_prices_without_a_part_wait(found):
    assert [one.name for one in found.unplaced()] == ["RTX 4060 Ti", 'RTX 7090 슈퍼 "특가"']
    assert {one.origin for one in found.unplaced()} == {"list.csv"}
    (left,) = found.chosen({1: None}).unplaced()
    assert left.amount == 1_234_000


def test_rows_outlive_the_program_as_they_were(found):
    waiting.add(found.unplaced())
    waiting._load.cache_clear()
    assert waiting.load().rows == found.unplaced()
    assert waiting.add(found.unplaced()) == 0
    assert len(waiting.path().read_text(encoding="utf-8").splitlines()) == 3


def test_a_row_that_matches_later_becomes_a_price_with_its_list_and_line(found):
    waiting.add(found.unplaced())
    again = preview_rows(waiting.load().rows, "")
    assert [one.state for one in again.rows] == ["ambiguous", "unmatched"]
    again = again.chosen({0: again.rows[0].verdict.candidates[0]})
    (price,) = again.observations()
    assert price.source == "list.csv:3"
    assert waiting.drop(again.matched()) == 1
    assert [one.name for one in waiting.load().rows] == ['RTX 7090 슈퍼 "특가"']


@pytest.mark.parametrize("content", [b"no", b"\xff\xfe", b'{"format": 1}\n{"line": 1}\n', b""])
def test_a_damaged_file_is_set_aside_and_its_rows_are_not_overwritten(content):
    waiting.path().parent.mkdir(parents=True)
    waiting.path().write_bytes(content)
    assert "waiting.jsonl.damaged" in render(waiting.load().note, "en")
    assert waiting.add([row()]) == 1
    assert waiting.path().with_name("waiting.jsonl.damaged").read_bytes() == content


def test_a_bad_line_is_named_and_outlives_every_change():
    waiting.add([row(), row("RTX 7080")])
    with waiting.path().open("ab") as file:
        file.write(b'{"line": 1}\n\xff\n')
    assert waiting.load().rows == (row(), row("RTX 7080"))
    assert "waiting.jsonl:4: The key name is missing" in render(waiting.load().note, "en")
    assert waiting.add([row("RTX 7070")]) == 1
    assert waiting.drop([row()]) == 1
    assert waiting.load().rows == (row("RTX 7080"), row("RTX 7070"))
    assert waiting.path().read_bytes().endswith(b'\n{"line": 1}\n\xff\n')


def test_a_file_of_a_later_version_is_left_alone():
    waiting.path().parent.mkdir(parents=True)
    waiting.path().write_text('{"format": 2}\n')
    for change in (waiting.add, waiting.drop):
        with pytest.raises(UserError, match="later version"):
            change([row()])
    assert waiting.path().read_text() == '{"format": 2}\n'


def test_a_hundred_thousand_rows_wait_and_go():
    many = [row(f"part {number}") for number in range(100_000)]
    assert waiting.add(many) == 100_000
    assert waiting.drop(many[1:]) == 99_999
    assert waiting.load().rows == (many[0],)
