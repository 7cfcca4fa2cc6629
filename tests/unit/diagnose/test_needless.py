"""Work that need not be done: what one batch and one step of a run on the processor show of it."""

import json
import subprocess
import sys
from typing import Any

import pytest

from trainwright.diagnose.decide import judge
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.recorder import facts
from trainwright.diagnose.verdict import Cause, Confidence, Verdict

CORES = {"cores": 2, "usable_cores": 2.0, "run_cores": 1.98, "starved_share": 0.01}
SETUP = {"device": "cpu", "strategy": "single", "precision": "fp32", "torch_threads": 2}


def first(shares: dict[str, float], kernels: float = 60, **parts: Any) -> Verdict:
    """Return the verdict on steps of 20 ms that wait for nothing and keep both cores busy."""
    profile = {
        "kernels_a_step": kernels,
        "flops_a_step": 1e9,
        "matrix_flops_s": 1.8e11,
        "top": [{"name": f"aten::{name}", "share": share} for name, share in shares.items()],
        **parts.pop("profile", {}),
    }
    times = {"steps": 100, "seconds": 0.02, "data_wait": 0.0002, "compute": 0.0197, "other": 1e-4}
    return judge(
        Evidence.model_validate(
            {
                "trainwright_record": 1,
                "made_by": "callback",
                "steps": parts.pop("steps", times),
                "host": parts.pop("host", CORES),
                "setup": SETUP | parts.pop("setup", {}),
                "profile": profile,
                **parts,
            }
        )
    ).first


@pytest.mark.parametrize("operator", ["sort", "_unique2", "grid_sampler_2d", "pow", "cumsum"])
def test_one_operator_that_multiplies_nothing_and_takes_a_third_of_the_step_is_slow(
    operator: str,
) -> None:
    verdict = first({operator: 0.34, "mm": 0.31, "addmm": 0.2})
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "kernels")
    assert verdict.confidence is not Confidence.HIGH


def test_the_same_work_spread_over_what_models_are_made_of_is_fine() -> None:
    spread = {
        "mm": 0.42,
        "addmm": 0.2,
        "gelu_backward": 0.1,
        "copy_": 0.08,
        "native_layer_norm": 0.06,
    }
    assert first(spread).cause is Cause.NONE


def test_zeros_that_a_product_then_reads_are_slow_kernels() -> None:
    one_hot = {"mm": 0.28, "fill_": 0.24, "copy_": 0.17, "addmm": 0.02}
    seen = {"empty_call_seconds": 1.5e-6, "kernel_median_seconds": 3.9e-6}
    verdict = first(one_hot, kernels=300, profile=seen)
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "kernels")
    assert "profile.fills" in [signal.reading for signal in verdict.signals]


def test_convolutions_for_which_onednn_is_off_have_slow_kernels() -> None:
    verdict = first(
        {"convolution_backward": 0.62, "_nnpack_spatial_convolution": 0.16, "sum": 0.04},
        kernels=5650,
        setup={"model_kind": "convolution", "onednn": False},
    )
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "kernels")
    assert verdict.fixes[0].says.id == "diagnose.fix.onednn"


def test_a_policy_that_acts_once_a_pass_is_small_work_though_its_values_are_read() -> None:
    """One simulated environment: 512 passes an update, without a loader, whose values are read."""
    verdict = first(
        {"addmm": 0.05, "copy_": 0.03, "all": 0.02, "sum": 0.02},
        kernels=27_229,
        steps={"steps": 66, "seconds": 0.3, "optimizer": 0.0008},
        counters={"steps": 66, "item_reads": 66 * 1024, "synchronisations": 0},
        host=CORES | {"run_cores": 1.03, "main_read_bytes_s": 2.3e5},
        setup={"parameters": 4610},
        profile={"empty_call_seconds": 1.8e-6, "kernel_median_seconds": 2.2e-6},
    )
    assert verdict.cause is Cause.PARALLELISM


def test_products_of_few_rows_are_read_rather_than_computed_and_no_slow_kernels() -> None:
    """0.4 of a plain product's rate, as a network of depthwise and then dense layers has."""
    verdict = first({"mm": 0.45, "convolution_backward": 0.25, "gelu": 0.1, "copy_": 0.05})
    assert verdict.cause is Cause.NONE


