"""The place Prices: a person enters one, reads a list, looks at it, and only then keeps it."""

from datetime import date, timedelta

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from trainwright.prices import Observation, exchange, own_prices
from trainwright.prices.imports import waiting
from trainwright.ui.screens.prices import PricesScreen

LIST = """Type|Item|Price
:--|:--|:--
 **Video Card** | [MSI TRIO OC GeForce RTX 5090 32 GB Video Card](https://x) | $3,499.99 @ Newegg
 **Video Card** | [Asus DUAL GeForce RTX 4060 Ti Video Card](https://x) | $399.00
 **Monitor** | [Dell U2723QE](https://x) | $499.00
 **CPU** | [AMD Ryzen 9 9950X](https://x) | -
"""


@pytest.fixture
def screen(opened) -> PricesScreen:
    window = opened(plan=None)
    found = window.screen_named("prices")
    assert isinstance(found, PricesScreen)
    return found


def enter(screen, part, amount):
    screen.one.part.setText(part)
    screen.one.amount.setText(amount)
    screen.one.keep.click()


def said(card):
    return card._says.text() if card._says.isVisible() else ""


def read(qtbot, screen, text):
    screen.paste.box.field.setPlainText(text)
    screen.paste.look.click()
    qtbot.waitUntil(
        lambda: screen.list.isVisible() or "below" in said(screen.paste), timeout=20_000
    )


def test_a_price_that_is_entered_is_kept_and_listed(screen):
    screen.one.condition.setCurrentIndex(1)
    enter(screen, "지포스 RTX 3090 24GB", "90만원")
    (one,) = own_prices.load().observations
    assert (one.part, one.amount, one.currency, one.kind) == ("rtx-3090", 900000, "KRW", "used")
    assert screen.kept.table.model().rowCount() == 1
    assert "GeForce RTX 3090" in said(screen.one)
    assert screen.one.part.text() == ""


@pytest.mark.parametrize(
    ("part", "amount", "told"),
    [
        ("RTX 4090", "-5", "below zero"),
        ("RTX 4090", "", "no price"),
        ("RTX 4090", "nan", "not an amount"),
        ("no such part", "5", "not a part"),
    ],
)
def test_what_cannot_be_kept_is_said_and_stays_to_be_put_right(screen, part, amount, told):
    enter(screen, part, amount)
    assert told in said(screen.one)
    assert screen.one.part.text() == part
    assert own_prices.load().observations == ()


def test_one_of_several_is_chosen(screen):
    screen.one.part.setText("RTX 4060 Ti")
    names = [screen.one.which.itemText(index) for index in range(screen.one.which.count())]
    assert names == ["GeForce RTX 4060 Ti 16GB", "GeForce RTX 4060 Ti 8GB"]
    screen.one.which.setCurrentIndex(1)
    enter(screen, "RTX 4060 Ti", "$400")
    assert own_prices.load().observations[0].part in ("rtx-4060-ti-16gb", "rtx-4060-ti-8gb")


def test_a_list_is_looked_at_row_by_row_before_it_is_kept(qtbot, screen):
    read(qtbot, screen, LIST)
    model = screen.list.table.model()
    states = [model.index(row, 3).data() for row in range(model.rowCount())]
    assert states == ["by its words", "which one?", "not in the catalog", "refused"]
    assert own_prices.load().observations == ()
    screen.list.table.setCurrentIndex(model.index(1, 0))
    which = screen.list.which
    which.setCurrentIndex(which.findText("GeForce RTX 4060 Ti 8GB"))
    which.activated.emit(which.currentIndex())
    screen.list.keep.click()
    assert {one.part for one in own_prices.load().observations} == {"rtx-5090", "rtx-4060-ti-8gb"}
    assert not screen.list.isVisible()
    assert screen.kept.table.model().rowCount() == 2


def test_a_row_that_nothing_matches_takes_a_name_that_is_typed(qtbot, screen):
    read(qtbot, screen, LIST)
    table = screen.list.table
    table.setCurrentIndex(table.model().index(2, 0))
    screen.list.other.setText("no such part")
    screen.list.other.returnPressed.emit()
    assert "not a part" in screen.list.row.text()
    screen.list.other.setText("RTX 4090")
    screen.list.other.returnPressed.emit()
    assert table.model().index(2, 4).data() == "rtx-4090"


def test_a_paste_that_is_no_list_says_what_would_be(qtbot, screen):
    screen.paste.box.field.setPlainText("what a nice day")
    screen.paste.look.click()
    qtbot.waitUntil(lambda: "not a list that we know" in said(screen.paste), timeout=20_000)
    assert not screen.list.isVisible()


def test_the_rate_is_set_and_forgotten(screen):
    screen.rate.rate.setText("1450")
    screen.rate.keep.click()
    assert exchange.load()[0].krw_per_usd == 1450
    assert "1,450" in said(screen.rate)
    screen.rate.forget.click()
    assert exchange.load()[0] is None
    screen.rate.rate.setText("0.7")
    screen.rate.keep.click()
    assert "cannot be right" in said(screen.rate)


