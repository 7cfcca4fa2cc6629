"""What a profile and trials tell of work that is done again, of room, fewer bits and waits."""

import json
import subprocess
import sys
from typing import Any

import pytest

from trainwright.diagnose.decide import judge
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.avoidable import products_again
from trainwright.diagnose.measures.trials import saved_by
from trainwright.diagnose.verdict import Cause, Verdict

CARD = "NVIDIA GeForce RTX 3090"
ONE = {"device": "cuda", "world_size": 1, "batch": 16}


def seen(**parts: Any) -> Evidence:
    return Evidence.model_validate({"trainwright_record": 1, "made_by": "callback", **parts})


def first(**parts: Any) -> Verdict:
    return judge(seen(**parts)).first


def card(**more: Any) -> list[dict[str, Any]]:
    return [{"name": CARD, "compute_capability": "8.6", **more}]


PROGRAM = """
import json, sys, torch
from torch import nn
from torch.utils.checkpoint import checkpoint

def counted(net, batch, again):
    def step():
        x = batch
        for layer in net:
            x = checkpoint(layer, x, use_reentrant=False) if again else layer(x)
        x.square().mean().backward()
    step()
    with torch.profiler.profile() as profile:
        step()
    return {each.key: each.count for each in profile.key_averages()}

dense = nn.ModuleList([nn.Sequential(nn.Linear(32, 32), nn.GELU()) for _ in range(6)])
planes = nn.ModuleList([nn.Sequential(nn.Conv2d(8, 8, 3), nn.ReLU()) for _ in range(4)])
pairs = ((dense, torch.randn(16, 32)), (planes, torch.randn(4, 8, 24, 24)))
print(json.dumps([[counted(*pair, again) for again in (False, True)] for pair in pairs]))
"""


def of_calls(calls: dict[str, int]) -> float | None:
    top = [{"name": name, "share": 0.01, "calls": count} for name, count in calls.items()]
    times = {"steps": 50, "seconds": 0.05, "forward": 0.01, "backward": 0.03, "compute": 0.049}
    setup = {"device": "cpu", "strategy": "single"}
    return products_again(seen(steps=times, setup=setup, profile={"top": top}))