@pytest.mark.parametrize("operator", ["bernoulli_", "linalg_cholesky_ex", "_ctc_loss_backward"])
def test_dropout_and_solvers_are_the_model_and_no_slow_operators(operator: str) -> None:
    assert first({operator: 0.34, "mm": 0.31, "addmm": 0.2}).cause is Cause.NONE


def test_numbers_drawn_for_dropout_are_no_time_in_which_products_are_slow() -> None:
    """An encoder of four layers on two cores: a third of its step draws for dropout."""
    shares = {"bernoulli_": 0.36, "mm": 0.18, "addmm": 0.06, "bmm": 0.05, "mul": 0.04, "copy_": 0.1}
    figures = {"flops_a_step": 6.5e8}
    assert first(shares, profile=figures).cause is Cause.NONE


PLANES = {"model_kind": "convolution", "channels_last": False}
FAST = {"convolution_backward": 0.37, "mkldnn_convolution": 0.12}


def test_batch_norms_beside_fast_convolutions_are_the_model_and_no_slow_kernels() -> None:
    """Three convolutions of 32 channels on two cores: the norms' gradients took 0.34 of it."""
    normed = {"native_batch_norm_backward": 0.34, **FAST, "avg_pool2d": 0.05}
    verdict = first(normed, profile={"flops_a_step": 6e8}, setup=PLANES)
    assert verdict.cause is Cause.NONE


def test_fast_convolutions_among_many_short_operators_are_not_blamed_for_their_layout() -> None:
    spread = {**FAST, "elu": 0.09, "avg_pool2d": 0.05, "avg_pool2d_backward": 0.05}
    assert first(spread, kernels=440, profile={"flops_a_step": 6e8}, setup=PLANES).cause is (
        Cause.NONE
    )


def test_a_default_layout_is_no_fault_where_nothing_shows_what_it_costs() -> None:
    known = {"convolution_backward": 0.3, "mkldnn_convolution": 0.1, "elu": 0.3}
    figures = {"flops_a_step": 3e8}
    assert first(known, kernels=300, profile=figures, setup=PLANES).variant != "layout"


def test_recurrent_layers_multiply_a_place_at_a_time_and_are_no_slow_kernels() -> None:
    cells = {"mkldnn_rnn_layer_backward": 0.52, "mkldnn_rnn_layer": 0.25}
    assert first(cells, profile={"flops_a_step": 7e8}).cause is Cause.NONE
    products = {"mm": 0.52, "addmm": 0.25}
    assert first(products, profile={"flops_a_step": 7e8}).cause is Cause.TUNING


def test_convolutions_of_few_channels_are_slower_than_a_plain_product_by_nature() -> None:
    narrow = {"convolution_backward": 0.7, "mkldnn_convolution": 0.2}
    assert first(narrow, profile={"flops_a_step": 8e8}).cause is Cause.NONE
    assert first(narrow, profile={"flops_a_step": 3e8}).cause is Cause.TUNING


def test_a_few_samples_whose_update_takes_the_step_are_a_small_batch() -> None:
    top = {"sqrt": 0.19, "div": 0.12, "mm": 0.21, "mkldnn_rnn_layer": 0.2}
    times = {
        "steps": 48,
        "seconds": 0.02,
        "data_wait": 0.0002,
        "compute": 0.0198,
        "optimizer": 0.01,
    }
    flops = {"flops_a_step": 5e8}
    verdict = first(top, 185, profile=flops, steps=times, setup={"batch": 1})
    assert (verdict.cause, verdict.variant) == (Cause.PARALLELISM, "small-batch")


def test_convolutions_of_each_channel_alone_are_slow_by_nature() -> None:
    """As in MobileNet: an eighth of a plain product's rate is what such convolutions reach."""
    shares = {"convolution_backward": 0.35, "mkldnn_convolution": 0.2, "native_batch_norm": 0.18}
    slow = {"flops_a_step": 4e8}
    assert first(shares, profile=slow).cause is Cause.TUNING
    assert first(shares, profile=slow | {"grouped_convolutions": 0.3}).cause is not Cause.TUNING


