"""A stored profile comes back as it was, and a damaged one is refused in words."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.messages import UserError
from trainwright.profile import codec
from trainwright.profile.profile import OpTable, Profile, Segment

numbers = st.integers(0, 2**20)
events = st.lists(st.tuples(st.integers(0, 7), numbers, numbers, st.integers(-1, 2**20)))


def profile(rows):
    table = np.array(rows, dtype=np.int32).reshape(-1, 4)
    segment = Segment(
        code=table[:, 0].astype(np.uint8),
        a=table[:, 1].copy(),
        b=table[:, 2].copy(),
        c=table[:, 3].copy(),
        ops=np.array([0, 0, 0], dtype=np.int32),
        inputs=((0, (1, 2)), (1, ())),
    )
    ops = OpTable(
        ("aten.mm.default",),
        ("forward",),
        (-2,),
        ("bfloat16",),
        *[np.arange(6, dtype=np.int64).reshape(1, 6)] * 3,
        np.zeros((1, 7, 6), dtype=np.int64),
    )
    return Profile(
        sizes=np.full((2, 6), 1 << 40, dtype=np.int64),
        segments={"micro": segment},
        ops=ops,
        category={3: "parameter", 9: "gradient"},
        model={"parameters": 7},
        assumptions={"item": 1},
        kernels={"flash": 2},
        versions={"torch": "2.13.0"},
        exact=True,
        points=((2, 128),),
    )


@given(events)
def test_round_trip(rows):
    before = profile(rows)
    after = codec.decode(codec.encode(before))
    one, other = before.segments["micro"], after.segments["micro"]
    for field in ("code", "a", "b", "c", "ops"):
        assert np.array_equal(getattr(one, field), getattr(other, field)), field
    assert one.inputs == other.inputs
    assert after.category == before.category
    assert after.ops.name == before.ops.name
    assert np.array_equal(after.sizes, before.sizes)
    assert (after.model, after.points, after.exact) == (before.model, before.points, True)


@given(st.binary(max_size=200))
def test_junk_is_refused_in_words(data):
    with pytest.raises(UserError):
        codec.decode(data)


@given(st.integers(0, 400), st.integers(0, 255))
def test_a_flipped_byte_never_escapes_as_another_error(position, value):
    data = bytearray(codec.encode(profile([(0, 1, 0, 0)])))
    data[position % len(data)] = value
    with suppress(UserError):
        codec.decode(bytes(data))
