"""The picture of a stack, pixel by pixel."""

import numpy as np
from PySide6.QtGui import QColor

from trainwright.ui.charts.raster import over, stacked

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
