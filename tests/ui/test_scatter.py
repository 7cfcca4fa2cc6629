"""The chart of memory against time: what it writes is not crossed by what it draws."""

import pytest

from trainwright.ui import paint
from trainwright.ui.charts.scatter import Point, Scatter


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
