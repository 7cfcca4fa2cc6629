"""A profile must say, for any batch and length, what a trace there would say."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.profile.fit import StructureError, fit
from trainwright.profile.profile import evaluate
from trainwright.profile.trace import ALLOC, FREE, OpRow, RawSegment, RawTrace, TraceResult

LINEAR = ((2, 128), (3, 128), (2, 256), (3, 256), (5, 512))
QUADRATIC = ((2, 128), (3, 128), (2, 256), (3, 256), (2, 384), (3, 384), (5, 512))


def traced(points, sizes, *, flops=lambda b, s: 0):
    """A trace in which storage n has sizes[n](B, S) bytes and is freed in turn."""
    traces = []
    for batch, length in points:
        births = [size(batch, length) for size in sizes]
        count = len(births)
        segment = RawSegment(
            "micro",
            code=[ALLOC] * count + [FREE] * count,
            a=[*range(1, count + 1), *range(count, 0, -1)],
            b=[*births, *[0] * count],
            c=[*range(count), *[-1] * count],
            ops=list(range(count)),
            inputs={},
        )
        rows = [
            OpRow("aten.mm.default", "forward", n, "bfloat16", flops(batch, length), 0, size, (n,))
            for n, size in enumerate(births)
        ]
        traces.append(RawTrace(batch, length, {"micro": segment}, rows, {}))
    return TraceResult(tuple(traces), {}, {}, {}, True, {}, 0.0)


coefficients = st.tuples(*[st.integers(0, 10**7)] * 4)


@given(st.lists(coefficients, min_size=1, max_size=8), st.integers(1, 512), st.integers(1, 10**5))
def test_linear_sizes_are_exact_at_any_point(rows, batch, length):
    def size(k):
        return lambda b, s: k[0] + k[1] * b + k[2] * s + k[3] * b * s

    profile = fit(traced(LINEAR, [size(k) for k in rows]))
    assert profile.exact
    expected = [size(k)(batch, length) for k in rows]
    births = profile.segments["micro"].b[: len(rows)]
    assert evaluate(profile.sizes, batch, length)[births].tolist() == expected


def test_attention_scores_need_the_square_of_the_length():
    scores = [lambda b, s: 4 * b * 12 * s * s]
    assert not fit(traced(LINEAR, scores)).exact
    profile = fit(traced(QUADRATIC, scores))
    assert profile.exact
    assert evaluate(profile.sizes, 7, 1000).tolist() == [4 * 7 * 12 * 1000 * 1000]


def test_equal_sizes_of_different_growth_stay_apart():
    """At batch 2, length 128 both take 256 bytes; at other points they do not."""
    profile = fit(traced(LINEAR, [lambda b, s: b * s, lambda b, s: 2 * s]))
    first, second = profile.segments["micro"].b[:2]
    assert evaluate(profile.sizes, 8, 128)[[first, second]].tolist() == [1024, 256]


def test_a_size_that_is_no_polynomial_is_not_called_exact():
    profile = fit(traced(LINEAR, [lambda b, s: -(-s // 100) * 100 * b]))
    assert not profile.exact
    assert not profile.answers(4, 300)


def test_steps_that_do_not_repeat_are_not_called_exact():
    result = traced(LINEAR, [lambda b, s: b * s])
    assert fit(result).exact
    restless = fit(replace(result, repeats=False))
    assert not restless.exact
    assert not restless.repeats


def test_one_point_answers_only_for_itself():
    profile = fit(traced(((2, 77),), [lambda b, s: b * s]))
    assert profile.answers(2, 77)
    assert not profile.answers(3, 77)


def test_a_changed_sequence_of_events_is_refused():
    result = traced(LINEAR, [lambda b, s: b])
    odd = traced(LINEAR[:1], [lambda b, s: b, lambda b, s: s])
    with pytest.raises(StructureError):
        fit(TraceResult((*result.traces[:-1], odd.traces[0]), {}, {}, {}, True, {}, 0.0))


def test_blocks_share_op_rows_and_costs_are_fitted():
    result = traced(LINEAR, [lambda b, s: b * s] * 5, flops=lambda b, s: 2 * b * s * 4096)
    ops = fit(result).ops
    assert len(ops.name) == 5  # Their dims differ; five equal ones would be one row.
    assert evaluate(ops.flops, 4, 2048).tolist() == [2 * 4 * 2048 * 4096] * 5
    assert np.array_equal(evaluate(ops.dims[:, 0], 4, 2048), np.arange(5))
