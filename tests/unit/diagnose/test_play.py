"""Where a wait ends is not where it begins: games, late ranks, lazy arrays, tables and quotas."""

from typing import Any

import pytest

from trainwright.diagnose.decide import judge
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures.trials import doubled_batch
from trainwright.diagnose.verdict import Cause, Confidence, Verdict


def first(**parts: Any) -> Verdict:
    """Return the first verdict on what somebody wrote down of a run."""
    told = {"trainwright_record": 1, "made_by": "hand", **parts}
    return judge(Evidence.model_validate(told | {"steps": {"steps": 1} | parts["steps"]})).first


def rows(shares: dict[str, float]) -> dict[str, Any]:
    """Return a profile of the host by the names of its functions."""
    return {"host_top": [{"name": name, "share": share} for name, share in shares.items()]}


SETUP = {"device": "cuda", "precision": "fp32", "batch": 1, "world_size": 1}
PLAYED = {
    "gpus": [{"utilisation": {"mean": 0.34}}],
    "steps": {"seconds": 2.31, "data_wait": 1.62, "compute": 0.67, "samples": 2048},
    "setup": SETUP,
}


def test_games_that_wait_for_the_model_are_too_little_work_at_once() -> None:
    asked = {"collect_rollouts": 0.7, "ActorCriticPolicy.forward": 0.53, "env.step": 0.06}
    verdict = first(**PLAYED, profile=rows(asked))
    assert (verdict.cause, verdict.variant) == (Cause.PARALLELISM, "host-bound")


def test_games_whose_world_takes_the_time_are_waited_for_and_one_world_is_never_sure() -> None:
    world = rows({"env.step": 0.6, "policy": 0.08})
    played = PLAYED | {"gpus": [{"utilisation": {"mean": 0.01}}]}
    alone = first(**played, profile=world)
    assert alone.cause is Cause.INPUT
    assert alone.confidence is not Confidence.HIGH
    many = first(**played | {"setup": SETUP | {"batch": 512}}, profile=world)
    assert (many.cause, many.confidence) == (Cause.INPUT, Confidence.HIGH)


def ranks(**more: Any) -> Verdict:
    """Return the verdict on four ranks that exchange 0.5 of the step and wait for no batch."""
    gpu = {"utilisation": {"mean": 0.99}, "power_w": {"mean": 141}, "power_limit_w": 300}
    times = {"seconds": 0.86, "data_wait": 0.018, "communication": 0.43, "slowest_rank": 1.6}
    setup = {"device": "cuda", "batch": 16, "world_size": 4, "nodes": 1, "strategy": "ddp"}
    return first(gpus=[gpu] * 4, steps=times, setup=setup, **more)


def test_ranks_that_wait_for_one_whose_batches_are_late_lack_batches() -> None:
    """The timers are those of one rank, whose batches may all have been there."""
    assert ranks().cause is Cause.COMMUNICATION
    assert ranks(experiments={"synthetic_batch": 0.435}).cause is Cause.INPUT


@pytest.mark.parametrize(("taken", "cause"), [(0.66, Cause.INPUT), (0.06, Cause.PARALLELISM)])
def test_arrays_that_are_read_when_the_step_asks_for_them_are_late_batches(
    taken: float, cause: Cause
) -> None:
    verdict = first(
        gpus=[{"utilisation": {"mean": 0.33}}],
        host={"cores": 32, "run_cores": 1.6},
        steps={"seconds": 3.4, "data_wait": 0.004, "compute": 3.38, "samples": 1},
        setup={"device": "cuda", "batch": 1, "num_workers": 0, "world_size": 1},
        profile=rows({"training_step": 0.78, "dask.local.get_async": taken}),
    )
    assert verdict.cause is cause


TABLES = {
    "steps": {"seconds": 0.0243, "data_wait": 0.0007, "samples": 65536},
    "setup": {"device": "cuda", "precision": "fp16", "batch": 65536, "world_size": 1},
    "profile": {
        "idle": 0.03,
        "achieved_of_peak": 0.02,
        "top": [
            {"name": "split_embedding_backward_rowwise_adagrad_kernel", "share": 0.49},
            {"name": "split_embedding_forward_kernel", "share": 0.29},
            {"name": "ampere_fp16_s16816gemm_fp16_128x128", "share": 0.08},
        ],
    },
    "trials": [{"changed": "batch", "factor": 2, "to": "twice as many", "step_times": 1.96}],
}


