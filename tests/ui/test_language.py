"""What people read is in their language: Qt's own words, digits, names and sentences."""

import fakes
import pytest
from babel import numbers
from PySide6.QtWidgets import QAbstractButton, QFileDialog, QLabel, QLineEdit

from trainwright.cli.run import run
from trainwright.messages import LANGUAGES, units
from trainwright.ui import filedialogs, i18n, money


@pytest.fixture(autouse=True)
def english_afterwards():
    yield
    i18n.use("en")


def test_file_dialogs_and_menus_of_fields_speak_korean_and_english_again(qtbot, monkeypatch):
    def said():
        shown = {}

        def look(dialog):
            parts = (*dialog.findChildren(QLabel), *dialog.findChildren(QAbstractButton))
            shown.update({part.text(): "" for part in parts if part.text()})
            return 0

        monkeypatch.setattr(QFileDialog, "exec", look)
        field = QLineEdit("text")
        qtbot.addWidget(field)
        assert filedialogs.file_to_read(field, "", "(*.yaml)") is None
        menu = field.createStandardContextMenu()
        return [*shown, *(action.text() for action in menu.actions() if action.text())]

    i18n.use("ko")
    korean = said()
    assert len(korean) >= 10
    assert [text for text in korean if not any("가" <= letter <= "힣" for letter in text)] == []
    i18n.use("en")
    assert not any("가" <= letter <= "힣" for text in said() for letter in text)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("value", [7, 999, 1450, 2421850, 1234567.4])
def test_digits_are_grouped_as_in_cldr(language, value):
    assert units.number(value, language) == numbers.format_decimal(round(value), locale=language)


def test_won_and_dollars_are_written_as_people_of_the_language_do():
    i18n.use("ko")
    assert money.amount(2_421_850, "KRW") == "2,421,850원"
    assert money.exact(129.99, "USD") == "$129.99"
    i18n.use("en")
    assert money.amount(2_421_850, "KRW") == numbers.format_currency(2421850, "KRW", locale="en")
    assert money.exact(1299, "EUR") == "€1,299"


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_thin_space_is_left_in_a_figure_of_the_command_line(language, monkeypatch, capsys):
    monkeypatch.setenv("LC_ALL", "ko_KR.UTF-8" if language == "ko" else "en_US.UTF-8")
    asked = ["build", str(fakes.EXAMPLE), "--budget", "3000000KRW", "--top", "1"]
    assert run(asked, lambda *_: 0) == 0
    printed = capsys.readouterr().out
    assert "," in printed
    assert "\u202f" not in printed
