"""Text from outside comes out of each language's own reader as it went in."""

import csv
import io
import json
import re
import shlex
from html.parser import HTMLParser

import pytest
from foreign import NAMES
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from trainwright import quoting

TEXT = st.text(st.characters(codec="utf-8") | st.sampled_from("'\"=+-@\\<>&|\n\r\t\x1b\u2028"))


class Shown(HTMLParser):
    """What a page shows, and its tags."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text, self.tags = "", set[str]()
        self.feed(page)
        self.close()

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.text += "\n" if tag == "br" else ""


@given(TEXT | st.text())
def test_visible_text_is_one_printable_line_and_visible_already(text: str) -> None:
    shown = quoting.visible(text)
    assert len((shown + "x").splitlines()) == 1
    shown.encode()  # UTF-8 says it
    assert not re.search(r"[\0-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    assert quoting.visible(shown) == shown


@pytest.mark.parametrize(
    "text", ["RTX 4090 (24 GB)", "이름 📦 é", "12\u202f345\xa0USD", "가\u200d나"]
)
def test_what_people_write_stays_as_it_is(text: str) -> None:
    assert quoting.visible(text) == quoting.one_line(text) == text


def test_a_long_text_is_cut() -> None:
    assert quoting.one_line("a\n b" * 100, 10) == "a ba ba b…"


@given(TEXT | st.text(), st.sampled_from([None, 2]))
def test_json_comes_back_and_hides_nothing(text: str, indent: int | None) -> None:
    written = quoting.json_text({text: [text]}, indent=indent)
    assert json.loads(written) == {text: [text]}
    assert written.replace("\n", "") == quoting.visible(written.replace("\n", ""))
    written.encode()


@given(st.lists(TEXT, min_size=2, max_size=4))
@example(["a\rb", "c\u2028d"])
@example(["''=1", "'"])
def test_csv_comes_back_and_begins_no_formula(cells: list[str]) -> None:
    [row] = csv.reader(io.StringIO(quoting.csv_row(cells), newline=""), strict=True)
    assert [quoting.cell_text(cell) for cell in row] == cells
    for cell in row:
        number = re.fullmatch(r"[-+][\d., \xa0\u202f]*\d\S* ?%?", cell)
        assert number or not cell.startswith(("=", "+", "-", "@", "\t", "\r"))


def test_numbers_stay_numbers() -> None:
    row = quoting.csv_row([-1, 2.5, "-3", "+4.5e-3", "-12 %", "-1,234.50", None, "-1+1"])
    assert row == '-1,2.5,-3,+4.5e-3,-12 %,"-1,234.50",,\'-1+1\n'


@given(TEXT)
def test_a_shell_takes_text_for_one_word_and_a_comment_for_none(text: str) -> None:
    assert shlex.split(quoting.shell_word(text)) == [text]
    assert shlex.split(f"x  {quoting.shell_comment(text)}", comments=True) == ["x"]
    assert len(shlex.split(quoting.shell_comment(text))) == 2, "also where # is a word"


@pytest.mark.parametrize("text", NAMES)
def test_html_and_markdown_show_the_text(text: str) -> None:
    page = Shown(quoting.html(text))
    assert page.text == quoting.visible_lines(text)
    assert page.tags <= {"p", "br"}
    table = f"| a | b |\n|---|---|\n| {quoting.markdown(text)} | z |"
    shown = Shown(MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(table))
    assert shown.tags == {"table", "thead", "tbody", "tr", "th", "td"}
    assert [cell.strip() for cell in shown.text.split("\n") if cell.strip()] == [
        *"ab", quoting.visible(text).strip(), "z"
    ]  # fmt: skip
