"""What a host's times mean beside a GPU that computes by itself.

Runs as a GPU shows them: kernels are queued and a read waits for them (CUDA C++ programming guide,
"asynchronous concurrent execution"); a thread that waits spins (CUDA runtime,
``cudaDeviceScheduleAuto``); NVML's utilisation is the share of time in which a kernel ran.
"""

import json
import subprocess
import sys
from typing import Any

import pytest

from trainwright.diagnose.decide import judge
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.verdict import Cause, Diagnosis
from trainwright.messages import render

# A ResNet in mixed precision whose 24 workers keep up with a card that is at work all the time.
CARD = {
    "name": "NVIDIA A100-SXM4-80GB",
    "utilisation": {"mean": 0.97, "low": 0.88, "high": 1.0},
    "power_w": {"mean": 318.0},
    "power_limit_w": 400.0,
    "sm_clock_mhz": {"mean": 1395.0},
    "sm_clock_max_mhz": 1410.0,
    "throttled": {},
}
STEPS = {"steps": 500, "seconds": 0.1, "data_wait": 0.002, "compute": 0.097, "other": 0.001}
COUNTERS = {"steps": 500, "item_reads": 0, "synchronisation_seconds": 0.0, "alloc_retries": 0}
SETUP = {
    "device": "cuda",
    "batch": 256,
    "num_workers": 24,
    "parameters": 25_557_032,
    "precision": "fp16-mixed",
    "model_kind": "convolution",
    "channels_last": True,
    "cudnn_benchmark": True,
}
HOST = {"cores": 64, "usable_cores": 64.0, "starved_share": 0.01, "foreign_cores": 0.2}


def judged(
    card: dict[str, Any] | None = None,
    steps: dict[str, Any] | None = None,
    counters: dict[str, Any] | None = None,
    setup: dict[str, Any] | None = None,
    host: dict[str, Any] | None = None,
    **parts: Any,
) -> Diagnosis:
    whole = {
        "trainwright_record": 1,
        "made_by": "diagnose",
        "gpus": [CARD | (card or {})],
        "steps": STEPS | (steps or {}),
        "counters": COUNTERS | (counters or {}),
        "setup": SETUP | (setup or {}),
        "host": HOST | (host or {}),
        **parts,
    }
    return judge(Evidence.model_validate(whole))


def named(diagnosis: Diagnosis) -> set[tuple[str, str]]:
    return {(each.cause.value, each.variant) for each in diagnosis.verdicts}


def test_a_full_card_whose_loss_is_read_after_each_update_is_well() -> None:
    read = judged(
        steps={"compute": 0.019, "other": 0.079},
        counters={"item_reads": 500, "synchronisation_seconds": 39.0},
    )
    assert read.first.cause is Cause.NONE


def test_what_lies_after_the_update_and_is_no_wait_for_the_card_costs() -> None:
    drawn = judged(
        card={"utilisation": {"mean": 0.25}, "power_w": {"mean": 120.0}},
        steps={"compute": 0.019, "other": 0.079},
        counters={"item_reads": 500, "synchronisation_seconds": 1.0},
    )
    assert (drawn.first.cause, drawn.first.variant) == (Cause.MONITORING, "logging")


def test_pictures_that_workers_read_are_no_state_that_is_kept_on_a_drive() -> None:
    # 2,560 pictures a second of 110 KB each are 280 MB/s.
    reads = {"read_bytes_s": 2.8e8, "run_read_bytes_s": 2.8e8, "main_read_bytes_s": 2e6}
    assert judged(host=reads).first.cause is Cause.NONE


def test_what_the_training_process_itself_reads_while_it_has_its_batches_is_kept_there() -> None:
    reads = {"read_bytes_s": 2.8e8, "run_read_bytes_s": 2.8e8, "main_read_bytes_s": 2.8e8}
    assert ("memory", "offload") in named(judged(host=reads, card={"utilisation": {"mean": 0.5}}))


@pytest.mark.parametrize(("mean", "bound"), [(0.99, False), (0.4, True)])
def test_a_thread_that_spins_is_the_limit_only_beside_a_card_that_waits(
    mean: float, bound: bool
) -> None:
    spins = judged(
        card={"utilisation": {"mean": mean}, "power_w": {"mean": 390.0 * mean}},
        host={"main_process_cores": 1.05},
    )
    assert (("parallelism", "host-bound") in named(spins)) is bound


