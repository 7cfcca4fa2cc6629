"""The log of a deep model from those of two shallow ones of the same layers.

A model with one more period of layers runs the same calls with one more period in each place
where layers stand: forward, backward, the optimizer's lists. In such a *stretch* every number
of the log (storage, size, call) grows evenly with the place in the stretch and with the depth
of the model, since everything is numbered in order. So two depths say what a third does:
the log is checked to be of that form, and continued. Where it is not, nothing is concluded.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, fields, replace
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

_DEATHS = (FREE, RELEASE, COPY_DEAD)
_NUMBERS = ("region", "flops", "bytes_read", "bytes_written")

Table = NDArray[np.int64]


class RepeatError(Exception):
    """The two logs are not of one periodic form."""


def deeper(short: TraceResult, long: TraceResult, times: int) -> TraceResult:
    """Return the trace of ``short`` with ``times`` more periods; ``long`` has one more.

    Only the first point of each is looked at.

    Raises:
        RepeatError: the logs do not say it.
    """
    trace = _trace(short.traces[0], long.traces[0], times)
    return replace(
        long,
        traces=(trace,),
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
            value += (times - 1) * (value - short[key])
        elif value != short[key]:
            raise RepeatError(key)
        found[key] = value
    return found


def _trace(short: RawTrace, long: RawTrace, times: int) -> RawTrace:
    if (short.batch, short.sequence) != (long.batch, long.sequence):
        raise RepeatError("other points")
    if short.segments.keys() != long.segments.keys():
        raise RepeatError("other segments")
    rows: dict[OpRow, int] = {}
    segments = {
        name: _segment(short, long, name, times, rows) for name in short.segments
    }
    names, ids = _Stream.joined(_categories(short), _categories(long), times)
    category = {number: kind for number, (kind, _) in zip(ids[:, 0].tolist(), names, strict=True)}
    return RawTrace(long.batch, long.sequence, segments, list(rows), category)


def _segment(
    short: RawTrace, long: RawTrace, name: str, times: int, rows: dict[OpRow, int]
) -> RawSegment:
    tokens, events = _Stream.joined(_events(short, name), _events(long, name), times)
    calls, numbers = _Stream.joined(_calls(short, name), _calls(long, name), times)
    sizes, inputs = _Stream.joined(_inputs(short, name), _inputs(long, name), times)
    ordered = list(_canonical([token[0] for token in tokens], events))
    code, a, b, c = (list(column) for column in zip(*ordered, strict=True)) if ordered else [[]] * 4
    ops = [rows.setdefault(_row(*call), len(rows)) for call in zip(calls, numbers.tolist(), strict=True)]
    return RawSegment(
        name, code, a, b, c, ops,
        {row[0]: row[1 : 1 + size] for size, row in zip(sizes, inputs.tolist(), strict=True)},
    )  # fmt: skip


def _canonical(codes: Sequence[int], events: Table) -> Iterator[tuple[int, int, int, int]]:
    """Yield the events with each run of deaths sorted, as the recorder leaves them."""
    run = []
    for code, (a, b, c) in zip(codes, events.tolist(), strict=True):
        if code in _DEATHS:
            run.append((code, a, b, c))
            continue
        yield from sorted(run)
        run.clear()
        yield code, a, b, c
    yield from sorted(run)


# The parts of a log as streams: what each element is, and the numbers that grow with the depth


@dataclass(frozen=True, slots=True)
class _Stream:
    tokens: Sequence[Hashable]
    numbers: Table
    """(elements, columns)."""

    @staticmethod
    def joined(
        short: "_Stream", long: "_Stream", times: int
    ) -> tuple[list[Any], Table]:
        """Return tokens and numbers of the deep stream."""
        known: dict[Hashable, int] = {}
        one, other = (
            np.array([known.setdefault(t, len(known)) for t in s.tokens], dtype=np.int64)
            for s in (short, long)
        )
        order, numbers = _deep(one, short.numbers, other, long.numbers, times)
        return [long.tokens[place] for place in order.tolist()], numbers


def _stream(elements: Sequence[tuple[Hashable, Sequence[int]]], columns: int) -> _Stream:
    numbers = np.array([numbers for _, numbers in elements], dtype=np.int64)
    return _Stream([token for token, _ in elements], numbers.reshape(len(elements), columns))


def _events(trace: RawTrace, name: str) -> _Stream:
    segment = trace.segments[name]
    names = [trace.rows[row].name for row in segment.ops]
    return _stream(
        [
            (
                (
                    code,
                    names[c] if code == ALLOC and c >= 0 else c < 0,
                    code == PACK and b == 0,
                ),
                (a, b, c),
            )
            for code, a, b, c in zip(segment.code, segment.a, segment.b, segment.c, strict=True)
        ],
        3,
    )


def _calls(trace: RawTrace, name: str) -> _Stream:
    width = max((len(row.dims) for row in trace.rows), default=0)
    elements = []
    for number in trace.segments[name].ops:
        row = trace.rows[number]
        dims = (*row.dims, *[0] * (DIMS_MOST - len(row.dims)))
        token = (row.name, row.phase, row.dtype, len(row.dims), min(row.region, 0))
        elements.append((token, (*(getattr(row, field) for field in _NUMBERS), *dims)))
    assert width <= DIMS_MOST
    return _stream(elements, len(_NUMBERS) + DIMS_MOST)


DIMS_MOST = 8
"""More than any call has (``OpRow.dims``)."""


def _row(token: tuple[Any, ...], numbers: list[int]) -> OpRow:
    name, phase, dtype, dims, _ = token
    region, flops, read, written = numbers[:4]
    return OpRow(name, phase, region, dtype, flops, read, written, tuple(numbers[4 : 4 + dims]))


def _inputs(trace: RawTrace, name: str) -> _Stream:
    inputs = trace.segments[name].inputs
    width = 1 + max((len(ids) for ids in inputs.values()), default=0)
    return _stream(
        [(len(ids), (block, *ids, *[0] * (INPUTS_MOST - len(ids)))) for block, ids in sorted(inputs.items())],
        1 + INPUTS_MOST,
    )


INPUTS_MOST = 64


def _categories(trace: RawTrace) -> _Stream:
    born = {
        segment.a[place]: name
        for name, segment in trace.segments.items()
        for place, code in enumerate(segment.code)
        if code == ALLOC
    }
    found = sorted(trace.category.items())
    return _stream([((kind, born.get(number)), (number,)) for number, kind in found], 1)


# Continuing a stream


def _deep(
    one: Table, ours: Table, other: Table, theirs: Table, times: int
) -> tuple[Table, Table]:
    """Return places in the longer stream, and numbers, of the elements of the deep one.

    Args:
        one: Tokens of the shorter stream.
        ours: Its numbers.
        other: Tokens of the longer stream.
        theirs: Its numbers.
        times: Periods that the deep one has more than the shorter.
    """
    places, numbers = [], []

    def fixed(i: int, j: int, count: int) -> None:
        places.append(np.arange(j, j + count))
        here, there = ours[i : i + count], theirs[j : j + count]
        numbers.append(there + (times - 1) * (there - here))

    i = j = 0
    while j < len(other):
        same = _common(one[i:], other[j:])
        if i + same == len(one) and j + same == len(other):
            fixed(i, j, same)
            break
        found = _stretch(one[i:], ours[i:], other[j:], theirs[j:], same)
        start, period, repeats = found
        fixed(i, j, start)
        here = ours[i + start : i + start + period]
        there = theirs[j + start : j + start + period]
        step = theirs[j + start + period : j + start + 2 * period] - there
        for number in range(repeats + times):
            places.append(np.arange(j + start, j + start + period))
            numbers.append(here + times * (there - here) + number * step)
        i += start + repeats * period
        j += start + (repeats + 1) * period
    if not places:
        return np.zeros(0, np.int64), theirs[:0]
    return np.concatenate(places), np.concatenate(numbers)


def _common(one: Table, other: Table) -> int:
    """Return how many elements at the start are the same."""
    count = min(len(one), len(other))
    differs = np.flatnonzero(one[:count] != other[:count])
    return int(differs[0]) if len(differs) else count


def _stretch(
    one: Table, ours: Table, other: Table, theirs: Table, same: int
) -> tuple[int, int, int]:
    """Return (start, period, repeats in the shorter) of the stretch that ends after ``same``.

    Raises:
        RepeatError: there is none.
    """
    for period in _periods(one[same:], other[same:]):
        for back in range(min(same, 2 * period)):
            place = same - back
            if back and one[place] != other[place + period]:
                break
            for repeats in range(place // period, REPEATS - 1, -1):
                start = place - repeats * period
                if _even(one, ours, other, theirs, start, period, repeats):
                    return start, period, repeats
    raise RepeatError("no period")


def _periods(one: Table, other: Table) -> list[int]:
    """Return how long the surplus at the start of ``other`` may be, likeliest first."""
    most = len(other) - len(one)
    matches = {d: _common(one, other[d:]) for d in range(1, most + 1)}
    likely = sorted(matches, key=lambda d: (-matches[d], d))[:CANDIDATES]
    return [most, *likely] if most > 0 and matches[most] == len(one) else likely


CANDIDATES = 4
"""Lengths of a period that are tried; assumed."""


def _even(
    one: Table, ours: Table, other: Table, theirs: Table, start: int, period: int, repeats: int
) -> bool:
    """Whether all repeats have the same tokens, and numbers that grow evenly."""
    end = start + repeats * period
    shape = (repeats, period)
    tokens = other[start : end + period].reshape(repeats + 1, period)
    if not (tokens == tokens[0]).all() or not (one[start:end].reshape(shape) == tokens[0]).all():
        return False
    here = ours[start:end].reshape(*shape, -1)
    there = theirs[start : end + period].reshape(repeats + 1, period, -1)
    step = np.diff(there, axis=0)
    return bool((step == step[0]).all() and (np.diff(here, axis=0) == step[0]).all())
