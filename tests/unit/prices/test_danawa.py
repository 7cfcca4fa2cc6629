"""Tables and quotes in Danawa's forms, whole and broken."""

from datetime import date

import pytest

from trainwright.messages import UserError
from trainwright.prices.imports import Refused, preview, read, read_file

TODAY = date(2026, 7, 1)
DAYS = "Id,Name,2026-06-29 08:10:12,2026-06-30 08:11:40\n"
CELLS = {
    "a price": ("한 제품,0,612500", [(612500.0, "한 제품")]),
    "a price with thousands": ('한 제품,0,"1,488,990"', [(1488990.0, "한 제품")]),
    "the newest day with a price": ('한 제품,"500,000",0', [(500000.0, "한 제품")]),
    "no price on any day": ("한 제품,0,0", ["no-price"]),
    "no price yet": ("한 제품,0,가격비교예정", ["no-price"]),
    "sold out": ("한 제품,일시품절,일시품절", ["no-price"]),
    "options with a leading mark": (
        'ADATA DDR4,0,"_32GB_12,968원/1GB_414,960|16GB_11,747원/1GB_187,950"',
        [(414960.0, "ADATA DDR4 32GB"), (187950.0, "ADATA DDR4 16GB")],
    ),
    "options without one": (
        'ADATA DDR4,0,"32GB_12,968원/1GB_414,960"',
        [(414960.0, "ADATA DDR4 32GB")],
    ),
    "the older order": (
        'ADATA DDR4,0,"13,654원/1GB_16GB_218,460"',
        [(218460.0, "ADATA DDR4 16GB")],
    ),
    "the older order with a leading mark": (
        'ADATA DDR4,0,"_13,654원/1GB_16GB_218,460"',
        [(218460.0, "ADATA DDR4 16GB")],
    ),
    "a kit": (
        'ADATA DDR5 패키지,0,"32GB(16Gx2)_24,780원/1GB_792,950"',
        [(792950.0, "ADATA DDR5 패키지 32GB(16Gx2)")],
    ),
    "drives by TB": (
        'ZHITAI TiPlus9100,0,"2TB_293,995원/1TB_587,990|4TB_290,000원/1TB_1,160,000"',
        [(587990.0, "ZHITAI TiPlus9100 2TB"), (1160000.0, "ZHITAI TiPlus9100 4TB")],
    ),
    "drives by GB": ('SN740,0,"1TB_224원/1GB_223,880"', [(223880.0, "SN740 1TB")]),
    "options without a price a GB": (
        'Samsung,0,"1TB_199,000|2TB_가격비교예정"',
        [(199000.0, "Samsung 1TB"), "no-price"],
    ),
    "an option for nothing": (
        'Samsung,0,"1TB_0|2TB_399,000"',
        ["no-price", (399000.0, "Samsung 2TB")],
    ),
    "a won behind the price": ('Samsung,0,"1TB_199,000원"', [(199000.0, "Samsung 1TB")]),
    "a price a GB that contradicts": ('ADATA,0,"32GB_1,000원/1GB_414,960"', ["contradiction"]),
    "two prices in one option": ('ADATA,0,"32GB_414,960_187,950"', ["odd-cell"]),
    "an option without a price": ('ADATA,0,"32GB_12,968원/1GB"', ["odd-cell"]),
    "rubbish in a cell": ("ADATA,0,문의", ["odd-cell"]),
    "no name": (",0,100000", ["no-name"]),
    "more cells than days": ("ADATA,1,2,3,4", ["too-many-cells"]),
}
QUOTES = {
    "name, quantity, sum": (
        "AMD 라이젠9-6세대 9950X (그래니트 릿지) (정품)\t1\t829,000원\n",
        [(829000.0, 1, None)],
    ),
    "several pieces": ("이엠텍 지포스 RTX 5080 D7 16GB\t2\t4,178,000\n", [(2089000.0, 2, None)]),
    "name and price": ("삼성전자 990 PRO M.2 NVMe (2TB)\t443,210원\n", [(443210.0, 1, None)]),
    "headings, kinds and a total": (
        "분류\t상품명\t수량\t판매가\t합계\n"
        "CPU\tAMD 라이젠7 9700X\t1\t429,000원\t429,000원\n"
        "그래픽카드\t조텍 지포스 RTX 5070 12GB\t1\t1,003,290원\t1,003,290원\n"
        "파워\t시소닉 FOCUS GX-850\t1개\t179,000원\t179,000원\n"
        "총 합계\t\t\t\t1,611,290원\n",
        [(429000.0, 1, "cpu"), (1003290.0, 1, "gpu"), (179000.0, 1, "psu")],
    ),
    "kinds without headings": (
        "메모리\t삼성전자 DDR5-5600 (32GB)\t2\t1,213,960\n",
        [(606980.0, 2, "memory")],
    ),
    "ten thousands": ("중고 RTX 3090 24GB\t1\t98만원\n", [(980000.0, 1, None)]),
    "ten thousands and the rest": ("RTX 5080 16GB\t1\t208만 4,550원\n", [(2084550.0, 1, None)]),
    "a won sign": ("RTX 5080 16GB\t1\t₩2,084,550\n", [(2084550.0, 1, None)]),
    "a sum that contradicts": (
        "상품명\t수량\t단가\t합계\nRTX 5080\t2\t2,000,000\t3,000,000\n",
        ["contradiction"],
    ),
    "half a piece": ("RTX 5080\t0.5\t1,000,000\n", ["not-a-quantity"]),
    "no price yet": (
        "RTX 5080\t1\t가격비교예정\nRTX 5070\t1\t1,000,000원\n",
        ["not-an-amount", (1000000.0, 1, None)],
    ),
    "a line of words": (
        "견적 문의 드립니다\nRTX 5070\t1\t1,000,000원\n",
        ["not-a-part", (1000000.0, 1, None)],
    ),
}


