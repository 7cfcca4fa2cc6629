"""What the device and its host say together, where neither says it alone."""

from typing import Any

import pytest

from trainwright.diagnose.causes import memory
from trainwright.diagnose.causes.rules import signals
from trainwright.diagnose.decide import by_rules
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.verdict import Cause, Confidence, Verdict

ONE = {"device": "cuda", "world_size": 1}


def evidence(**parts: Any) -> Evidence:
    return Evidence.model_validate({"trainwright_record": 1, "setup": ONE, **parts})


def first(**parts: Any) -> Verdict:
    return by_rules(evidence(**parts))


def gpu(**read: Any) -> list[dict[str, Any]]:
    return [{"utilisation": {"mean": 0.2}, **read}]


STEP = {"steps": 50, "seconds": 0.5}


@pytest.mark.parametrize(
    ("cores", "cause", "variant"),
    [
        (6.0, Cause.INPUT, "preprocessing"),  # one thread launches: the others make batches
        (0.2, Cause.INPUT, "fetch"),  # nobody works: all wait for a drive or a network
        (1.5, Cause.UNKNOWN, ""),  # launching, or a loader: either takes one
    ],
)
def test_a_gpu_that_idles_waits_for_what_its_cores_do(
    cores: float, cause: Cause, variant: str
) -> None:
    verdict = first(gpus=gpu(), host={"cores": 16, "run_cores": cores}, steps=STEP)
    assert (verdict.cause, verdict.variant) == (cause, variant)
    assert verdict.confidence is not Confidence.HIGH


def test_busy_cores_say_nothing_beside_a_gpu_that_works_or_a_wait_that_was_timed() -> None:
    host = {"cores": 16, "run_cores": 6.0}
    busy = first(gpus=[{"utilisation": {"mean": 0.97}}], host=host, steps=STEP)
    fed = first(gpus=gpu(), host=host, steps=STEP | {"data_wait": 0.005})
    assert Cause.INPUT not in (busy.cause, fed.cause)


def test_workers_that_fill_all_cores_are_a_suspicion_without_a_reading_of_the_gpu() -> None:
    host = {"cores": 32, "utilisation": {"mean": 1.0}}
    verdict = first(host=host, setup=ONE | {"num_workers": 32})
    assert (verdict.cause, verdict.suspected) == (Cause.INPUT, True)


def test_a_utilisation_of_nothing_is_a_reading() -> None:
    swings = {"mean": 0.0, "low": 0.0, "high": 0.9}
    verdict = first(gpus=[{"utilisation": swings}], loading={"drive_wait_share": 0.5}, steps=STEP)
    assert (verdict.cause, verdict.variant) == (Cause.INPUT, "fetch")


def test_launches_beside_batches_that_are_there_are_too_little_parallel_work() -> None:
    profile = {"launch_median_seconds": 35e-6}
    assert first(profile=profile, steps=STEP).cause is Cause.UNKNOWN
    assert first(profile=profile, steps=STEP | {"data_wait": 0.002}).cause is Cause.PARALLELISM


def test_what_crosses_the_link_is_batches_or_what_is_kept_elsewhere() -> None:
    gpus = gpu(received_bytes_s=20e9)
    batches = first(gpus=gpus, steps=STEP)
    kept = first(gpus=gpus, steps=STEP, setup=ONE | {"offload": True})
    assert (batches.cause, batches.variant) == (Cause.INPUT, "transfer")
    assert (kept.cause, kept.variant) == (Cause.MEMORY, "offload")


def test_computing_again_beside_free_memory_is_not_needed() -> None:
    gpus = [{"memory_used_bytes": 20e9, "memory_total_bytes": 80e9}]
    free = first(gpus=gpus, setup=ONE | {"checkpointing": "full"})
    full = first(
        gpus=[gpus[0] | {"memory_used_bytes": 70e9}], setup=ONE | {"checkpointing": "full"}
    )
    assert (free.cause, free.variant) == (Cause.MEMORY, "recomputation")
    assert full.cause is Cause.UNKNOWN


def test_a_device_that_computes_again_beside_half_of_its_memory_is_not_called_fine() -> None:
    gpus = [{"name": "NVIDIA H100", "memory_used_bytes": 34e9, "memory_total_bytes": 102e9}]
    setup = ONE | {"model_kind": "transformer", "parameters": 8_000_000_000}
    run = {"gpus": gpus, "profile": {"achieved_of_peak": 0.45}}
    again = first(**run, setup=setup | {"checkpointing": "full"})
    assert first(**run, setup=setup).cause is Cause.NONE
    assert (again.cause, again.variant) == (Cause.MEMORY, "recomputation")


def test_a_device_that_no_remedy_hurries_is_called_fine_and_not_synchronised() -> None:
    reads = {"steps": 10, "item_reads": 2000}
    trial = {"changed": "synchronisation", "rate_times": 1.002}
    verdict = first(gpus=[{"utilisation": {"mean": 0.9}}], counters=reads, trials=[trial])
    assert verdict.cause is Cause.NONE


def test_a_faster_processor_hurries_batches_where_cores_are_full_and_launches_where_not() -> None:
    trial = {"changed": "cpu", "step_times": 0.6}
    full = first(host={"cores": 16, "utilisation": {"mean": 0.97}}, trials=[trial], steps=STEP)
    free = first(host={"cores": 16, "utilisation": {"mean": 0.1}}, trials=[trial], steps=STEP)
    assert (full.cause, free.cause) == (Cause.INPUT, Cause.PARALLELISM)


def test_a_transformer_whose_step_grows_faster_than_its_length_is_in_attention() -> None:
    setup = ONE | {"model_kind": "transformer"}
    trial = {"changed": "sequence-length", "factor": 2, "step_times": 3.2}
    verdict = first(setup=setup, trials=[trial], steps=STEP)
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "attention")


