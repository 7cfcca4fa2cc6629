"""Filter and sort of the catalog's table: printed, never judged by the clock."""

import statistics
import time

from trainwright.catalog import list_parts
from trainwright.ui.columns import COLUMNS, Shelf
from trainwright.ui.widgets.parttable import PartTable

ROWS = 10_000


def test_typing_and_sorting_in_ten_thousand_rows(qapp):
    gpus = list_parts("gpu")
    records = [gpus[number % len(gpus)] for number in range(ROWS)]
    table = PartTable()
    table.show_shelf(Shelf("gpu", records))
    model = table.parts
    assert model.rowCount() == ROWS
    for column in range(model.columnCount()):
        model.sort(column)
    took = []
    for text in ("r", "rt", "rtx", "rtx 4", "rtx 40", "rtx 409", "rtx 4090", "", "blackwell 16"):
        for column in range(model.columnCount()):
            start = time.perf_counter()
            model.sort(column)
            table.filter(text)
            took.append(time.perf_counter() - start)
    most = max(took) * 1000
    print(
        f"filter and sort of {ROWS} rows: {statistics.median(took) * 1000:.1f} ms, most {most:.1f}"
    )
    shown = {record.name for record in model.rows}
    assert all("blackwell" in COLUMNS["gpu"][7].text(gpu).casefold()
               for gpu in gpus if gpu.name in shown)  # fmt: skip
    first = time.perf_counter()
    Shelf("gpu", records).find("rtx", 1)
    print(f"a first look at {ROWS} rows: {(time.perf_counter() - first) * 1000:.0f} ms")