def test_gradients_of_convolutions_that_take_ten_times_their_arithmetic_are_a_slow_layout() -> None:
    """Depthwise, channels first, on two cores: 1.4 times as fast in channels_last, as proven."""
    shares = {"convolution_backward": 0.52, "mkldnn_convolution": 0.03, "mm": 0.11, "gelu": 0.05}
    times = {"steps": 75, "seconds": 0.03, "data_wait": 4e-4, "forward": 0.0045, "backward": 0.0245}
    groups = {"flops_a_step": 6.4e8, "grouped_convolutions": 0.53}
    slow = first(shares, 175, profile=groups, steps=times, setup=PLANES)
    assert (slow.cause, slow.variant) == (Cause.TUNING, "layout")
    usual = shares | {"convolution_backward": 0.4, "mkldnn_convolution": 0.15}
    assert first(usual, 175, profile=groups, steps=times, setup=PLANES).variant != "layout"
    starved = CORES | {"starved_share": 0.4}
    waits = first(shares, 175, profile=groups, steps=times, setup=PLANES, host=starved)
    assert waits.variant != "layout"


def test_convolutions_without_a_library_are_slow_kernels_and_no_short_operators() -> None:
    """In double precision on a fast computer: 76 calls of 60 us each, and 800 operators beside."""
    left = {"_slow_conv2d_backward": 0.39, "_slow_conv2d_forward": 0.26, "copy_": 0.02}
    figures = {"flops_a_step": 2.5e7, "kernel_median_seconds": 1.5e-6, "empty_call_seconds": 1.5e-6}
    times = {"steps": 270, "seconds": 0.0073, "data_wait": 0.00015, "compute": 0.0071}
    double = {"precision": "fp64", "batch": 3}
    verdict = first(left, 794, profile=figures, steps=times, setup=double)
    assert verdict.cause is Cause.TUNING


def test_planes_that_are_pooled_lie_better_with_their_channels_last() -> None:
    """Measured on two cores: 1.35 times as fast with 0.18 in max pooling, 0.99 times without."""
    planes = {"model_kind": "convolution", "channels_last": False}
    rest = {"convolution_backward": 0.45, "mkldnn_convolution": 0.22, "native_batch_norm": 0.05}
    fast = {"flops_a_step": 1.4e9}
    assert first(rest | {"relu": 0.1}, profile=fast, setup=planes).cause is Cause.NONE
    pooled = rest | {"max_pool2d_with_indices": 0.18}
    verdict = first(pooled, profile=fast, setup=planes)
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "layout")
    assert verdict.confidence is not Confidence.HIGH
    assert first(pooled, profile=fast, setup=planes | {"channels_last": True}).cause is Cause.NONE


def test_scores_for_targets_that_the_loss_ignores_are_computed_for_nothing() -> None:
    shares = {"mm": 0.35, "addmm": 0.2, "_log_softmax": 0.06, "_log_softmax_backward_data": 0.05}
    assert first(shares).cause is Cause.NONE
    verdict = first(shares, setup={"ignored_targets": 0.87})
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "padding")
    assert verdict.says.id.endswith("padding.ignored")
    few = {"mm": 0.45, "addmm": 0.3, "_log_softmax": 0.01}
    assert first(few, setup={"ignored_targets": 0.87}).cause is Cause.NONE


def test_a_tensor_that_grows_in_a_loop_is_memory_and_no_small_batch() -> None:
    shares = {"convolution_backward": 0.35, "cat": 0.12, "mkldnn_convolution": 0.1, "fill_": 0.07}
    grown = {"flops_a_step": 1e7, "kernel_median_seconds": 5e-6}
    assert first(shares, 500, profile=grown).cause is not Cause.MEMORY
    verdict = first(shares, 500, profile=grown | {"grown": 0.12})
    assert (verdict.cause, verdict.variant) == (Cause.MEMORY, "heap")
    assert verdict.says.id.endswith("heap.grown")
    assert verdict.gain is None  # the copies of its gradients go away too: nobody says how many


def test_what_is_put_together_for_half_of_the_step_is_memory() -> None:
    shares = {"cat": 0.5, "copy_": 0.15, "addmm": 0.07, "bmm": 0.04}
    verdict = first(shares, 700, profile={"flops_a_step": 1e8, "kernel_median_seconds": 1e-5})
    assert (verdict.cause, verdict.variant) == (Cause.MEMORY, "heap")


def test_few_bits_that_are_only_simulated_are_the_precision_and_no_reads_of_values() -> None:
    shares = {"clamp_min": 0.22, "convolution_backward": 0.13, "max_pool2d": 0.12}
    counters = {"steps": 100, "item_reads": 3000, "synchronisation_seconds": 0.02}
    assert first(shares, 300, counters=counters).cause is Cause.MONITORING
    shares = shares | {"_fake_quantize_per_tensor_affine_cachemask": 0.12}
    verdict = first(shares, 300, counters=counters)
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "precision")