@pytest.mark.parametrize(("seconds", "bound"), [(0.052, True), (0.372, False)])
def test_thousands_of_launches_fill_a_short_step_and_not_a_long_one(
    seconds: float, bound: bool
) -> None:
    # Of the three-line callback alone, which reads nothing of the card.
    evidence = {
        "trainwright_record": 1,
        "made_by": "callback",
        "steps": {"steps": 200, "seconds": seconds, "data_wait": 0.0005},
        "setup": {"device": "cuda", "batch": 16, "num_workers": 8, "parameters": 8_000_000_000},
        "profile": {"kernels_a_step": 3350.0},
        "host": HOST | {"main_process_cores": 1.05},
    }
    first = judge(Evidence.model_validate(evidence)).first
    assert ((first.cause, first.variant) == (Cause.PARALLELISM, "host-bound")) is bound


RISER = {"link_generation": 3, "link_generation_max": 4, "link_width": 1, "link_width_max": 16}


def test_a_single_lane_that_is_busy_a_third_of_the_time_is_what_the_card_waits_for() -> None:
    riser = judged(
        card=RISER | {"utilisation": {"mean": 0.55}, "received_bytes_s": 3.3e8},
        host={"main_process_cores": 1.0},
    )
    assert (riser.first.cause, riser.first.variant) == (Cause.SCHEDULING, "link")
    assert riser.first.gain == pytest.approx(3.3e8 / (0.985e9 * 0.85))


def test_half_of_the_lanes_slow_nothing_that_hardly_uses_them() -> None:
    half = {"link_generation": 4, "link_generation_max": 4, "link_width": 8, "link_width_max": 16}
    assert judged(card=half | {"received_bytes_s": 3.7e8}).first.cause is Cause.NONE


CAPPED = {
    "name": "NVIDIA GeForce RTX 4090",
    "power_w": {"mean": 198.0},
    "power_limit_w": 200.0,
    "sm_clock_mhz": {"mean": 1320.0},
    "sm_clock_max_mhz": 3105.0,
    "throttled": {"power-cap": 1.0},
    "utilisation": {"mean": 0.99},
}


def test_a_limit_below_the_boards_own_is_power_that_is_missing() -> None:
    first = judged(card=CAPPED | {"power_limit_default_w": 450.0}).first
    assert (first.cause, first.variant) == (Cause.SCHEDULING, "power")


def test_a_hot_card_among_others_is_told_no_more_power() -> None:
    hot = CARD | {
        "sm_clock_mhz": {"mean": 840.0},
        "power_w": {"mean": 205.0},
        "temperature_c": {"mean": 91.0},
        "throttled": {"thermal": 0.97, "hardware-thermal": 0.6},
    }
    eight = {"gpus": [*[CARD] * 7, hot], "setup": SETUP | {"world_size": 8, "strategy": "ddp"}}
    found = judge(
        Evidence.model_validate(
            {"trainwright_record": 1, "made_by": "diagnose", "steps": STEPS, "host": HOST, **eight}
        )
    )
    assert ("scheduling", "heat") in named(found)
    assert ("scheduling", "power") not in named(found)


def said(diagnosis: Diagnosis) -> str:
    fixes = [render(fix.says, "en") for each in diagnosis.verdicts for fix in each.fixes]
    return " ".join([render(diagnosis.first.says, "en"), *fixes])


def test_a_step_that_is_compiled_anew_is_told_so_and_what_to_do() -> None:
    found = judged(
        card={"utilisation": {"mean": 0.05}, "power_w": {"mean": 80.0}},
        setup={"compile": True},
        profile={"recompilations": 1.0, "host_top": [{"name": "torch/_dynamo", "share": 0.8}]},
    )
    assert (found.first.cause, found.first.variant) == (Cause.TUNING, "compile")
    assert "compiles again and again" in said(found)
    assert "dynamic=True" in said(found)