def refusal(row):
    return row.reason.id.removeprefix("prices.row.")


@pytest.mark.parametrize("name", CELLS)
def test_each_cell_of_a_table_is_read_or_refused(name):
    cells, expected = CELLS[name]
    listing = read(f"{DAYS}93704759,{cells}\n", "VGA.csv", TODAY)
    assert listing.format == "danawa"
    assert [
        refusal(row) if isinstance(row, Refused) else (row.amount, row.name) for row in listing.rows
    ] == expected
    assert all(row.line == 2 for row in listing.rows)


@pytest.mark.parametrize("name", QUOTES)
def test_each_line_of_a_quote_is_read_or_refused(name):
    text, expected = QUOTES[name]
    listing = read(text, "paste", TODAY)
    assert listing.format == "danawa-quote"
    assert [
        refusal(row) if isinstance(row, Refused) else (row.amount, row.quantity, row.part_kind)
        for row in listing.rows
    ] == expected


@pytest.mark.parametrize(
    ("name", "condition", "kind", "seller"),
    [
        ("GIGABYTE 지포스 RTX 5070 12GB 피씨디렉트", "new", "new", "피씨디렉트"),
        ("GIGABYTE 지포스 RTX 5070 12GB 제이씨현", "new", "new", "제이씨현"),
        ("ADATA DDR4-3200 CL22 (중고)", "used", "used", ""),
        ("WD SN740 M.2 2230 NVMe (해외구매)", "overseas", "new", ""),
        ("AMD 라이젠5 9600X (벌크)", "bulk", "new", ""),
        ("조텍 지포스 RTX 4090 (리퍼비시)", "refurbished", "used", ""),
    ],
)
def test_suffixes_say_condition_and_distributor(name, condition, kind, seller):
    (row,) = read(f"{DAYS}1,{name},0,100000\n", "x.csv", TODAY).rows
    assert (row.condition, row.kind, row.seller) == (condition, kind, seller)
    assert (row.currency, row.region, row.tax) == ("KRW", "KR", "included")
    assert row.observed == date(2026, 6, 30)


def test_files_of_korean_spreadsheets_are_read(tmp_path):
    file = tmp_path / "RAM.csv"
    file.write_bytes(f"{DAYS}1,삼성전자 DDR5-5600,0,160000\n".encode("cp949"))
    (row,) = read_file(file, TODAY).rows
    assert row.name == "삼성전자 DDR5-5600"


@pytest.mark.parametrize(
    ("head", "said"),
    [
        ("Id,Name,price\n", "not a date"),
        ("Id,Name,2026-07-02\n", "still to come"),
        ("Id,Name,\n", "no column"),
    ],
)
def test_a_table_whose_columns_are_no_days_is_refused_whole(head, said):
    with pytest.raises(UserError, match=said):
        read(f"{head}1,x,100000\n", "x.csv", TODAY)


def test_a_line_whose_quotes_never_end_is_refused_and_the_others_are_read():
    bad, good = read(f'{DAYS}1,x,0,"100\n2,y,0,5000\n', "x.csv", TODAY).rows
    assert (bad.line, bad.reason.id) == (2, "prices.row.broken")
    assert (good.line, good.amount) == (3, 5000)


def test_prices_of_earlier_days_are_counted_where_they_are_passed_over():
    found = preview(read(f'{DAYS}1,RTX 5070,"900,000","1,003,290"\n', "x.csv", TODAY))
    assert [row.read.amount for row in found.rows] == [1003290]
    assert found.older == 1
