"""From a tracer's raw logs to a profile: one structure, sizes as exact polynomials."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from trainwright.profile.profile import (
    MONOMIALS,
    SCALE,
    Ints,
    OpTable,
    Profile,
    Segment,
    evaluate,
)
from trainwright.profile.trace import ALLOC, OpRow, RawSegment, RawTrace, TraceResult

DIMS = 7
"""Columns kept of ``OpRow.dims``."""

Point = tuple[int, int]


class StructureError(Exception):
    """Two points of one model do not share a sequence of events."""


def fit(result: TraceResult) -> Profile:
    """Return the profile of a traced structure.

    The first points of ``result`` are fitted, the last one only checks the fit, when there
    are more points than the fit needs. One point alone gives a profile for that point.

    Raises:
        StructureError: the points do not share one sequence of events.
    """
    traces = [_alike(trace) for trace in result.traces]
    basis = _basis([(trace.batch, trace.sequence) for trace in traces])
    fitted, checks = traces[: len(basis)], traces[len(basis) :]
    used = (*fitted, *checks)
    solver = _Solver([(trace.batch, trace.sequence) for trace in fitted], basis)
    sizes = _Rows()
    ops = _Rows()
    segments = {name: _segment(name, used, sizes, ops) for name in traces[0].segments}
    values = np.array(sizes.tuples, dtype=np.int64).reshape(len(sizes.tuples), len(used))
    coefficients, whole = solver(values[:, : len(fitted)])
    exact = whole and all(
        np.array_equal(evaluate(coefficients, trace.batch, trace.sequence), values[:, column])
        for column, trace in enumerate(used)
    )
    points = tuple((trace.batch, trace.sequence) for trace in used)
    return Profile(
        sizes=coefficients,
        segments=segments,
        ops=_op_table(ops.tuples, used, solver, len(fitted)),
        category=traces[0].category,
        model=result.model,
        assumptions=result.assumptions,
        kernels=result.kernels,
        versions=result.versions,
        exact=exact and bool(checks) and result.repeats,
        points=points,
        repeats=result.repeats,
    )


def _basis(points: Sequence[Point]) -> tuple[int, ...]:
    """Return the monomials (numbers into ``MONOMIALS``) that the points can determine."""
    batches = {batch for batch, _ in points[:-1]}
    lengths = {length for _, length in points[:-1]}
    degree = min(len(lengths), 3)
    if len(points) == 1:
        return (0,)
    if len(batches) == 1:
        return {1: (0,), 2: (0, 2), 3: (0, 2, 4)}[degree]
    return {1: (0, 1), 2: (0, 1, 2, 3), 3: (0, 1, 2, 3, 4, 5)}[degree]


def _alike(trace: RawTrace) -> RawTrace:
    """Return the trace with one op row for calls that differ only in the block they ran in."""
    numbers: dict[OpRow, int] = {}
    renumbered = []
    for row in trace.rows:
        inside = replace(row, region=min(row.region, 0))
        renumbered.append(numbers.setdefault(inside, len(numbers)))
    segments = {
        name: replace(segment, ops=[renumbered[row] for row in segment.ops])
        for name, segment in trace.segments.items()
    }
    return replace(trace, segments=segments, rows=list(numbers))


class _Solver:
    """Exact solution of the small linear system that the fitted points make."""

    def __init__(self, points: Sequence[Point], basis: tuple[int, ...]) -> None:
        exponents = ((0, 0), (1, 0), (0, 1), (1, 1), (0, 2), (1, 2))
        matrix = [
            [Fraction(batch ** exponents[m][0] * length ** exponents[m][1]) for m in basis]
            for batch, length in points
        ]
        self._inverse = _inverted(matrix)
        self._basis = basis
        self._known: dict[tuple[int, ...], tuple[list[int], bool]] = {}

    def __call__(self, values: Ints) -> tuple[Ints, bool]:
        """Return coefficients (rows, 6) and whether all are whole multiples of 1/SCALE."""
        rows = [self._solve(tuple(row)) for row in values.tolist()]
        solved = np.zeros((len(values), len(MONOMIALS)), dtype=np.int64)
        solved[:, self._basis] = np.array([row for row, _ in rows]).reshape(len(rows), -1)
        return solved, all(whole for _, whole in rows)

    def _solve(self, values: tuple[int, ...]) -> tuple[list[int], bool]:
        if values not in self._known:
            exact = [
                SCALE * sum((w * v for w, v in zip(weights, values, strict=True)), Fraction())
                for weights in self._inverse
            ]
            whole = all(value.denominator == 1 for value in exact)
            self._known[values] = [round(value) for value in exact], whole
        return self._known[values]


def _inverted(matrix: list[list[Fraction]]) -> list[list[Fraction]]:
    """Return the inverse by Gauss-Jordan elimination in exact arithmetic."""
    size = len(matrix)
    rows = [[*row, *(Fraction(int(i == j)) for j in range(size))] for i, row in enumerate(matrix)]
    for column in range(size):
        pivot = next(row for row in range(column, size) if rows[row][column])
        rows[column], rows[pivot] = rows[pivot], rows[column]
        lead = rows[column][column]
        rows[column] = [value / lead for value in rows[column]]
        for other in range(size):
            if other != column and (factor := rows[other][column]):
                rows[other] = [
                    value - factor * base
                    for value, base in zip(rows[other], rows[column], strict=True)
                ]
    return [row[size:] for row in rows]


class _Rows:
    """Distinct tuples in order of appearance."""

    def __init__(self) -> None:
        self.tuples: list[tuple[int, ...]] = []
        self._number: dict[tuple[int, ...], int] = {}

    def number(self, key: tuple[int, ...]) -> int:
        """Return the row number of the tuple, new ones at the end."""
        if key not in self._number:
            self._number[key] = len(self.tuples)
            self.tuples.append(key)
        return self._number[key]


def _segment(name: str, traces: Sequence[RawTrace], sizes: _Rows, ops: _Rows) -> Segment:
    main = traces[0].segments[name]
    # Further points need not repeat what the batch cannot change (optimizer, setup).
    others = [trace.segments.get(name, main) for trace in traces]
    _check_same_structure(others)
    operand = list(main.b)
    for index, code in enumerate(main.code):
        if code == ALLOC:
            operand[index] = sizes.number(tuple(segment.b[index] for segment in others))
    rows = [ops.number(key) for key in zip(*_op_rows(name, traces), strict=True)]
    return Segment(
        code=np.array(main.code, dtype=np.uint8),
        a=np.array(main.a, dtype=np.int32),
        b=np.array(operand, dtype=np.int32),
        c=np.array(main.c, dtype=np.int32),
        ops=np.array(rows, dtype=np.int32),
        inputs=tuple((block, tuple(ids)) for block, ids in sorted(main.inputs.items())),
    )


def _op_rows(name: str, traces: Sequence[RawTrace]) -> Iterator[list[int]]:
    """Yield each point's op rows; ``~row`` is a row of the main trace, for skipped segments."""
    for trace in traces:
        if name in trace.segments:
            yield trace.segments[name].ops
        else:
            yield [~row for row in traces[0].segments[name].ops]