@pytest.mark.parametrize(("busy", "cause"), [(0.84, Cause.NONE), (0.2, Cause.TUNING)])
def test_lookups_that_fill_the_memory_s_bandwidth_can_do_no_better(
    busy: float, cause: Cause
) -> None:
    gpu = {"utilisation": {"mean": 1.0}, "dram_active": {"mean": busy}}
    assert first(gpus=[gpu], **TABLES).cause is cause


def test_a_busy_kernel_that_reads_over_the_link_waits_for_the_copy() -> None:
    gpu = {
        "utilisation": {"mean": 0.98},
        "received_bytes_s": 16.3e9,
        "copy_bytes_s": 24e9,
        "copy_expected_bytes_s": 31.5e9,
    }
    profile = {"idle": 0.03, "top": [{"name": "IndexSelectMultiKernelAligned", "share": 0.75}]}
    told = {
        "steps": {"seconds": 0.071, "samples": 4096},
        "setup": {"device": "cuda", "precision": "fp32", "batch": 4096, "world_size": 1},
        "profile": profile,
    }
    verdict = first(gpus=[gpu | {"dram_active": {"mean": 0.08}}], **told)
    assert (verdict.cause, verdict.variant) == (Cause.INPUT, "transfer")
    assert first(gpus=[gpu | {"dram_active": {"mean": 0.7}}], **told).cause is not Cause.INPUT


def test_what_two_signals_say_of_one_cause_is_not_doubted_for_a_third_of_the_same() -> None:
    verdict = first(
        gpus=[{"utilisation": {"mean": 0.29, "low": 0, "high": 1}, "power_w": {"mean": 94}}],
        host={"cores": 16, "run_cores": 7.4},
        steps={"seconds": 0.95, "p95_seconds": 5.1, "data_wait": 0.02, "samples": 24},
        setup={"device": "cuda", "batch": 24, "num_workers": 8, "compile": True},
        profile={"recompilations": 0.31},
        trials=[{"changed": "shapes", "to": "eight lengths", "step_times": 0.36}],
    )
    assert verdict.cause is Cause.TUNING
    assert verdict.confidence is not Confidence.LOW


def test_a_quota_that_stops_the_workers_is_not_outvoted_by_the_batches_that_they_owe() -> None:
    verdict = first(
        gpus=[{"utilisation": {"mean": 0.24, "low": 0.0, "high": 1.0}, "idle_share": 0.7}],
        host={"cores": 96, "usable_cores": 4.0, "throttled_periods": 0.97, "starved_share": 0.77}
        | {"quota_cores": 4.0, "runnable_threads": 15.4},
        steps={"steps": 200, "seconds": 0.981, "data_wait": 0.748, "compute": 0.214},
        loading={"queue_empty": 0.99, "data_on": "nvme"},
        setup={"device": "cuda", "batch": 512, "num_workers": 16, "model_kind": "convolution"},
    )
    assert (verdict.cause, verdict.variant) == (Cause.SCHEDULING, "quota")


def test_an_epoch_of_larger_batches_has_fewer_steps() -> None:
    """As long with three times the batch: each of its steps takes three times as long."""
    trial = {"changed": "batch", "factor": 3.2, "to": "32", "step_times": 1.1}
    for unit, twice in (("epoch", 1 + (1.1 * 3.2 - 1) / 2.2), ("step", 1 + 0.1 / 2.2)):
        steps = {"steps": 1, "seconds": 60.0, "unit": unit}
        told = {"trainwright_record": 1, "steps": steps, "trials": [trial]}
        assert doubled_batch(Evidence.model_validate(told)) == pytest.approx(twice)


def test_worlds_that_the_device_itself_computes_are_no_batches_that_it_waits_for() -> None:
    """A simulation on the GPU that takes seven tenths of an iteration, and fills it."""
    told: dict[str, Any] = {
        "steps": {"seconds": 0.447, "data_wait": 0.318, "compute": 0.124, "samples": 163840},
        "setup": {"device": "cuda", "batch": 8192, "world_size": 1},
        "trials": [{"changed": "batch", "factor": 2, "to": "16384", "step_times": 1.97}],
    }
    full = {"utilisation": {"mean": 1.0}, "power_w": {"mean": 566}, "power_limit_w": 700}
    assert first(gpus=[full | {"sm_active": {"mean": 0.94}}], **told).cause is Cause.NONE
    assert first(gpus=[{"utilisation": {"mean": 0.3}}], **told).cause is Cause.INPUT