def test_double_precision_is_named_before_the_size_of_what_it_slows() -> None:
    shares = {"bmm": 0.2, "copy_": 0.13, "mm": 0.1, "gelu_backward": 0.06}
    small = {"flops_a_step": 9e7, "kernel_median_seconds": 2e-6}
    assert first(shares, 800, profile=small).cause is Cause.PARALLELISM
    assert first(shares, 800, profile=small, setup={"precision": "fp64"}).variant == "precision"


def test_one_long_call_among_many_short_ones_is_not_held_for_short_ones() -> None:
    """Adam on a table of which a batch reads few rows: 0.08 of 0.1 s in calls of 2 ms and more."""
    top = [{"name": "aten::sqrt", "share": 0.43, "calls": 2.0}]
    top += [{"name": "aten::div", "share": 0.2, "calls": 2.0}]
    profile = {"flops_a_step": 1e7, "top": top, "kernel_median_seconds": 3e-6}
    assert first({}, 300, profile=profile).cause is Cause.TUNING


@pytest.mark.parametrize(("beside", "cause"), [(0.9, Cause.SCHEDULING), (0.1, Cause.INPUT)])
def test_threads_of_workers_beside_their_first_ones_are_too_many(
    beside: float, cause: Cause
) -> None:
    host = {"cores": 2, "usable_cores": 2.0, "starved_share": 0.5, "foreign_cores": 0.0}
    host |= {"run_cores": 1.15 + beside, "main_process_cores": 0.45}
    waits = {"steps": 80, "seconds": 0.026, "data_wait": 0.014, "compute": 0.0106}
    loading = {"cpu_share": 0.58, "batch_seconds": 0.07, "workers_cpu": 0.35}
    setup = {"num_workers": 2}
    assert first({}, steps=waits, host=host, loading=loading, setup=setup).cause is cause


@pytest.mark.parametrize(("scored", "kept"), [(512, True), (504, True), (77, False)])
def test_targets_count_as_ignored_only_if_they_got_scores(scored: int, kept: bool) -> None:
    """Of 8 rows of 64: all, all but each first one, and those alone that are not ignored."""
    seen = {"ignored_targets": 0.85, "_targets": 512, "_scored": scored}
    assert ("ignored_targets" in facts.settled(seen)) is kept


PROGRAM = """
import json, torch
from torch import nn
from trainwright.diagnose.recorder import sample
from trainwright.diagnose.recorder.batch import batch_facts
from trainwright.diagnose.recorder.facts import optimizer_facts

words = torch.randint(2, 900, (8, 64))
words[1:, 40:] = 0
mask, kinds = (words > 0).long(), torch.zeros_like(words)
waves = torch.randn(8, 1000)
pictures = torch.rand(4, 3, 64, 64)
for row in range(8):
    waves[row, 1000 - 100 * row :] = 0
for row in range(4):
    pictures[row, :, 64 - 16 * row :] = 0
digits = nn.functional.pad(torch.rand(4, 1, 20, 20), (4, 4, 4, 4))
held, spoken = torch.zeros(4, 1, 64, 64), torch.zeros(8, 1000)
held[:, :, :32, :32], spoken[:, :500] = torch.rand(4, 1, 32, 32), torch.randn(8, 500)
rare = (torch.rand(8, 64) < 0.02).long()
full = torch.randint(2, 900, (8, 64))
sides = [
    {"input_ids": words, "attention_mask": mask, "token_type_ids": kinds},
    {"input_ids": full, "attention_mask": torch.ones_like(full), "token_type_ids": kinds},
    [words.flip(1), torch.zeros(8)], [full, rare], [waves, torch.zeros(8)],
    [torch.stack([waves, waves], 1), torch.zeros(8)],
    [pictures, torch.zeros(4)], [held, torch.zeros(4)], [spoken, torch.zeros(8)],
    [digits, torch.zeros(4)], [rare * 7, torch.zeros(8)],
    [rare.float(), torch.zeros(8)],
]
labels = full.where(torch.rand(8, 64) < 0.15, -100)
layers = [nn.Conv3d(2, 4, 3), nn.Conv3d(2, 4, 3).to(memory_format=torch.channels_last_3d)]
look, image = sample.Sample(), torch.ones(2, 32, 16, 16, requires_grad=True)
grouped = []
for groups in (1, 32):
    layer = nn.Conv2d(32, 32, 3, groups=groups)
    look.start()
    layer(image).sum().backward()
    look.stop()
    grouped.append(look.told().get("grouped_convolutions", 0))
grown = {}
for apart in (False, True):
    look, all_ones = sample.Sample(), torch.ones(4, 1, 50, 50)
    look.start()
    rows = [all_ones]
    for _ in range(40):
        rows.append(rows[-1][:, -1:] * 2)
        all_ones = all_ones if apart else torch.cat([all_ones, rows[-1]], 1)
    torch.cat(rows, 1)
    look.stop()
    grown[apart] = look.told().get("grown", 0)
print(json.dumps({
    "padding": [batch_facts(each).get("sequence_padding", 0) for each in sides],
    "ignored": batch_facts({"input_ids": full, "labels": labels}),
    "true": float((labels == -100).float().mean()),
    "last": [optimizer_facts(torch.optim.SGD(one.parameters()))["channels_last"] for one in layers],
    "grown": [grown[False], grown[True]],
    "grouped": grouped,
}))
"""


