"""The catalog's browser as its reader uses it."""

from csv import reader
from io import StringIO
from itertools import permutations, product
from typing import get_args

import pytest
from PySide6.QtCore import QModelIndex, QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QMenu

from trainwright.catalog import GpuRecord, find_cpu, find_gpu, list_parts
from trainwright.catalog.part_kinds import KINDS as RECORDS
from trainwright.catalog.part_kinds import PartKind
from trainwright.catalog.sources import documents
from trainwright.messages import Message, render
from trainwright.ui.columns import COLUMNS, HIDDEN, Shelf, kind_of, lines
from trainwright.ui.screens.catalog import KINDS
from trainwright.ui.widgets.parttable import PartTable, is_low


def catalog(opened):
    window = opened()
    window.go("catalog")
    return window, window.screen_named("catalog")


def names(screen):
    parts = screen.table.parts
    return [record.name for record in parts.rows]


def said(widget):
    QApplication.processEvents()
    return " ".join(label.text() for label in widget.findChildren(QLabel) if label.isVisible())


def test_typing_filters_the_table(opened, qtbot):
    _, screen = catalog(opened)
    QTest.keyClicks(screen.field, "4090")
    found = names(screen)
    assert "GeForce RTX 4090" in found
    assert all("4090" in name for name in found)
    QTest.keyClicks(screen.field, " no such thing")
    assert names(screen) == []
    assert "No part has all these words." in said(screen.pane)


def test_words_without_spaces_find_a_part_too(opened, qtbot):
    _, screen = catalog(opened)
    QTest.keyClicks(screen.field, "rtx4090")
    assert "GeForce RTX 4090" in names(screen)


def test_a_click_on_a_heading_sorts_and_unknown_values_come_last_either_way(opened, qtbot):
    _, screen = catalog(opened)
    column = next(i for i, c in enumerate(COLUMNS["gpu"]) if c.field == "tdp_w")
    for order, sign in ((Qt.SortOrder.AscendingOrder, 1), (Qt.SortOrder.DescendingOrder, -1)):
        screen.table.sortByColumn(column, order)
        parts = screen.table.parts
        values = [COLUMNS["gpu"][column].value(record) for record in parts.rows]
        known = [value for value in values if value is not None]
        assert known == sorted(known, key=lambda value: sign * value)
        assert None in values
        assert all(value is None for value in values[len(known) :])


def test_each_kind_follows_each_other_whatever_column_that_was_sorted_by(opened, qtbot):
    _, screen = catalog(opened)
    for before, after in permutations(KINDS, 2):
        screen.show_tab(before)
        screen.table.sortByColumn(len(COLUMNS[before]) - 1, Qt.SortOrder.DescendingOrder)
        screen.show_tab(after)
        assert sorted(names(screen)) == sorted(record.name for record in list_parts(after))
        assert {kind_of(record) for record in screen.table.parts.rows} == {after}


def test_a_table_has_an_answer_to_whatever_qt_asks(qapp):
    table = PartTable()
    roles = [role.value for role in Qt.ItemDataRole if role < Qt.ItemDataRole.UserRole]
    shelves = (Shelf("case", list_parts("case")), Shelf("psu", ()), Shelf("gpu", list_parts("gpu")))
    old = table.parts.index(0, 0)
    for shelf, text in product(shelves, ("", "no such part", "a")):
        table.show_shelf(shelf, text)
        model = table.parts
        for column, order in product((-1, 0, 9, 99), Qt.SortOrder):
            model.sort(column, order)
        last = model.index(len(model.rows) - 1, len(shelf.columns) - 1)
        for index, role in product((QModelIndex(), old, last), (*roles, -1)):
            model.data(index, role)
            model.cell(index)
        for section, way in product((-1, 0, 9, 99), Qt.Orientation):
            model.headerData(section, way)
        old = last  # of what is no longer shown


def test_a_cell_says_where_its_value_comes_from(opened, qtbot):
    _, screen = catalog(opened)
    screen.show_tab("cpu")
    screen.table.show_part("ryzen-9-7950x")
    column = next(i for i, c in enumerate(COLUMNS["cpu"]) if c.field == "memory_channels")
    index = screen.table.currentIndex()
    screen.table.setCurrentIndex(screen.table.parts.index(index.row(), column))
    text = said(screen.pane).replace("\u200b", "")
    assert "Channels: 2" in text
    assert find_cpu("ryzen-9-7950x").provenance("memory_channels").source in text


