"""A person's own prices and exchange rate outlive the program, and nothing overwrites them."""

from datetime import date

import pytest

from trainwright.messages import UserError, render
from trainwright.prices import Rate, exchange, own_prices, price_book


def test_prices_outlive_the_program_in_the_order_in_which_they_came(seen):
    first, second = seen(200, 3, seller="퀘이사존 <중고>"), seen(300, 1, currency="KRW")
    own_prices.add([first])
    own_prices.add([second])
    assert own_prices.load().observations == (first, second)
    assert price_book().observations["psu", "rm1000x"] == (first, second)


def test_the_same_price_is_kept_once(seen):
    own_prices.add([seen(200, 3), seen(200, 3)])
    own_prices.add([seen(200, 3)])
    assert len(own_prices.load().observations) == 1
    assert len(own_prices.path().read_text().splitlines()) == 2


def test_a_withdrawn_price_is_gone_but_its_line_stays(seen):
    own_prices.add([seen(200, 3), seen(220, 3)])
    before = own_prices.path().read_bytes()
    own_prices.withdraw([seen(200, 3)])
    assert own_prices.load().observations == (seen(220, 3),)
    assert own_prices.path().read_bytes().startswith(before)


@pytest.mark.parametrize(
    "content",
    [
        b"not json",
        b"\x89PNG\r\n\x1a\n\0\0",
        b'{"format": 1}\n{"part": "x"}\n',
        b'{"format": 1}\n[1, 2]\n',
        b"",
        b'{"format": 1}\n{"part_kind": "psu", "part": "x", "amount": -1, "currency": "USD",'
        b' "kind": "new", "observed": "2026-01-01"}\n',
    ],
)
def test_a_damaged_file_is_set_aside_and_said_in_one_line(seen, content):
    own_prices.path().parent.mkdir(parents=True)
    own_prices.path().write_bytes(content)
    found = own_prices.load()
    assert found.observations == ()
    assert "prices.jsonl.damaged" in render(found.note, "en")
    assert own_prices.path().with_name("prices.jsonl.damaged").read_bytes() == content
    own_prices.add([seen()])
    assert len(own_prices.load().observations) == 1


DAMAGES = {
    b"{": "JSON object",
    b"\xff\xfe": "JSON object",
    b"[1, 2]": "JSON object",
    b"[" * 100_000: "JSON object",
    b'{"part": "x"}': "part_kind is missing",
    b'{"withdrawn": 7}': "7",
    b'{"part_kind": "psu", "part": "x", "amount": -1, "currency": "USD", "kind": "new",'
    b' "observed": "2026-01-01"}': "amount cannot be",
    b'{"part_kind": "psu", "part": "x", "amount": 1, "currency": "USD", "kind": "new",'
    b' "observed": "2026-01-01", "colour": 1}': "colour is unknown",
}


@pytest.mark.parametrize("damaged", DAMAGES)
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_bad_line_is_named_and_stays_and_the_others_count(seen, damaged, end):
    own_prices.add([seen(200, 3)])
    with own_prices.path().open("ab") as file:
        file.write(damaged + end)
    found = own_prices.load()
    assert found.observations == (seen(200, 3),)
    for language in ("en", "ko"):
        note = render(found.note, language)
        assert f"{own_prices.path()}:3: " in note
        assert "\n" not in note
    assert DAMAGES[damaged] in render(found.note, "en")
    assert price_book().notes == (found.note,)
    own_prices.add([seen(300, 1)])
    own_prices.withdraw([seen(200, 3)])
    assert own_prices.load().observations == (seen(300, 1),)
    assert damaged in own_prices.path().read_bytes().split(b"\n")
    assert [file.name for file in own_prices.path().parent.glob("prices.jsonl*")] == [
        "prices.jsonl",
        "prices.jsonl.lock",
    ]


def test_a_damaged_first_line_costs_no_price_and_more_bad_lines_are_counted(seen):
    own_prices.add([seen(200, 3)])
    _, line = own_prices.path().read_bytes().splitlines()
    own_prices.path().write_bytes(b"{\n" + line + b"\n\n-\n-\n")
    found = own_prices.load()
    assert found.observations == (seen(200, 3),)
    assert "prices.jsonl:1: " in render(found.note, "en")
    assert "2 more lines" in render(found.note, "en")


def test_a_file_of_a_later_version_is_left_alone(seen):
    own_prices.path().parent.mkdir(parents=True)
    own_prices.path().write_text('{"format": 2}\n{"shape": "unknown"}\n')
    assert "later version" in render(own_prices.load().note, "en")
    with pytest.raises(UserError, match="later version"):
        own_prices.add([seen()])
    assert own_prices.path().read_text().endswith('{"shape": "unknown"}\n')


def test_the_exchange_rate_is_dated_and_kept(today):
    assert exchange.load() == (None, None)
    exchange.keep(Rate(1432.5, date(2026, 6, 30)), today)
    assert exchange.load() == (Rate(1432.5, date(2026, 6, 30)), None)
    exchange.forget()
    assert exchange.load() == (None, None)


@pytest.mark.parametrize(
    "text", ["USDKRW: 1400", "EURKRW: {rate: 1600, date: 2026-01-01}", "[", ""]
)
def test_a_broken_rate_file_converts_nothing_and_says_so(text):
    exchange.path().parent.mkdir(parents=True)
    exchange.path().write_text(text)
    rate, note = exchange.load()
    assert rate is None
    assert "fx.yaml" in render(note, "en")


def test_a_rate_that_cannot_be_one_is_refused(today):
    with pytest.raises(UserError, match="cannot be right"):
        exchange.keep(Rate(0.0007, today), today)
    with pytest.raises(UserError, match="2026-07-02"):
        exchange.keep(Rate(1400, date(2026, 7, 2)), today)
