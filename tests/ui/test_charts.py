"""Charts: pictures of stacks, pixel by pixel, and words that no line crosses."""

import numpy as np
import pytest
from PySide6.QtGui import QColor

from trainwright.ui import paint
from trainwright.ui.charts.raster import over, stacked
from trainwright.ui.charts.scatter import Point, Scatter

RED, BLUE, BLACK = QColor("#ff0000"), QColor("#0000ff"), QColor("#000000")


def test_each_column_is_filled_from_its_own_height_down():
    tops = np.array([[6.0, 6.0, 6.0], [4.0, 4.0, 2.0]])
    image = stacked(tops, [RED, BLUE], BLACK, 8)
    assert (image.width(), image.height()) == (3, 8)
    column = [image.pixelColor(0, y) for y in range(8)]
    assert [c.alpha() for c in column[:4]] == [0, 0, 0, 0]
    assert column[4:] == [BLACK, BLUE, RED, RED]
    # the line climbs where the next column is higher
    assert [image.pixelColor(2, y) for y in (2, 3, 4, 5)] == [BLACK, BLACK, BLACK, BLUE]


def test_a_stack_higher_than_the_picture_fills_it():
    image = stacked(np.array([[-5.0, -5.0]]), [RED], BLACK, 4)
    assert image.pixelColor(1, 3) == RED


def test_a_translucent_fill_is_mixed_with_its_ground():
    assert over(QColor(200, 0, 0), 0.5, QColor(0, 100, 0)) == QColor(100, 50, 0)
    assert over(RED, 1.0, BLUE) == RED


@pytest.mark.parametrize("limit", [11.2, 30.0, 55.0])
def test_the_line_of_the_limit_crosses_no_word(qtbot, limit):
    chart = Scatter()
    qtbot.addWidget(chart)
    chart.resize(340, 320)
    points = [Point(5.0 * n, 24.0 - n, f"{n}", True, best=True) for n in range(1, 11)]
    chart.show_points(points, limit)
    paint.runs = []
    chart.grab()
    runs, paint.runs = paint.runs, None
    at = chart._scales()[0](limit)
    axis = next(run for run in runs if "axis" in run.text)
    assert not axis.rect.left() < at < axis.rect.right()
