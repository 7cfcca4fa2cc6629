"""Our own CSV, as spreadsheets of both countries save it, and what is refused of it."""

import time
from datetime import date
from pathlib import Path

import pytest

from trainwright.messages import UserError, render
from trainwright.prices.imports import Refused, preview, read, read_file
from trainwright.prices.imports.money import read_money
from trainwright.prices.imports.rows import RowError

TODAY = date(2026, 7, 1)
HEAD = "part_or_name,qty,unit_price,currency,condition,region,seller,url,date,tax_included\n"


@pytest.mark.parametrize(
    ("text", "amount", "currency"),
    [
        ("1299.99", 1299.99, None),
        ("1,488,990", 1488990, None),
        ("$1,299.99", 1299.99, "USD"),
        ("US$ 1,299", 1299, "USD"),
        ("1299 USD", 1299, "USD"),
        ("₩1,488,990", 1488990, "KRW"),
        ("￦1,488,990", 1488990, "KRW"),
        ("1,488,990원", 1488990, "KRW"),
        ("KRW 1488990", 1488990, "KRW"),
        ("148만원", 1480000, "KRW"),
        ("148만 8,990원", 1488990, "KRW"),
        ("1.5만원", 15000, "KRW"),
        ("$205.00.", 205, "USD"),
        (" 90 만원 ", 900000, "KRW"),
        ("1.299,99", 1299.99, None),
        ("12,34", 12.34, None),
        ("€ 500", 500, "EUR"),
        ("1.299,99 €", 1299.99, "EUR"),
        ("1.299 €", 1299, "EUR"),
        ("1299,- EUR", 1299, "EUR"),
        ("1\u202f299,95 €", 1299.95, "EUR"),
        ("£489.97", 489.97, "GBP"),
        ("5000円", 5000, "JPY"),
        ("¥59,800", 59800, "JPY"),
        ("0.125", 0.125, None),
    ],
)
def test_amounts_as_people_write_them(text, amount, currency):
    assert read_money(text) == (amount, currency)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no-price"),
        ("0", "no-price"),
        ("-5", "negative"),
        ("−5", "negative"),
        ("$-5", "negative"),
        ("nan", "not-an-amount"),
        ("inf", "not-an-amount"),
        ("1e5", "not-an-amount"),
        ("90만90만원", "not-an-amount"),
        ("1.2.3만", "not-an-amount"),
        ("500 CHF", "unknown-currency"),
        ("CA$500", "unknown-currency"),
        ("5000元", "unknown-currency"),
        ("$5원", "two-currencies"),
        ("99999999999999999999", "too-much"),
    ],
)
def test_what_is_no_amount(text, reason):
    with pytest.raises(RowError) as refused:
        read_money(text)
    assert refused.value.id == reason


def test_a_full_row():
    (row,) = read(
        HEAD + 'rtx-3090,2,"90만원",,중고,kr,당근마켓,https://x.kr/1,2026.06.28,포함\n',
        "my.csv",
        TODAY,
    ).rows
    assert (row.name, row.quantity, row.amount, row.currency) == ("rtx-3090", 2, 900000, "KRW")
    assert (row.condition, row.kind, row.region, row.tax) == ("used", "used", "KR", "included")
    assert (row.seller, row.observed) == ("당근마켓", date(2026, 6, 28))


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        ("rtx-3090,1,5,CAD,,,,,,", "unknown-currency"),
        ("rtx-3090,1,5,,,,,,,", "no-currency"),
        ("rtx-3090,1,$5,KRW,,,,,,", "two-currencies"),
        ("rtx-3090,1,-5,USD,,,,,,", "negative"),
        ("rtx-3090,1,NaN,USD,,,,,,", "not-an-amount"),
        ("rtx-3090,1,5,USD,,,,,2026-07-02,", "future"),
        ("rtx-3090,1,5,USD,,,,,2026-02-30,", "not-a-date"),
        ("rtx-3090,1,5,USD,,,,,yesterday,", "not-a-date"),
        ("rtx-3090,0,5,USD,,,,,,", "not-a-quantity"),
        ("rtx-3090,1.5,5,USD,,,,,,", "not-a-quantity"),
        ("rtx-3090,99999999999,5,USD,,,,,,", "not-a-quantity"),
        ("rtx-3090,1,5,USD,shiny,,,,,", "unknown-condition"),
        ("rtx-3090,1,5,USD,,Korea,,,,", "not-a-region"),
        ("rtx-3090,1,5,USD,,,,,,maybe", "not-a-tax"),
        (",1,5,USD,,,,,,", "no-name"),
        ("rtx-3090,1,1,299.00,USD,,,,,,,", "two-currencies"),
        ("rtx-3090,1,5,USD,,,,,,no,extra", "too-many-cells"),
    ],
)
def test_a_bad_row_is_refused_with_its_line_and_the_rest_is_read(cells, reason):
    text = f"{HEAD}rtx-4090,1,2500,USD,,,,,,\n{cells}\nrtx-5090,1,3700,USD,,,,,,\n"
    first, bad, last = read(text, "my.csv", TODAY).rows
    if cells.startswith("rtx-3090,1,1,299.00"):  # thousands without quotation marks
        assert isinstance(bad, Refused)
    else:
        assert bad.reason.id == f"prices.row.{reason}"
    assert bad.line == 3
    assert (first.amount, last.amount) == (2500, 3700)
    for language in ("en", "ko"):
        assert "prices.row" not in render(bad.reason, language)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'rtx-3090,1,"1,USD,,,,,,', "broken"),
        (b'"rtx-3090"x,1,1,USD,,,,,,', "broken"),
        (b"rtx-3090,1,1\0,USD,,,,,,", "not-an-amount"),
        ("지포스 RTX 3090,1,1,USD,,,,,,".encode("cp949"), "not-text"),
        (b"rtx-3090,1,1,USD,,,,,1999-12-31,", "too-early"),
    ],
)
def test_a_line_that_is_no_csv_or_no_text_leaves_the_others(tmp_path, line, reason):
    good = ["rtx-4090,1,2500,USD,,,,,,\n", '"지포스 RTX 5090",1,"3,700",USD,,,,,,\n']
    file = tmp_path / "my.csv"
    file.write_bytes((HEAD + good[0]).encode() + line + b"\n" + good[1].encode())
    first, bad, last = read_file(file, TODAY).rows
    assert (bad.line, bad.reason.id) == (3, f"prices.row.{reason}")
    assert (first.amount, last.amount, last.line) == (2500, 3700, 4)