def test_little_confidence_is_marked_in_the_cell_and_for_screen_readers(opened, qtbot):
    _, screen = catalog(opened)
    parts, role = screen.table.parts, Qt.ItemDataRole.AccessibleTextRole
    marked = {True: 0, False: 0}
    for row, record in enumerate(parts.rows):
        for number, column in enumerate(screen.table.shelf.columns):
            low = is_low(column, record)
            spoken = parts.data(parts.index(row, number), role)
            assert ("low confidence" in spoken) == low
            marked[low] += 1
    assert marked[True] > 100
    assert marked[False] > 100


def test_an_unknown_value_is_no_zero(opened, qtbot):
    _, screen = catalog(opened)
    parts = screen.table.parts
    column = next(i for i, c in enumerate(COLUMNS["gpu"]) if c.field == "tdp_w")
    row = next(number for number, record in enumerate(parts.rows) if record.tdp_w is None)
    assert parts.data(parts.index(row, column)) == "–"
    spoken = parts.data(parts.index(row, column), Qt.ItemDataRole.AccessibleTextRole)
    assert spoken == "Power, W: unknown"


def test_a_part_goes_into_the_plan_and_undo_takes_it_out(opened, qtbot):
    window, screen = catalog(opened)
    screen.show_tab("cpu")
    screen.table.show_part("ryzen-9-9950x")
    screen.pane.wanted.emit(screen.pane.record)
    assert window.session.plan.machine.cpu == "ryzen-9-9950x"
    assert "AMD Ryzen 9 9950X" in window.notice.text
    window.undo()
    assert window.session.plan.machine.cpu == "ryzen-9-7950x"


def test_a_drive_comes_beside_those_that_are_there(opened, qtbot):
    window, screen = catalog(opened)
    before = [drive.id for drive in window.session.plan.machine.drives]
    screen.show_tab("storage")
    screen.pane.wanted.emit(screen.pane.record)
    after = [drive.id for drive in window.session.plan.machine.drives]
    assert after == [*before, screen.pane.record.id]


@pytest.mark.parametrize("language", ["en", "ko"])
def test_every_field_of_every_kind_has_a_name(language):
    fields = {column.field for columns in COLUMNS.values() for column in columns}
    for record in (GpuRecord, *(kind.record for kind in RECORDS.values())):
        fields |= {field for field in record.model_fields if field not in HIDDEN}
    for field in fields:
        id = f"pc.field.{field.replace('.', '-').replace('_', '-')}"
        assert render(Message.of(id), language) != id


def test_every_value_of_a_part_is_listed_with_its_source():
    cpu = find_cpu("ryzen-9-7950x")
    by_field = {line.field: line for line in lines(cpu)}
    assert by_field["max_power_w"].value == "230 W"
    assert by_field["max_power_w"].origin == cpu.provenance("max_power_w")
    assert documents("vendor-cpu-pages (recalled), agrees with opendb")[1].startswith("BuildCores")


def test_a_card_lists_what_cuda_offered_of_its_memory():
    by_field = {line.field: line for line in lines(find_gpu("rtx-3090").record)}
    assert "GiB · Linux · 20" in by_field["capacities"].value


def test_every_kind_can_be_filtered_and_sorted_by_every_column():
    for kind in get_args(PartKind):
        shelf = Shelf(kind, list_parts(kind))
        for column in range(len(shelf.columns)):
            for descending in (False, True):
                assert sorted(shelf.find("", column, descending=descending)) == list(
                    range(len(shelf.records))
                )


def test_the_catalogue_is_copied_with_its_heads_as_text_markdown_and_csv(opened):
    window = opened()
    window.go("catalog")
    table = window.screen_named("catalog").table
    table.customContextMenuRequested.emit(QPoint(4, 4))
    menu = table.findChild(QMenu)
    text, markdown, csv, _image = menu.actions()
    copied = {}
    for name, action in (("text", text), ("markdown", markdown), ("csv", csv)):
        action.trigger()
        copied[name] = QGuiApplication.clipboard().text()
    menu.close()
    rows = list(reader(StringIO(copied["csv"])))
    assert len(rows) == table.parts.rowCount() + 1
    assert rows[0] == table.heads()
    assert {len(row) for row in rows} == {len(rows[0])}
    assert any(cell == "GeForce RTX 4090" for row in rows for cell in row)
    assert len(copied["text"].splitlines()) == len(rows)
    assert len(copied["markdown"].splitlines()) == len(rows) + 1


def test_the_pane_says_what_a_part_costs_new_and_used_and_how_that_is_known(opened, qtbot):
    _, screen = catalog(opened)
    screen.show_part(find_gpu("rtx-3090").record)
    text = said(screen.pane)
    assert "≈$2,011 (launch price, 2020-09-24)" in text
    assert "≈$700 (used, assumed, 2026-06-30)" in text
    screen.show_part(find_cpu("ryzen-9-9950x"))
    text = said(screen.pane)
    assert "(assumed, 2025-07-31)" in text
    assert "used" not in text, "nobody says"
