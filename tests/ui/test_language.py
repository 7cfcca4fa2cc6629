"""What people read is in their language: Qt's own words, digits, names and sentences."""

import pytest
from PySide6.QtWidgets import QAbstractButton, QFileDialog, QLabel, QLineEdit

from trainwright.ui import filedialogs, i18n


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
