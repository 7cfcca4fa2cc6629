"""Readings over time in memory that never grows: the last minute in full, a day in decimation.

Each span keeps 600 bins of the least, mean and greatest value. A bin that nobody filled stays
empty: sleep, a lost GPU and a pause are gaps, never zeros.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trainwright.probe.monitor.readings import Series
from trainwright.probe.reading import Missing

BINS = 600
"""Per span: as many as the fastest pace fills in a minute, and about as many as a chart has
pixels."""
SPANS_S = (60, 600, 3600, 6 * 3600, 24 * 3600)
SERIES = 512
"""At most: 8 GPUs in 7 slices each take 9 + 8 · (12 + 7 · 5) = 385."""

_GROWTH = 32
"""Rows that are added at once, for machines with few GPUs to pay for few."""

Values = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Course:
    """A series over a span, oldest bin first; NaN where a bin is empty."""

    ages_s: NDArray[np.float64]
    """(bins,) seconds before now, of the middle of each bin."""
    low: Values
    mean: Values
    high: Values


@dataclass(frozen=True, slots=True)
class Summary:
    """What a series was over a span."""

    now: float
    low: float
    mean: float
    """Of all samples alike."""
    high: float


class Span:
    """Ring of bins for one span of time; rows are series."""

    def __init__(self, seconds: float, rows: int) -> None:
        self.width_s = seconds / BINS
        self._newest = -1
        shape = (rows, BINS)
        self._low = np.full(shape, np.inf, np.float32)
        self._high = np.full(shape, -np.inf, np.float32)
        self._sum = np.zeros(shape, np.float64)
        self._count = np.zeros(shape, np.uint16)

    def grow(self, rows: int) -> None:
        """Make room for further series."""
        more = rows - len(self._low)
        shape = (more, BINS)
        self._low = np.vstack([self._low, np.full(shape, np.inf, np.float32)])
        self._high = np.vstack([self._high, np.full(shape, -np.inf, np.float32)])
        self._sum = np.vstack([self._sum, np.zeros(shape, np.float64)])
        self._count = np.vstack([self._count, np.zeros(shape, np.uint16)])

    def add(self, at_s: float, values: Values) -> None:
        """Take a value for each row; NaN for those that have none."""
        number = int(at_s // self.width_s)
        if number > self._newest:
            self._clear(number)
            self._newest = number
        elif number <= self._newest - BINS:
            return  # older than everything that is kept
        place = number % BINS
        # fmin and fmax take the other value where one is NaN.
        self._low[:, place] = np.fmin(self._low[:, place], values)
        self._high[:, place] = np.fmax(self._high[:, place], values)
        there = ~np.isnan(values)
        self._sum[:, place] += np.where(there, values, 0)
        self._count[:, place] += there

    def _clear(self, upto: int) -> None:
        """Empty the bins between the newest so far and the one about to be filled."""
        first = max(self._newest + 1, upto - BINS + 1)
        places = np.arange(first, upto + 1) % BINS
        self._low[:, places] = np.inf
        self._high[:, places] = -np.inf
        self._sum[:, places] = 0
        self._count[:, places] = 0

    def course(self, row: int, now_s: float) -> Course:
        """Return a row's bins up to now, in their order."""
        last = int(now_s // self.width_s)
        numbers = np.arange(last - BINS + 1, last + 1)
        kept = (numbers > self._newest - BINS) & (numbers <= self._newest)
        places = numbers % BINS
        count = np.where(kept, self._count[row, places], 0)
        filled = count > 0
        nothing = np.float32(np.nan)
        mean = np.divide(
            self._sum[row, places], count, out=np.full(BINS, np.nan), where=filled
        ).astype(np.float32)
        middles = (numbers + 0.5) * self.width_s
        return Course(
            np.asarray(now_s - middles, np.float64),
            np.where(filled, self._low[row, places], nothing),
            mean,
            np.where(filled, self._high[row, places], nothing),
        )

    def mean(self, row: int, now_s: float) -> float:
        """Return the mean of all samples of a row that lie within the span; NaN for none."""
        last = int(now_s // self.width_s)
        numbers = np.arange(max(last - BINS + 1, self._newest - BINS + 1), self._newest + 1)
        places = numbers % BINS
        count = int(self._count[row, places].sum(dtype=np.int64))
        return float(self._sum[row, places].sum()) / count if count else float("nan")


class History:
    """All series over all spans. Not safe to share between threads without a lock."""

    def __init__(self) -> None:
        self._rows: dict[Series, int] = {}
        self._room = _GROWTH
        self._spans = {seconds: Span(seconds, self._room) for seconds in SPANS_S}
        self._latest = np.full(self._room, np.nan, np.float32)

    @property
    def series(self) -> tuple[Series, ...]:
        """Every series seen so far, in the order in which they came."""
        return tuple(self._rows)

    def add(self, at_s: float, values: Mapping[Series, float | Missing]) -> None:
        """Take the readings of one moment."""
        for series in values:
            if series not in self._rows and len(self._rows) < SERIES:
                self._rows[series] = len(self._rows)
        if len(self._rows) > self._room:
            self._grow()
        self._latest.fill(np.nan)
        for series, value in values.items():
            row = self._rows.get(series)
            if row is not None and not isinstance(value, Missing):
                self._latest[row] = value
        for span in self._spans.values():
            span.add(at_s, self._latest)

    def _grow(self) -> None:
        self._room = -(-len(self._rows) // _GROWTH) * _GROWTH
        self._latest = np.full(self._room, np.nan, np.float32)
        for span in self._spans.values():
            span.grow(self._room)

    def course(self, series: Series, seconds: int, now_s: float) -> Course | None:
        """Return a series over one of ``SPANS_S``; None where it was never seen."""
        row = self._rows.get(series)
        return None if row is None else self._spans[seconds].course(row, now_s)

    def summary(self, series: Series, seconds: int, now_s: float) -> Summary | None:
        """Return what a series was over a span; None where it has no reading within it."""
        row = self._rows.get(series)
        if row is None:
            return None
        span = self._spans[seconds]
        course = span.course(row, now_s)
        if np.isnan(course.mean).all():
            return None
        return Summary(
            float(self._latest[row]),
            float(np.nanmin(course.low)),
            span.mean(row, now_s),
            float(np.nanmax(course.high)),
        )
