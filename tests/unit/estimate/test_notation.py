"""Sizes read as people write them."""

import numpy as np
import pytest

from trainwright.estimate.memory.notation import formula
from trainwright.profile.profile import SCALE

LLAMA = {"vocabulary": 128_256, "hidden": 4096, "heads": 32, "kv_heads": 8, "head_dim": 128}


@pytest.mark.parametrize(
    ("bytes_by_monomial", "dtype", "text"),
    [
        ({"BS": 2 * 128_256}, "bfloat16", "2·B·S·V"),
        ({"BS": 4 * 128_256}, "float32", "4·B·S·V"),
        # The dtype is that of the op's input; a cast to fp32 still reads as fp32.
        ({"BS": 4 * 128_256}, "bfloat16", "4·B·S·V"),
        ({"BS": 2 * 4096}, "bfloat16", "2·B·S·hidden"),
        ({"BS": 2 * 1024}, "bfloat16", "2·B·S·kv_heads·head_dim"),
        ({"BS": 4 * 32}, "float32", "4·B·S·heads"),
        ({"BSS": 2 * 32}, "bfloat16", "2·B·S²·heads"),
        ({"BS": 8}, "int64", "8·B·S"),
        ({"1": 2 * 4096 * 4096}, "bfloat16", "2·hidden²"),
        ({"1": 2 * 128_256 * 4096}, "bfloat16", "2·V·hidden"),
        ({"1": 2 * 14_336 * 4096}, "bfloat16", "7·hidden²"),
        ({"1": 12, "B": 100}, "float32", "12 + 100·B"),
        ({"BS": 1_000_003}, "uint8", "1,000,003·B·S"),
        ({}, "float32", "0"),
    ],
)
def test_polynomials_read_by_the_models_widths(bytes_by_monomial, dtype, text):
    names = ("1", "B", "S", "BS", "SS", "BSS")
    row = np.array([bytes_by_monomial.get(name, 0) for name in names], dtype=np.int64)
    assert formula(row * SCALE, dtype, LLAMA) == text


def test_fractions_and_unknown_widths_stay_numbers():
    row = np.array([0, SCALE // 2, 0, 0, 0, 0], dtype=np.int64)
    assert formula(row, "float32", {}) == "0.5·B"
    assert formula(2 * row, "float32", {}) == "1·B"
