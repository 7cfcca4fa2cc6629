"""The log of a deep model from those of two shallow ones of the same layers.

A model with one more period of layers runs the same calls with one more period in each place
where layers stand: forward, backward, the optimizer's lists. In such a *stretch* every number
of the log (storage, size, call) grows evenly with the place in the stretch and with the depth
of the model, since everything is numbered in order. So two depths say what a third does:
the logs are checked to be of that form, and continued. Where they are not, nothing is concluded.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwright.profile.trace import (
    ALLOC,
    COPY_DEAD,
    FREE,
    PACK,
    RELEASE,
    OpRow,
    RawSegment,
    RawTrace,
    TraceResult,
)

REPEATS = 2
"""Periods of a stretch that the shallower log must have: fewer would leave nothing to check."""

EDGES = 2
"""Layers at the ends, which meet something else than a layer of their kind."""

_TRIED = 4
"""Lengths of a period that are tried; assumed."""

_COLUMNS = 16
"""Numbers of one element at most: four and the dimensions of a call, the inputs of a block."""

_DEATHS = (FREE, RELEASE, COPY_DEAD)

_Table = NDArray[np.int64]


class RepeatError(Exception):
    """The two logs are not of one periodic form."""


def deeper(short: TraceResult, long: TraceResult, times: int) -> TraceResult:
    """Return the trace of ``short`` with ``times`` more periods; ``long`` has one more.

    Only the first point of each is looked at.

    Raises:
        RepeatError: the logs do not say it.
    """
    return replace(
        long,
        traces=(_trace(short.traces[0], long.traces[0], times),),
        model=_continued(short.model, long.model, times),
        assumptions=_continued(short.assumptions, long.assumptions, times),
        kernels=_continued(short.kernels, long.kernels, times),
        repeats=short.repeats and long.repeats,
        seconds=short.seconds + long.seconds,
    )


def _continued(short: dict[str, Any], long: dict[str, Any], times: int) -> dict[str, Any]:
    """Return the facts of the deep model: numbers grow evenly, the rest is the same."""
    if short.keys() != long.keys():
        raise RepeatError("other facts")
    found = {}
    for key, value in long.items():
        if isinstance(value, int) and not isinstance(value, bool):
            found[key] = value + (times - 1) * (value - short[key])
        elif value == short[key]:
            found[key] = value
        else:
            raise RepeatError(key)
    return found


def _trace(short: RawTrace, long: RawTrace, times: int) -> RawTrace:
    if (short.batch, short.sequence) != (long.batch, long.sequence):
        raise RepeatError("other points")
    if short.segments.keys() != long.segments.keys():
        raise RepeatError("other segments")
    rows: dict[OpRow, int] = {}
    segments = {name: _segment(short, long, name, times, rows) for name in short.segments}
    kinds = _continue(_categories(short), _categories(long), times)
    category = {number: kind for (kind, _), (number, *_) in kinds}
    return RawTrace(long.batch, long.sequence, segments, list(rows), category)


def _segment(
    short: RawTrace, long: RawTrace, name: str, times: int, rows: dict[OpRow, int]
) -> RawSegment:
    events, calls, inputs = (
        _continue(part(short, name), part(long, name), times) for part in (_events, _calls, _inputs)
    )
    ordered = list(_canonical((token[0], *numbers[:3]) for token, numbers in events))
    code, a, b, c = ([event[column] for event in ordered] for column in range(4))
    ops = [rows.setdefault(_row(*call), len(rows)) for call in calls]
    taken = {numbers[0]: numbers[1 : 1 + count] for count, numbers in inputs}
    return RawSegment(name, code, a, b, c, ops, taken)


def _canonical(events: Iterator[tuple[int, ...]]) -> Iterator[tuple[int, ...]]:
    """Yield the events with each run of deaths sorted, as the recorder leaves them."""
    run: list[tuple[int, ...]] = []
    for event in events:
        if event[0] in _DEATHS:
            run.append(event)
            continue
        yield from sorted(run)
        run.clear()
        yield event
    yield from sorted(run)


# The parts of a log as streams: what each element is, and the numbers that grow with the depth

_Element = tuple[Any, Sequence[int]]


def _events(trace: RawTrace, name: str) -> list[_Element]:
    segment = trace.segments[name]
    names = [trace.rows[row].name for row in segment.ops]

    def token(code: int, b: int, c: int) -> tuple[Hashable, ...]:
        maker = names[c] if code == ALLOC and c >= 0 else c < 0
        return code, maker, code == PACK and b == 0

    events = zip(segment.code, segment.a, segment.b, segment.c, strict=True)
    return [(token(code, b, c), (a, b, c)) for code, a, b, c in events]


def _calls(trace: RawTrace, name: str) -> list[_Element]:
    rows = [trace.rows[number] for number in trace.segments[name].ops]
    return [
        (
            (row.name, row.phase, row.dtype, len(row.dims), min(row.region, 0)),
            (row.region, row.flops, row.bytes_read, row.bytes_written, *row.dims),
        )
        for row in rows
    ]


def _row(token: tuple[Any, ...], numbers: Sequence[int]) -> OpRow:
    name, phase, dtype, dims, _ = token
    region, flops, read, written, *given = numbers
    return OpRow(name, phase, region, dtype, flops, read, written, tuple(given[:dims]))


def _inputs(trace: RawTrace, name: str) -> list[_Element]:
    inputs = sorted(trace.segments[name].inputs.items())
    return [(len(storages), (block, *storages)) for block, storages in inputs]


def _categories(trace: RawTrace) -> list[_Element]:
    born = {
        segment.a[place]: name
        for name, segment in trace.segments.items()
        for place, code in enumerate(segment.code)
        if code == ALLOC
    }
    found = sorted(trace.category.items())
    return [((kind, born.get(number)), (number,)) for number, kind in found]


# Continuing a stream


def _continue(
    short: Sequence[_Element], long: Sequence[_Element], times: int
) -> Iterator[tuple[Any, list[int]]]:
    """Yield the elements of the deep stream."""
    known: dict[Hashable, int] = {}
    one, other = (
        np.array([known.setdefault(token, len(known)) for token, _ in stream], dtype=np.int64)
        for stream in (short, long)
    )
    pair = _Pair(one, _table(short), other, _table(long))
    for first, numbers in pair.parts(times):
        for place, row in enumerate(numbers.tolist(), start=first):
            yield long[place][0], row


def _table(stream: Sequence[_Element]) -> _Table:
    """Return the numbers; (elements, columns)."""
    table = np.zeros((len(stream), _COLUMNS), dtype=np.int64)
    for row, (_, numbers) in zip(table, stream, strict=True):
        if len(numbers) > _COLUMNS:
            raise RepeatError("more numbers than there is room for")
        row[: len(numbers)] = numbers
    return table


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """What is left of the shorter and of the longer stream."""

    one: _Table
    """Tokens of the shorter, as numbers."""
    ours: _Table
    """Its numbers."""
    other: _Table
    theirs: _Table

    def after(self, short: int, long: int) -> "_Pair":
        """Return what is left behind so many elements of each."""
        return _Pair(self.one[short:], self.ours[short:], self.other[long:], self.theirs[long:])

    def parts(self, times: int) -> Iterator[tuple[int, _Table]]:
        """Yield (first place in the longer stream, numbers) of each part of the deep stream.

        Raises:
            RepeatError: the two are not of one periodic form.
        """
        rest, place = self, 0
        while len(rest.other):
            same = _common(rest.one, rest.other)
            if same == len(rest.one) == len(rest.other):
                yield place, rest.fixed(same, times)
                return
            start, period, repeats = rest.stretch(same)
            yield place, rest.fixed(start, times)
            for number in range(repeats + times):
                yield place + start, rest.repeated(start, period, number, times)
            long = start + (repeats + 1) * period
            rest, place = rest.after(start + repeats * period, long), place + long
        if len(rest.one):
            raise RepeatError("the longer stream lacks something")

    def fixed(self, count: int, times: int) -> _Table:
        """Return the numbers of the elements that come once, however deep the model is."""
        here, there = self.ours[:count], self.theirs[:count]
        deep: _Table = there + (times - 1) * (there - here)
        return deep

    def repeated(self, start: int, period: int, number: int, times: int) -> _Table:
        """Return the numbers of one period of a stretch."""
        here, there, following = (
            self.ours[start : start + period],
            self.theirs[start : start + period],
            self.theirs[start + period : start + 2 * period],
        )
        deep: _Table = here + times * (there - here) + number * (following - there)
        return deep

    def stretch(self, same: int) -> tuple[int, int, int]:
        """Return (start, period, repeats in the shorter) of the stretch that ends after ``same``.

        Where what follows begins as a layer does, it ends earlier.
        """
        for period in self.periods(same):
            for end in range(same, max(0, same - 2 * period), -1):
                if end < same and self.one[end] != self.other[end + period]:
                    break
                for repeats in range(end // period, REPEATS - 1, -1):
                    start = end - repeats * period
                    if self.is_even(start, period, repeats):
                        return start, period, repeats
        raise RepeatError("no period")

    def periods(self, same: int) -> list[int]:
        """Return how many elements the longer stream may have more here, likeliest first."""
        one, other = self.one[same:], self.other[same:]
        most = len(other) - len(one)
        matches = {count: _common(one, other[count:]) for count in range(1, most + 1)}
        likely = sorted(matches, key=lambda count: (-matches[count], count))[:_TRIED]
        return [most, *likely] if matches.get(most) == len(one) else likely

    def is_even(self, start: int, period: int, repeats: int) -> bool:
        """Whether the repeats have the same tokens, and numbers that grow evenly."""
        end = start + repeats * period
        one = self.one[start:end].reshape(repeats, period)
        other = self.other[start : end + period].reshape(repeats + 1, period)
        if not ((one == other[0]).all() and (other == other[0]).all()):
            return False
        here = self.ours[start:end].reshape(repeats, period, -1)
        there = self.theirs[start : end + period].reshape(repeats + 1, period, -1)
        steps = np.diff(there, axis=0)
        return bool((steps == steps[0]).all() and (np.diff(here, axis=0) == steps[0]).all())


def _common(one: _Table, other: _Table) -> int:
    """Return how many elements at the start are the same."""
    count = min(len(one), len(other))
    differs = np.flatnonzero(one[:count] != other[:count])
    return int(differs[0]) if len(differs) else count
