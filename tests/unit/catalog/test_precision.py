"""Which precision a GPU trains in, and how fast it can at best."""

from typing import get_args

import pytest

from trainwright.catalog import find_gpu, list_gpus, peak_flops, supports
from trainwright.catalog.precision import Precision
from trainwright.messages import render

RUNS = {
    "gtx-1080-ti": {"fp32"},
    "v100-16gb-sxm": {"fp32", "fp16-mixed", "fp16"},
    "rtx-2080-ti": {"fp32", "fp16-mixed", "fp16"},
    "t4": {"fp32", "fp16-mixed", "fp16"},
    "rtx-3090": {"fp32", "tf32", "fp16-mixed", "fp16", "bf16-mixed", "bf16"},
    "a100-80gb-sxm": {"fp32", "tf32", "fp16-mixed", "fp16", "bf16-mixed", "bf16"},
    "rtx-4090": {"fp32", "tf32", "fp16-mixed", "fp16", "bf16-mixed", "bf16", "fp8"},
    "h100-80gb-sxm": {"fp32", "tf32", "fp16-mixed", "fp16", "bf16-mixed", "bf16", "fp8"},
    "rtx-5090": {"fp32", "tf32", "fp16-mixed", "fp16", "bf16-mixed", "bf16", "fp8"},
    "rx-6800-xt": {"fp32", "fp16-mixed", "fp16"},
    "rx-7900-xtx": {"fp32", "fp16-mixed", "fp16", "bf16-mixed", "bf16"},
    "mi300x": {"fp32", "tf32", "fp16-mixed", "fp16", "bf16-mixed", "bf16", "fp8"},
    "arc-b580": {"fp32", "fp16-mixed", "fp16", "bf16-mixed", "bf16"},
    "apple-m1-max": {"fp32", "fp16-mixed", "fp16"},
    "apple-m4-max": {"fp32", "fp16-mixed", "fp16", "bf16-mixed", "bf16"},
}
ALL = get_args(Precision)


@pytest.mark.parametrize(("id", "runs"), RUNS.items())
def test_precisions_by_generation(id, runs):
    gpu = find_gpu(id).record
    assert {precision for precision in ALL if supports(gpu, precision) is True} == runs


def test_a_refusal_says_why_in_both_languages():
    gpu = find_gpu("2080 ti").record
    reason = supports(gpu, "bf16-mixed")
    assert render(reason, "en") == (
        "bf16-mixed needs compute capability 8.0 or newer; GeForce RTX 2080 Ti has 7.5."
    )
    assert "7.5" in render(reason, "ko")
    assert "RDNA 2" in render(supports(find_gpu("6800 xt").record, "fp8"), "en")
    assert "GTX 1080 Ti" in render(supports(find_gpu("1080 ti").record, "fp16-mixed"), "en")


def test_an_unsupported_precision_has_no_peak():
    assert peak_flops(find_gpu("2080 ti").record, "bf16") is None
    assert peak_flops(find_gpu("3090").record, "fp8") is None


def test_without_matrix_unit_half_precision_is_as_fast_as_single():
    """Products accumulate in fp32 there, whatever the packed fp16 rate of P100 says."""
    gpu = find_gpu("p100").record
    assert peak_flops(gpu, "fp16-mixed") == peak_flops(gpu, "fp32")


def test_every_gpu_with_a_published_rate_has_a_training_peak():
    for gpu in list_gpus():
        if gpu.flops:
            best = "bf16-mixed" if supports(gpu, "bf16-mixed") is True else "fp16-mixed"
            assert peak_flops(gpu, best) is not None, gpu.id


def test_lower_precision_is_never_slower():
    for gpu in list_gpus():
        rates = [peak_flops(gpu, precision) for precision in ("fp32", "bf16-mixed", "fp8")]
        known = [rate.value for rate in rates if rate]
        assert known == sorted(known), gpu.id