def test_an_old_price_counts_again_once_it_is_confirmed(screen):
    old = Observation(
        part_kind="gpu", part="rtx-4090", amount=2500, currency="USD", kind="new",
        observed=date.today() - timedelta(days=200),
    )  # fmt: skip
    own_prices.add([old])
    screen.entered()
    assert screen.kept.table.model().index(0, 4).data() == "expired"
    screen.kept.still.click()
    assert [one.observed for one in own_prices.load().observations] == [old.observed, date.today()]
    assert screen.kept.table.model().index(0, 4).data() == "fresh"
    screen.kept.withdraw.click()
    assert own_prices.load().observations == (old,)


def test_rows_without_a_part_wait_with_a_count_and_are_matched_later(qtbot, screen):
    read(qtbot, screen, LIST)
    assert not screen.waiting.isVisible()
    assert "2 rows without a part will wait here." in screen.list.counts.text()
    screen.list.keep.click()
    assert screen.waiting.isVisible()
    assert [row.name for row in waiting.load().rows] == [
        "Asus DUAL GeForce RTX 4060 Ti Video Card", "Dell U2723QE",
    ]  # fmt: skip
    screen.waiting.look.click()
    qtbot.waitUntil(lambda: screen.list.isVisible(), timeout=20_000)
    table = screen.list.table
    table.setCurrentIndex(table.model().index(0, 0))
    assert "line 4" in screen.list.row.text()
    which = screen.list.which
    which.activated.emit(which.findText("GeForce RTX 4060 Ti 8GB"))
    screen.list.keep.click()
    assert {one.part for one in own_prices.load().observations} == {"rtx-5090", "rtx-4060-ti-8gb"}
    assert [row.name for row in waiting.load().rows] == ["Dell U2723QE"]
    screen.waiting.look.click()
    qtbot.waitUntil(lambda: screen.list.isVisible(), timeout=20_000)
    table.setCurrentIndex(table.model().index(0, 0))
    screen.list.gone.click()
    assert waiting.load().rows == ()
    assert "One row was discarded." in screen.waiting._says.text()
    screen.entered()
    assert not screen.waiting.isVisible()


def test_a_list_of_which_nothing_matches_waits_and_what_is_left_out_does_not(qtbot, screen):
    read(qtbot, screen, "part_or_name,unit_price,currency\nRTX 7090,$999,USD\nRTX 8090,$1,USD\n")
    assert screen.list.keep.text() == "Let 2 rows wait"
    screen.list.table.setCurrentIndex(screen.list.table.model().index(1, 0))
    which = screen.list.which
    assert which.currentText() == "Let it wait"
    which.activated.emit(which.findText("Leave it out"))
    assert which.currentText() == "Leave it out"
    assert screen.list.keep.text() == "Let 1 row wait"
    screen.list.keep.click()
    assert [row.name for row in waiting.load().rows] == ["RTX 7090"]


def test_undo_and_redo_go_through_prices_lists_and_the_rate_and_leave_others_alone(qtbot, screen):
    enter(screen, "RTX 4090", "$1,600")
    theirs = Observation(
        part_kind="gpu", part="rtx-3090", amount=700, currency="USD", kind="used",
        observed=date.today(),
    )  # fmt: skip
    own_prices.add([theirs])  # another window
    screen.rate.rate.setText("1450")
    screen.rate.keep.click()
    read(qtbot, screen, LIST)
    screen.list.keep.click()
    both = {one.part for one in own_prices.load().observations}
    assert {"rtx-4090", "rtx-3090", "rtx-5090"} <= both
    undo, redo = (screen.window().tools[name] for name in ("undo", "redo"))
    undo.click()  # the list
    assert {one.part for one in own_prices.load().observations} == {"rtx-4090", "rtx-3090"}
    assert waiting.load().rows == ()
    QTest.keyClick(screen, Qt.Key.Key_Z, Qt.KeyboardModifier.ControlModifier)  # the rate
    assert exchange.load()[0] is None
    undo.click()
    assert own_prices.load().observations == (theirs,)
    assert not undo.isEnabled()
    for _ in range(3):
        assert redo.isEnabled()
        redo.click()
    assert {one.part for one in own_prices.load().observations} == both
    assert exchange.load()[0].krw_per_usd == 1450
    assert len(waiting.load().rows) == 2


def test_a_price_withdrawn_by_mistake_comes_back(screen):
    enter(screen, "RTX 4090", "$1,600")
    before = own_prices.load().observations
    screen.kept.withdraw.click()
    assert own_prices.load().observations == ()
    assert screen.window().actions_by_id["undo"].text() == "Undo: Prices"
    screen.window().tools["undo"].click()
    assert own_prices.load().observations == before
    assert screen.kept.table.model().rowCount() == 1