def test_features_that_the_step_makes_are_input_however_long_the_step_s_kernels_are() -> None:
    verdict = first(
        gpus=[{"utilisation": {"mean": 0.3}, "power_w": {"mean": 73}, "power_limit_w": 140}],
        steps={"seconds": 1.04, "data_wait": 0.006, "device_seconds": 0.304, "samples": 48},
        setup=SETUP | {"batch": 48, "num_workers": 8},
        profile={"kernel_median_seconds": 8.8e-05}
        | rows({"training_step": 0.66, "librosa.feature.melspectrogram": 0.37}),
    )
    assert verdict.cause is Cause.INPUT


def test_a_driver_that_allocates_in_every_step_is_not_outvoted_by_the_idle_gpu() -> None:
    verdict = first(
        gpus=[{"utilisation": {"mean": 0.56, "low": 0.1, "high": 0.97}}],
        steps={"seconds": 3.62, "data_wait": 0.07, "samples": 4},
        setup=SETUP | {"batch": 4, "accumulation": 8},
        profile={"idle": 0.44, "allocation_calls": 704} | rows({"cudaFree": 0.31}),
    )
    assert verdict.cause is Cause.MEMORY


def test_fewer_pixels_that_fit_into_the_memory_say_that_it_was_full() -> None:
    lent = {"memory_used_bytes": 12.1e9, "memory_total_bytes": 12.88e9}
    told: dict[str, Any] = {
        "steps": {"seconds": 31.4, "data_wait": 0.01, "samples": 1},
        "setup": SETUP,
        "trials": [{"changed": "shapes", "to": "512 pixels", "step_times": 0.062}],
    }
    gpu = {"utilisation": {"mean": 1.0}, "power_w": {"mean": 68}, "power_limit_w": 200} | lent
    assert first(gpus=[gpu | {"memory_shared_bytes": 6.1e9}], **told).cause is Cause.MEMORY
    assert first(gpus=[gpu], **told).cause is Cause.TUNING


def test_memory_that_the_run_did_not_reserve_is_another_program_s() -> None:
    gpu = {"utilisation": {"mean": 1.0}, "power_w": {"mean": 331}, "power_limit_w": 350}
    memory = {"memory_used_bytes": 21.6e9, "memory_total_bytes": 24e9}
    told = {
        "steps": {"seconds": 0.47, "data_wait": 0.008},
        "throughput": {"expected_times": 2.1},
        "setup": {"device": "cuda", "batch": 32, "world_size": 1},
    }
    counters = {"steps": 1, "reserved_bytes": 8_900_000_000}
    verdict = first(gpus=[gpu | memory], counters=counters, **told)
    assert (verdict.cause, verdict.variant) == (Cause.SCHEDULING, "other-programs-gpu")
    own = {"steps": 1, "reserved_bytes": 21_000_000_000}
    assert first(gpus=[gpu | memory], counters=own, **told).cause is not Cause.SCHEDULING


def test_an_iteration_of_more_worlds_is_no_epoch_of_larger_batches() -> None:
    """With 64 times as many worlds it takes 1.2 times as long: there were too few of them."""
    verdict = first(
        gpus=[{"utilisation": {"mean": 0.44}, "power_w": {"mean": 112}, "power_limit_w": 450}],
        steps={"seconds": 1.302, "unit": "epoch", "data_wait": 1.21, "compute": 0.092},
        setup=SETUP | {"batch": 64},
        trials=[{"changed": "batch", "factor": 64, "to": "4096", "step_times": 1.22}],
    )
    assert verdict.cause is Cause.PARALLELISM


def test_a_loader_on_a_processor_may_predict_something_and_is_no_game() -> None:
    verdict = judge(
        Evidence.model_validate(
            {
                "trainwright_record": 1,
                "setup": {"device": "cpu", "batch": 16, "num_workers": 0},
                "steps": {"steps": 60, "seconds": 0.03, "data_wait": 0.014, "compute": 0.0155},
                "loading": {"cpu_share": 0.97, "batch_seconds": 0.014},
                "profile": rows({"sounds.py:predicted": 0.44, "backward": 0.2}),
            }
        )
    ).first
    assert verdict.cause is Cause.INPUT


def test_samples_that_bring_nothing_far_from_the_peak_tell_of_slow_kernels() -> None:
    verdict = first(
        gpus=[{"name": "NVIDIA GB200", "compute_capability": "10.0"}] * 8,
        steps={"seconds": 10.0},
        throughput={"tokens_s": 3250},
        setup={"device": "cuda", "precision": "bf16-mixed", "batch": 16, "world_size": 8}
        | {"nodes": 1, "strategy": "fsdp", "compile": False, "sequence_length": 2048},
        profile={"achieved_of_peak": 0.2958},
        trials=[{"changed": "batch", "factor": 2, "to": "32", "rate_times": 1.007}],
    )
    assert verdict.cause is Cause.TUNING