def _check_same_structure(segments: Sequence[RawSegment]) -> None:
    main = segments[0]
    for other in segments[1:]:
        same = main.code == other.code and main.a == other.a and main.c == other.c
        same = same and len(main.ops) == len(other.ops)
        if not same:
            raise StructureError(main.name)


def _op_table(
    keys: Sequence[tuple[int, ...]], traces: Sequence[RawTrace], solver: _Solver, fitted: int
) -> OpTable:
    main = traces[0].rows
    rows = [
        [trace.rows[n] if n >= 0 else main[~n] for trace, n in zip(traces, key, strict=True)]
        for key in keys
    ]

    def solved(values: list[list[int]]) -> Ints:
        table = np.array(values, dtype=np.int64).reshape(len(rows), -1)[:, :fitted]
        return solver(table)[0]

    def dimension(n: int) -> Ints:
        return solved([[(*r.dims, *[0] * DIMS)[n] for r in row] for row in rows])

    first = [row[0] for row in rows]
    return OpTable(
        name=tuple(row.name for row in first),
        phase=tuple(row.phase for row in first),
        region=tuple(min(row.region, 0) for row in first),
        dtype=tuple(row.dtype for row in first),
        flops=solved([[r.flops for r in row] for row in rows]),
        bytes_read=solved([[r.bytes_read for r in row] for row in rows]),
        bytes_written=solved([[r.bytes_written for r in row] for row in rows]),
        dims=np.stack([dimension(n) for n in range(DIMS)], axis=1),
    )