@pytest.mark.parametrize(("used", "larger"), [(2e10, True), (7.4e10, False)])
def test_twice_the_batch_is_proposed_only_where_it_may_fit(used: float, larger: bool) -> None:
    found = judged(
        card={
            "utilisation": {"mean": 0.3},
            "power_w": {"mean": 100.0},
            "memory_used_bytes": used,
            "memory_total_bytes": 8.5e10,
        },
        host={"main_process_cores": 1.0},
        profile={"kernels_a_step": 4200.0},
    )
    assert found.first.cause is Cause.PARALLELISM
    assert ("512" in said(found)) is larger


def test_as_many_workers_are_proposed_as_keep_up() -> None:
    # A batch takes a worker 2.3 s, and the card 0.11 s: 21 and a few more.
    found = judged(
        card={"utilisation": {"mean": 0.2}, "power_w": {"mean": 100.0}},
        steps={"seconds": 0.58, "data_wait": 0.47, "compute": 0.105},
        setup={"num_workers": 4},
        loading={"batch_seconds": 2.3, "cpu_share": 0.97},
    )
    assert found.first.cause is Cause.INPUT
    assert found.first.fixes[0].patch["settings.loader.num_workers"] == 27


def test_no_updates_are_saved_up_of_parameters_that_are_shared_out() -> None:
    # PyTorch's FSDP: under no_sync the full gradients are kept instead of their shards.
    shared = {"world_size": 4, "batch": 2, "accumulation": 4}
    waits = {"communication": 0.06, "compute": 0.035}
    ddp, fsdp = (
        judged(setup=SETUP | shared | {"strategy": strategy}, steps=waits)
        for strategy in ("ddp", "fsdp")
    )
    assert ddp.first.cause is fsdp.first.cause is Cause.COMMUNICATION
    assert "no_sync" in said(ddp)
    assert "no_sync" not in said(fsdp)
    assert "SHARD_GRAD_OP" in said(fsdp)


def test_batches_that_come_late_bound_what_more_cores_bring() -> None:
    steps = {"seconds": 1.2, "data_wait": 1.0, "compute": 0.2, "other": 0.0}
    host = {"usable_cores": 1.0, "cores": 32, "starved_share": 0.6, "run_cores": 1.0}
    found = judged(card={"utilisation": {"mean": 0.15}}, steps=steps, host=host)
    bound = next(each for each in found.verdicts if each.variant == "affinity")
    assert bound.gain is not None
    assert bound.gain >= 1.0 / 1.2


FACTS = """
import json, torch
from trainwright.diagnose.recorder.facts import optimizer_facts, settled
def facts(*parameters):
    return optimizer_facts(torch.optim.SGD([torch.nn.Parameter(each) for each in parameters]))
places, layer = torch.zeros(1, 197, 768), torch.zeros(768, 3072)
flat = torch.nn.Parameter(torch.zeros(64))
flat._fsdp_flattened = True
host = {"_device": "cpu", "_dtype": "torch.float32"}
torch.cuda.is_initialized, torch.cuda.max_memory_allocated = (lambda: True), (lambda: 2**30)
print(json.dumps({
    "dims": facts(places, layer)["dims"],
    "plain": facts(layer).get("strategy"),
    "fsdp": optimizer_facts(torch.optim.SGD([flat]))["strategy"],
    "offloaded": settled(host),
    "convolutions": settled({"_device": "cuda", "_dtype": "torch.float32",
        "model_kind": "convolution", "_convolutions_tf32": True})["precision"],
}))
"""


@pytest.mark.slow
def test_what_the_recorder_learns_from_parameters_is_so_on_a_gpu() -> None:
    pytest.importorskip("torch")
    run = subprocess.run([sys.executable, "-c", FACTS], capture_output=True, text=True, check=True)
    told = json.loads(run.stdout)
    assert told["dims"] == [768, 3072]  # places are added, no product has their number
    assert (told["plain"], told["fsdp"]) == (None, "fsdp")
    offloaded = told["offloaded"]
    assert (offloaded["device"], offloaded["offloaded_to"]) == ("cuda", "host")
    assert offloaded["offloaded"] == ["optimizer"]
    assert told["convolutions"] == "tf32"  # torch.backends.cudnn.allow_tf32 is True by default