def test_many_quotes_that_never_end_are_read_in_linear_time():
    started = time.process_time()
    rows = read(HEAD + 'a",",c\n' * 140_000, "my.csv", TODAY).rows
    assert len(rows) == 140_000
    assert time.process_time() - started < 5


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp949", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_file_is_read_however_it_was_saved(tmp_path, encoding, end):
    file = tmp_path / "my.csv"
    text = HEAD + "지포스 RTX 5070,1,₩1488990,KRW,신품,KR,다나와,,,\n"
    text = text.replace("₩", "") if encoding == "cp949" else text
    file.write_bytes(text.replace("\n", end).encode(encoding))
    (row,) = read_file(file, TODAY).rows
    assert (row.name, row.amount, row.seller) == ("지포스 RTX 5070", 1488990, "다나와")


def test_semicolons_and_tabs_part_columns_too():
    for mark in (";", "\t"):
        text = f"part_or_name{mark}unit_price{mark}currency\nrtx-4090{mark}2500{mark}USD\n"
        (row,) = read(text, "my.csv", TODAY).rows
        assert row.amount == 2500


@pytest.mark.parametrize(
    "text",
    [
        "Artikel;Menge;Einzelpreis;Währung;Datum\nRTX 5090;1;2.329,00;EUR;20.6.2026\n",
        "商品名,数量,価格,通貨,日付\nRTX 5090,1,2329,EUR,2026/06/20\n",
        "Produit;Quantité;Prix;Devise;Date\nRTX 5090;1;2329,00;EUR;20.06.2026\n",
    ],
)
def test_columns_and_days_are_read_as_other_countries_write_them(text):
    (row,) = read(text, "my.csv", TODAY).rows
    assert (row.amount, row.currency, row.observed) == (2329, "EUR", date(2026, 6, 20))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("part_or_name,qty\nx,1\n", "column unit_price is missing"),
        (HEAD.replace("seller", "selller") + "x,1,1,USD,,,,,,\n", "“selller” is not a column"),
        (HEAD.replace("seller", "url") + "x,1,1,USD,,,,,,\n", "twice"),
        (HEAD, "no prices"),
        ("", "no prices"),
        ("what a nice day\n", "not a list that we know"),
        (HEAD.replace("seller", '"seller') + "x,1,1,USD,,,,,,\n", "quotation marks"),
    ],
)
def test_a_file_that_is_no_list_is_refused_whole_in_one_line(text, said):
    with pytest.raises(UserError, match=said) as refused:
        read(text, "my.csv", TODAY)
    assert str(refused.value).startswith("my.csv")


@pytest.mark.parametrize("content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", b"PK\3\4\0\0", b"\0" * 100])
def test_a_binary_file_is_refused_whole(tmp_path, content):
    file = tmp_path / "prices.xlsx"
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"prices\.xlsx: this is not text"):
        read_file(file, TODAY)


def test_the_example_of_the_manual_is_read():
    manual = (Path(__file__).parents[3] / "docs" / "prices.md").read_text(encoding="utf-8")
    example = manual.split("```csv\n")[1].split("```")[0]
    found = preview(read(example, "example", date(2026, 11, 22)))
    assert found.counts == {"matched": 2, "ambiguous": 0, "unmatched": 0, "refused": 0}


def test_a_folder_or_nothing_at_all_is_refused(tmp_path):
    for path, says in ((tmp_path, "is a folder"), (tmp_path / "none.csv", "no such file")):
        with pytest.raises(UserError, match=says):
            read_file(path, TODAY)


def test_a_hundred_thousand_rows_end_in_one_state_each():
    names = ("rtx-4090", "Ryzen 9 9950X", "no such part", "GeForce RTX 4060 Ti")
    rows = (f'{names[i % 4]},1,"{1 + i // 1000},{i % 1000:03}",USD,,,,,,' for i in range(99_999))
    found = preview(read(HEAD + "\n".join(rows) + "\nrtx-4090,1,-1,USD,,,,,,\n", "my.csv", TODAY))
    assert sum(found.counts.values()) == 100_000
    assert found.counts["refused"] == 1
    assert found.rows[-1].line == 100_001
    assert len(found.observations()) == found.counts["matched"]


def test_a_word_of_the_name_says_that_a_part_is_used():
    text = "name,price,currency\nRTX 3090 24GB used,550,GBP\nRTX 3090 24GB,900,GBP\n"
    used, new = read(text, "my.csv", TODAY).rows
    assert (used.condition, used.kind) == ("used", "used")
    assert (new.condition, new.kind) == ("new", "new")
