"""NF4 layers of one generated token multiply packed weights, those of several unpack them."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from trainwright.estimate.time.roofline import CLASSES, Classified
from trainwright.estimate.time.traffic import multiplied_packed
from trainwright.profile.profile import SCALE

PACKED, WIDE, INPUT = 9_437_184, 33_554_432, 8_192
NAMES = ("trainwright.dequantize_nf4.default", "aten.mm.default", "aten.mm.default")
"""A layer's weights of 4096 x 4096, its product, and the head's, which nobody packs."""


def layer() -> tuple[Classified, Any]:
    def of(*values: int) -> Any:
        table = np.zeros((3, 6), dtype=np.int64)
        table[:, 0] = values
        return table

    read, written = of(PACKED, WIDE + INPUT, 10 * WIDE), of(WIDE, INPUT, INPUT)
    ops = SimpleNamespace(name=NAMES, bytes_read=read * SCALE, bytes_written=written * SCALE)
    runs = np.array([0, 1, 0, 1, 2])
    profile = SimpleNamespace(ops=ops, segments={"decode": SimpleNamespace(ops=runs)})
    group = np.array([CLASSES.index(name) for name in ("pointwise", "gemm", "gemm")], np.uint8)
    nothing = np.zeros((3, 6))
    table = Classified(
        flops=nothing,
        bytes=(read + written).astype(float),
        dims=np.zeros((7, 3, 6)),
        group=group,
        dtype=group,
        dtypes=("bfloat16",),
        backward=np.zeros(3, dtype=np.bool_),
        attended=np.zeros(3),
    )
    return table, profile


def test_the_packed_weights_are_read_and_nothing_is_written_out() -> None:
    table, profile = layer()
    found = multiplied_packed(table, profile)
    assert found.group[0] == CLASSES.index("view")
    assert found.bytes[1, 0] == PACKED + 2 * INPUT
    assert found.bytes[2, 0] == table.bytes[2, 0]


def test_a_model_without_nf4_stays_as_it_is() -> None:
    table, profile = layer()
    profile.ops.name = ("aten.add.Tensor", *NAMES[1:])
    assert multiplied_packed(table, profile) is table