@pytest.mark.slow
def test_layers_that_a_backward_pass_computes_again_are_told_from_those_it_kept() -> None:
    """The counts are torch's own, of the same layers with checkpoints and without."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    for kept, again in json.loads(done.stdout):
        assert (of_calls(kept) or 0) < 1.3
        assert (of_calls(again) or 0) >= 1.9


def test_convolutions_that_are_computed_twice_in_a_long_backward_pass_are_memory() -> None:
    times = {"steps": 50, "seconds": 0.05, "forward": 0.008, "backward": 0.039, "compute": 0.0495}
    top = [
        {"name": "aten::mkldnn_convolution", "share": 0.45, "calls": 24},
        {"name": "aten::convolution_backward", "share": 0.3, "calls": 8},
    ]
    run = {"steps": times, "setup": {"device": "cpu", "strategy": "single"}}
    verdict = first(**run, profile={"top": top, "kernels_a_step": 200})
    assert (verdict.cause, verdict.variant) == (Cause.MEMORY, "recomputation")
    once = [top[0] | {"calls": 8}, top[1]]
    other = first(**run, profile={"top": once, "kernels_a_step": 200})
    assert other.cause is not Cause.MEMORY


def test_what_no_card_holds_is_lent_memory() -> None:
    run = {"steps": {"steps": 10, "seconds": 6.0}, "setup": ONE}
    beyond = {"steps": 10, "allocated_bytes": 40e9}
    assert first(**run, gpus=card(), counters=beyond).cause is Cause.MEMORY
    within = {"steps": 10, "allocated_bytes": 10e9}
    assert first(**run, gpus=card(), counters=within).cause is not Cause.MEMORY


def test_a_full_card_that_does_the_same_twice_as_fast_with_room_is_full() -> None:
    run = {"steps": {"steps": 10, "seconds": 3.0}, "setup": ONE | {"precision": "fp32"}}
    slow = {"throughput": {"expected_times": 2.5}}
    full = card(memory_used_bytes=23.8e9, memory_total_bytes=24e9)
    assert first(**run, **slow, gpus=full).cause is Cause.MEMORY
    half = card(memory_used_bytes=11e9, memory_total_bytes=24e9)
    assert first(**run, **slow, gpus=half).cause is not Cause.MEMORY


def test_a_smaller_batch_that_is_far_faster_a_sample_had_room_and_no_better_kernels() -> None:
    setup = ONE | {"attention": "eager", "model_kind": "transformer"}
    faster = {"changed": "attention", "to": "sdpa", "rate_times": 3.5}
    smaller = {"changed": "batch", "factor": 0.25, "rate_times": 7.0}
    run = {"gpus": card(), "setup": setup, "throughput": {"samples_s": 2.2}}
    assert first(**run, trials=[faster, smaller]).cause is Cause.MEMORY
    assert first(**run, trials=[faster]).cause is Cause.TUNING


def test_what_tf32_saves_over_single_precision_fewer_bits_save_again() -> None:
    setup = ONE | {"precision": "tf32", "tf32_allowed": True}
    off = {"changed": "tf32", "to": "off", "step_times": 1.5}
    run = {"gpus": card(), "steps": {"steps": 50, "seconds": 0.1}, "setup": setup}
    verdict = first(**run, trials=[off], profile={"tensor_core": 0.15})
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "precision")
    older = [{"name": "Tesla V100", "compute_capability": "7.0"}]
    full = first(gpus=older, setup=setup | {"precision": "fp32"}, throughput={"samples_s": 100})
    assert any(signal.value == "fp32" for signal in full.signals)


def test_one_card_in_single_precision_is_not_well_however_full() -> None:
    tried = [{"changed": "batch", "factor": 0.5, "rate_times": 0.98}]
    run = {"gpus": card(utilisation={"mean": 0.98}), "throughput": {"samples_s": 90}}
    single = first(**run, setup=ONE | {"precision": "fp32"}, trials=tried)
    mixed = first(**run, setup=ONE | {"precision": "bf16-mixed"}, trials=tried)
    assert (single.cause, mixed.cause) == (Cause.TUNING, Cause.NONE)


def test_fewer_workers_tell_nothing_of_more_where_more_were_tried() -> None:
    none, twice = (
        {"changed": "workers", "to": "0", "step_times": 1.4},
        {"changed": "workers", "factor": 2.0, "to": "8", "step_times": 1.02},
    )
    run = {"setup": ONE | {"num_workers": 4}, "steps": {"steps": 50, "seconds": 0.4}}
    saved = saved_by("more_workers")
    assert saved(seen(**run, trials=[none])) == pytest.approx(1 - 1 / 1.4)
    assert saved(seen(**run, trials=[none, twice])) == pytest.approx(-0.02)


def test_few_waits_among_thousands_of_launches_are_not_what_a_gpu_idles_for() -> None:
    slow: dict[str, Any] = {
        "gpus": card(utilisation={"mean": 0.12}),
        "setup": ONE,
        "steps": {"steps": 6, "seconds": 2.3, "compute": 2.1, "data_wait": 0.06},
    }
    waits = {"idle": 0.9, "launches_a_step": 24660, "synchronise_calls": 269}
    assert first(**slow, profile=waits).cause is Cause.PARALLELISM
    at_each = waits | {"synchronise_calls": 6000}
    assert first(**slow, profile=at_each).cause is Cause.MONITORING


def test_two_threads_that_drive_eight_cards_of_one_process_are_too_few() -> None:
    alone = {"changed": "devices", "factor": 0.125, "step_times": 0.48}
    run: dict[str, Any] = {
        "gpus": card() * 8,
        "host": {"cores": 56},
        "steps": {"steps": 20, "seconds": 2.95, "communication": 0.0},
        "trials": [alone],
    }
    setup = {"device": "cuda", "world_size": 8, "strategy": "other"}
    verdict = first(**run, setup=setup | {"torch_threads": 2})
    assert (verdict.cause, verdict.variant) == (Cause.SCHEDULING, "threads")
    assert first(**run, setup=setup | {"torch_threads": 16}).variant != "threads"
