"""Whatever is pasted, every line ends read or refused, and nothing but a sentence comes back."""

from datetime import date
from math import isfinite

from hypothesis import given
from hypothesis import strategies as st

from trainwright.messages import UserError, render
from trainwright.prices.imports import Refused, preview, read
from trainwright.prices.imports.reading import decoded

TODAY = date(2026, 7, 1)
PIECES = st.sampled_from(
    (
        *(
            "CPU",
            "Video Card",
            "**",
            "|",
            "\t",
            "\n",
            ",",
            '"',
            "_",
            "$",
            "₩",
            "만원",
            "원",
            "원/1GB",
        ),
        *("1,234.50", "0", "-5", "32GB", "RTX 4090", "Id,Name,2026-06-30\n", "NaN", "1e9", "USD"),
        *("part_or_name,unit_price\n", "(", ")", "@ Amazon", "[", "](https://x)", "합계", " ", ":"),
        *(
            "Type|Item|Price\n",
            "Purchased For ",
            "²",
            "٣",
            "\x85",
            "\u2028",
            "𝟝",
            ";",
            "2026-02-30",
        ),
        *("가격비교예정", "원/1GB", "𝟝", ";", "2026-02-30"),
    )
)


def outcome(text):
    try:
        return read(text, "paste", TODAY), None
    except UserError as error:
        return None, error.message


@given(st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=30).map("".join))
def test_any_text_is_read_or_refused(text):
    listing, problem = outcome(text)
    if problem is not None:
        assert "\n" not in render(problem, "ko")
        return
    found = preview(listing)
    assert sum(found.counts.values()) == len(listing.rows)
    for row in listing.rows:
        assert 1 <= row.line <= text.count("\n") + text.count("\r") + 1
        if isinstance(row, Refused):
            assert "prices.row" not in render(row.reason, "en")
        else:
            assert isfinite(row.amount)
            assert row.amount > 0
    assert all(one.observed <= TODAY for one in found.observations())


@given(st.binary(max_size=200))
def test_any_bytes_are_text_or_refused(content):
    try:
        text = decoded(content, "file")
    except UserError:
        return
    assert isinstance(text, str)
