"""Rules for what CUDA libraries take, against their documented numbers."""

import numpy as np
import pytest

from trainwright.catalog import find_gpu
from trainwright.estimate.calibration import memory_calibration
from trainwright.estimate.cuda import (
    RULES,
    Device,
    context,
    cublas_workspace,
    hidden_bytes,
    hidden_of,
)
from trainwright.estimate.memory.layout import TERMS
from trainwright.messages import Message, render
from trainwright.profile.profile import SCALE, OpTable, Profile

MIB = 2**20


def profile_of(name, dims, *, dtype="float16", read=0, written=0):
    """A profile of one op; dimensions and bytes as polynomials in B and S."""

    def row(polynomial):
        full = polynomial if isinstance(polynomial, tuple) else (polynomial,)
        return [value * SCALE for value in (*full, *[0] * (6 - len(full)))]

    table = np.zeros((1, 7, 6), dtype=np.int64)
    table[0, : len(dims)] = [row(dim) for dim in dims]
    cost = [np.array([row(value)], dtype=np.int64) for value in (0, read, written)]
    ops = OpTable((name,), ("backward",), (0,), (dtype,), *cost, table)
    return Profile(np.zeros((0, 6), np.int64), {}, ops, {}, {}, {}, {}, {}, True, ())


def taken(profile, batch=2, sequence=0, *, channels_last=False):
    return {
        hidden.rule: hidden_bytes(hidden, profile, batch, sequence, channels_last=channels_last)
        for hidden in hidden_of(profile, 0)
    }


@pytest.mark.parametrize(
    ("major", "nbytes"),
    # One Linear on an A10G leaves 8 519 680 bytes behind: pytorch issue 95668.
    [(7, 8_519_680), (8, 8_519_680), (9, 32 * MIB), (10, 32 * MIB), (12, 32 * MIB)],
)
def test_cublas_workspaces(major, nbytes):
    assert cublas_workspace(Device("NVIDIA", major)) == nbytes


def test_other_vendors_have_other_libraries():
    assert cublas_workspace(Device("AMD", 8)) == 76 * MIB
    assert cublas_workspace(Device("Apple", 8)) == 0


@pytest.mark.parametrize(
    ("gpu", "least", "most"),
    [
        # What processes had in use beyond what torch held, in torch's out-of-memory errors.
        ("t4", 111, 204),
        ("rtx-3090", 255, 420),
        ("v100-32gb-sxm", 389, 399),
        ("h200-141gb-sxm", 522, 670),
        ("rtx-5090", 461, 594),
        ("mi300x", 250, 1335),
    ],
)
def test_the_range_of_a_context_holds_what_such_gpus_took(gpu, least, most):
    span = context(find_gpu(gpu).record)
    assert span.low <= least * MIB < span.middle < span.high
    assert most * MIB <= span.high < 3 * span.middle


def attention(name, *, heads=32, kv_heads=32, head_dim=128, dtype="float16"):
    b, s = (0, 1), (0, 0, 1)
    return profile_of(name, (b, heads, s, s, head_dim, kv_heads, 1), dtype=dtype)


def test_flash_backward_without_groups_expands_nothing():
    sizes = taken(attention("aten._scaled_dot_product_flash_attention_backward.default"), 1, 1000)
    assert sizes["flash-dq"] == 4 * 1024 * 32 * 128
    assert sizes["flash-dk"] == sizes["flash-dv"] == 0


def test_flash_backward_pads_large_heads_to_64():
    profile = attention("aten._scaled_dot_product_flash_attention_backward.default", head_dim=160)
    assert taken(profile, 1, 128)["flash-dq"] == 4 * 128 * 32 * 192


def test_the_forward_takes_nothing():
    assert not hidden_of(attention("aten._scaled_dot_product_flash_attention.default"), 0)


def test_efficient_backward_keeps_keys_in_registers_up_to_128():
    name = "aten._scaled_dot_product_efficient_attention_backward.default"
    narrow = taken(attention(name), 1, 512)["efficient-workspace"]
    wide = taken(attention(name, head_dim=256), 1, 512)["efficient-workspace"]
    assert narrow == 4 * 32 * 512 * 128
    assert wide == 3 * 4 * 32 * 512 * 256
    full = taken(attention(name, head_dim=256, dtype="float32"), 1, 512)
    assert full["efficient-workspace"] == 4 * 32 * 512 * 256


def test_convolutions_take_less_in_channels_last_and_none_when_depthwise():
    rows = (0, 3136)
    plain = profile_of(
        "aten.convolution.default", (rows, 64, 576, 1), read=(0, 10**6), written=(0, 10**6)
    )
    first, last = (taken(plain, 8, channels_last=choice)["convolution"] for choice in (False, True))
    assert 0 < last < first <= 16 * 10**6
    depthwise = profile_of(
        "aten.convolution.default", (rows, 64, 9, 64), read=(0, 10**6), written=(0, 10**6)
    )
    assert taken(depthwise, 8)["convolution"] == 0


def test_a_safe_softmax_holds_a_mask_and_a_second_output():
    profile = profile_of("aten._safe_softmax.default", ((0, 4),), written=(0, 1024))
    assert taken(profile, 2) == {"softmax-mask": 1024, "softmax-copy": 2048}


_HIDDEN = [*(rule.name for rule in RULES), "cublas-forward", "cublas-backward", "last-bucket"]


@pytest.mark.parametrize(
    "message",
    [
        *(Message.of(f"memory.term.{term}") for term in TERMS),
        *(Message.of(f"memory.hidden.{rule}", count=2) for rule in _HIDDEN),
    ],
    ids=lambda message: message.id,
)
def test_every_term_and_rule_has_a_name_in_both_languages(message):
    for language in ("en", "ko"):
        assert not render(message, language).startswith(message.id)


def test_every_term_has_a_residual_width():
    assert set(TERMS) <= set(memory_calibration().relative_sigma)