def test_samples_that_no_batch_hurries_come_from_the_loader_where_the_gpu_idles() -> None:
    trial = {"changed": "batch", "factor": 2, "rate_times": 1.0}
    idle = first(gpus=gpu(), trials=[trial])
    busy = first(gpus=[{"utilisation": {"mean": 0.97}}], trials=[trial])
    assert (idle.cause, busy.cause) == (Cause.INPUT, Cause.NONE)


def test_a_device_that_neither_computes_nor_reads_its_memory_has_too_little_at_once() -> None:
    """Half of the samples are padding as well, which costs nothing on a device at rest."""
    verdict = first(
        gpus=[{"utilisation": {"mean": 0.5}, "dram_active": {"mean": 0.01}}],
        setup=ONE | {"sequence_padding": 0.5},
        steps={"steps": 1, "seconds": 0.03},
        profile={"kernels_a_step": 300, "achieved_of_peak": 0.023},
    )
    assert verdict.cause is Cause.PARALLELISM


@pytest.mark.parametrize(
    "told",
    [
        {"throughput": {"samples_s": 7.75, "expected_times": 0.9}},
        {"trials": [{"changed": "devices", "factor": 0.125, "rate_times": 1.02}]},
    ],
)
def test_a_run_as_fast_as_others_of_it_is_suspected_to_be_well(told: dict[str, Any]) -> None:
    setup = {"device": "cuda", "world_size": 8, "model_kind": "convolution"}
    verdict = first(setup=setup, steps=STEP, **told)
    assert (verdict.cause, verdict.suspected) == (Cause.NONE, True)
    assert verdict.confidence is Confidence.LOW


@pytest.mark.parametrize(
    ("devices", "factor", "cause"), [(32, 0.03125, Cause.NONE), (2, 0.5, Cause.COMMUNICATION)]
)
def test_what_many_devices_lose_by_little_at_each_doubling_is_well_and_two_lose_much(
    devices: int, factor: float, cause: Cause
) -> None:
    alone = {"changed": "devices", "factor": factor, "rate_times": 1.16}
    setup = {"device": "cuda", "world_size": devices, "model_kind": "transformer"}
    assert first(setup=setup, trials=[alone], throughput={"samples_s": 136}).cause is cause


def test_four_cards_that_give_as_much_as_eight_share_what_makes_their_pictures() -> None:
    """ResNet-50 on eight V100 with one worker each: 306, 1079 and 1070 pictures a second."""
    setup = {"device": "cuda", "world_size": 8, "nodes": 1, "model_kind": "convolution"}
    fewer = [
        {"changed": "devices", "factor": 0.125, "rate_times": 2.29},
        {"changed": "devices", "factor": 0.5, "rate_times": 2.02},
        {"changed": "nodes", "factor": 2, "rate_times": 0.978},
    ]
    assert first(setup=setup | {"num_workers": 1}, trials=fewer).cause is Cause.INPUT
    tried = {"changed": "workers", "factor": 4, "rate_times": 1.0}
    assert first(setup=setup, trials=[*fewer, tried]).cause is not Cause.INPUT


def test_many_pools_of_threads_that_fewer_cores_hurry_are_too_many_threads() -> None:
    """Sixteen simulations with 56 threads each: 2.8 times as fast on 16 cores."""
    verdict = first(
        host={"cores": 56, "run_threads": 952},
        steps={"steps": 1, "seconds": 7.5, "unit": "part"},
        trials=[{"changed": "cpu", "to": "a computer of 16 cores", "step_times": 0.361}],
    )
    assert (verdict.cause, verdict.variant) == (Cause.SCHEDULING, "threads")


def test_new_tensors_that_deterministic_algorithms_fill_are_a_setting() -> None:
    verdict = first(
        setup=ONE | {"deterministic": True},
        steps={"steps": 10, "seconds": 0.23},
        profile={"top": [{"name": "FillFunctor", "share": 0.074}]},
    )
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "architecture")


def test_a_cache_that_keeps_more_than_it_uses_is_in_nobodys_way_while_memory_is_free() -> None:
    kept = {"steps": 10, "allocated_bytes": 4e9, "reserved_bytes": 17e9, "inactive_split_bytes": 0}
    free, full = (
        signals(
            memory.RULES,
            evidence(gpus=[{"memory_total_bytes": size}], counters=kept, steps=STEP),
        )
        for size in (64e9, 18e9)
    )
    assert "counters.reserved_unused" in {signal.reading for signal in full}
    assert "counters.reserved_unused" not in {signal.reading for signal in free}


def test_a_job_that_mostly_compiles_does_not_log() -> None:
    job = {"steps": 1, "seconds": 129.0, "unit": "epoch", "compute": 3.0, "other": 126.0}
    logs = first(steps=job, profile={"host_top": [{"name": "print", "share": 0.6}]})
    compiles = first(steps=job, profile={"host_top": [{"name": "XLA compile", "share": 0.6}]})
    assert logs.cause is Cause.MONITORING
    assert compiles.cause is not Cause.MONITORING


def test_kernels_that_a_compiler_has_fused_are_neither_slow_nor_to_be_compiled() -> None:
    top = [{"name": "fp8 GEMM", "share": 0.6}, {"name": "triton_poi_fused_cast", "share": 0.3}]
    run = {"gpus": [{"utilisation": {"mean": 0.99}}], "steps": STEP | {"device_seconds": 0.5}}
    eager = first(**run, profile={"idle": 0.0, "top": top}, setup=ONE)
    fused = first(**run, profile={"idle": 0.0, "top": top}, setup=ONE | {"compile": True})
    assert (eager.cause, eager.variant) == (Cause.TUNING, "compile")
    assert fused.cause is Cause.NONE