@pytest.mark.slow
def test_what_batches_hold_for_nothing_is_told_from_what_they_are_made_of() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    filled, full, left, marked, waves, channels, pictures, held, spoken, *plain = found["padding"]
    assert filled == left == pytest.approx(7 / 8 * 24 / 64)
    assert waves == pytest.approx(0.35)
    assert channels == pytest.approx(0.35)
    assert pictures == pytest.approx((0 + 16 + 32 + 48) / 64 / 4)
    assert held == pytest.approx(0.75)  # a quarter of what each row and picture is given
    assert spoken == pytest.approx(0.5)
    assert max(full, marked, *plain) < 0.05
    assert found["ignored"]["ignored_targets"] == pytest.approx(found["true"])
    assert found["last"] == [False, True]
    assert found["grouped"][0] == 0
    assert found["grouped"][1] > 0.05
    assert found["grown"][0] > 0.3
    assert found["grown"][1] == 0


def test_a_function_that_rounds_to_eight_bits_for_most_of_the_step_is_a_precision() -> None:
    rounded = [{"name": "layers.py:to_eight_bits", "share": 0.67}]
    shares = {"copy_": 0.25, "abs": 0.07, "add": 0.07, "div": 0.06, "mm": 0.04}
    verdict = first(shares, kernels=440, profile={"host_top": rounded, "flops_a_step": 8e7})
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "precision")


def test_passes_that_wait_for_a_drive_keep_something_there_and_lack_no_threads() -> None:
    verdict = first(
        {"addmm": 0.09, "mm": 0.05},
        steps={
            "steps": 76,
            "seconds": 0.029,
            "data_wait": 5e-4,
            "compute": 0.0288,
            "blocked": 6e-3,
        },
        host=CORES | {"run_cores": 1.3, "pressure_io": 0.14},
        profile={"host_top": [{"name": "memmap.__getitem__", "share": 0.04}], "flops_a_step": 4e7},
    )
    assert (verdict.cause, verdict.variant) == (Cause.MEMORY, "offload")


def test_a_second_thread_does_nothing_for_operators_of_microseconds() -> None:
    """Torch divides among threads what has 32,768 numbers and more."""
    one = {"setup": {"torch_threads": 1}, "host": CORES | {"run_cores": 1.0}}
    shares = {"_to_copy": 0.09, "copy_": 0.03, "sqrt": 0.024, "clamp_": 0.022, "div": 0.02}
    small = first(shares, kernels=1_500, **one)
    large = first({"mm": 0.4, "addmm": 0.3, "gelu": 0.1}, kernels=60, **one)
    assert small.cause is Cause.PARALLELISM
    assert (large.cause, large.variant) == (Cause.SCHEDULING, "threads")


def test_a_second_thread_does_nothing_for_what_a_profiler_of_ones_own_does() -> None:
    one = {"setup": {"torch_threads": 1}, "host": CORES | {"run_cores": 1.0}}
    watched = [
        {"name": "tally.py:Tally.__torch_dispatch__", "share": 0.58},
        {"name": "traceback.py:extract_stack", "share": 0.45},
    ]
    verdict = first({"add": 0.15, "mm": 0.07}, kernels=200, profile={"host_top": watched}, **one)
    assert verdict.cause is Cause.MONITORING
