"""In the window a name is text: no tags, pictures or formulas, where it is shown or copied."""

import re
from pathlib import Path

import fakes
import pytest
from foreign import NAMES
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from PySide6.QtCore import Qt
from PySide6.QtGui import Qt as Text  # mightBeRichText is of this one alone
from PySide6.QtGui import QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel, QWidget
from walk import SCREENS

import trainwright.ui
from trainwright.plan import file
from trainwright.plan.schema import Plan
from trainwright.ui.summary import summary
from trainwright.ui.tips import plain_tip
from trainwright.ui.widgets.copying import as_markdown, as_text
from trainwright.ui.widgets.table import Cell, Heading, TableModel

PICTURE = '<img src="nowhere.png"> <b>[*] & *x*</b>'


def shown(tip: str) -> str:
    """Return what a tooltip or label of Qt shows of a text."""
    page = QTextDocument()
    (page.setHtml if Text.mightBeRichText(tip) else page.setPlainText)(tip)
    return page.toPlainText()


@given(st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cf", "Zl", "Zp"))))
@example("<b>x</b>")
@example("a\n<img src='nowhere.png'>  b\n")
@example("x &lt; y")
def test_a_tooltip_shows_its_text(text: str) -> None:
    if "\ufffc" not in text:  # stands for a picture in Qt's documents
        assert shown(plain_tip(text)).replace("\xa0", " ") == text.replace("\xa0", " ")


def test_every_tooltip_is_plain() -> None:
    sources = Path(trainwright.ui.__file__).parent.rglob("*.py")
    lines = [line for path in sources for line in path.read_text(encoding="utf-8").splitlines()]
    set_here = [line for line in lines if re.search(r"\.setToolTip\(", line)]
    assert len(set_here) > 20
    assert [line for line in set_here if "setToolTip(plain_tip(" not in line] == []


def test_a_rows_tooltip_is_plain() -> None:
    model = TableModel()
    model.show([Heading("name", 100)], [PICTURE], lambda row: [Cell(row)])
    index = model.index(0, 0)
    assert shown(model.data(index, Qt.ItemDataRole.ToolTipRole)) == PICTURE
    assert model.data(index) == PICTURE


def test_a_plans_name_is_text_all_over_the_window(opened, qtbot, tmp_path: Path) -> None:
    named = file.read(fakes.EXAMPLE).model_copy(update={"name": PICTURE})
    path = tmp_path / "some.plan.yaml"
    file.write(Plan.model_validate(named.model_dump(exclude_unset=True)), path)
    window = opened(plan=path)
    assert window.windowTitle().startswith(PICTURE.replace("[*]", "[*][*]") + "[*]")
    for place in SCREENS:
        window.go(place)
        QTest.qWait(20)
    tips = [widget.toolTip() for widget in window.findChildren(QWidget) if widget.toolTip()]
    assert any("nowhere.png" in tip for tip in tips), "the title's"
    for tip in tips:
        assert ("<img" in shown(tip)) == ("nowhere.png" in tip)
    for label in window.findChildren(QLabel):
        assert label.textFormat() == Qt.TextFormat.PlainText or not Text.mightBeRichText(
            label.text()
        )
    page = MarkdownIt("commonmark").render(summary(window.session))
    assert "<img" not in page
    assert "&lt;img" in page


def test_a_jobs_name_is_text_in_its_tooltips(opened, qtbot) -> None:
    jobs = opened(plan=None).screen_named("mig").jobs
    QTest.qWait(50)
    for field, text in zip(jobs.rows[0], (PICTURE, "4", "1"), strict=False):
        QTest.keyClicks(field, text)
    jobs.arrange.click()
    qtbot.waitUntil(lambda: bool(jobs.placed), timeout=20_000)
    tips = [widget.toolTip() for widget in jobs.window().findChildren(QWidget)]
    named = [tip for tip in tips if "nowhere.png" in tip]
    assert len(named) >= 2, "on its row, and on its instance"
    assert all(PICTURE in shown(tip) for tip in named)


@pytest.mark.parametrize("name", NAMES)
def test_copied_figures_keep_their_columns_and_compute_nothing(name: str) -> None:
    rows = [(name, name), ("b", "−3 %")]
    first, second = as_text(rows).splitlines()
    assert second == "b\t−3 %"
    assert len(first.split("\t")) == 2
    assert not any(re.match(r"\s*[=@＝]|[-+]\d*\D", cell) for cell in first.split("\t"))
    page = MarkdownIt("commonmark").enable("table").render(as_markdown(rows))
    assert (page.count("<td"), page.count("<tr")) == (4, 3)
    assert set(re.findall(r"<(\w+)", page)) == {"table", "thead", "tbody", "tr", "th", "td"}
