"""What a report states beside a reading decides which of two causes it speaks for."""

from typing import Any

import pytest

from trainwright.diagnose.decide import by_rules
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.verdict import Cause, Confidence, Verdict

ONE = {"device": "cuda", "world_size": 1}
EIGHT = {"device": "cuda", "world_size": 8, "nodes": 1, "strategy": "ddp"}
STEP = {"steps": 50, "seconds": 0.5}


def first(**parts: Any) -> Verdict:
    whole = {"trainwright_record": 1, "setup": ONE, **parts}
    return by_rules(Evidence.model_validate(whole))


def gpu(busy: float, **read: Any) -> list[dict[str, Any]]:
    return [{"utilisation": {"mean": busy}, **read}]


def test_threads_for_all_processors_in_each_of_several_jobs_fight_for_them() -> None:
    trains = [{"trains": True, "gpu": "other"}] * 3
    setup = ONE | {"torch_threads": 64}
    crowd = first(host={"cores": 64, "other_programs": trains}, setup=setup)
    alone = first(host={"cores": 64}, setup=setup)
    assert (crowd.cause, crowd.variant) == (Cause.SCHEDULING, "threads")
    assert crowd.confidence is not Confidence.HIGH
    assert alone.cause is Cause.UNKNOWN


@pytest.mark.parametrize(
    ("beside", "cause"),
    [
        ({"host": {"cores": 16, "utilisation": {"mean": 0.99}}}, Cause.INPUT),
        ({"loading": {"samples_s": 820.0}, "throughput": {"samples_s": 100.0}}, Cause.INPUT),
        ({}, Cause.COMMUNICATION),
    ],
)
def test_devices_that_are_slower_together_share_what_is_full(
    beside: dict[str, Any], cause: Cause
) -> None:
    trials = [{"changed": "devices", "factor": 0.125, "rate_times": 2.0}]
    assert first(setup=EIGHT, trials=trials, **beside).cause is cause


def test_devices_that_are_as_fast_together_are_fine_or_not_filled() -> None:
    trials = [{"changed": "devices", "factor": 0.125, "rate_times": 1.02}]
    busy = first(setup=EIGHT, trials=trials, gpus=gpu(0.98))
    fed = STEP | {"data_wait": 0.001}
    idle = first(setup=EIGHT, trials=trials, gpus=gpu(0.3), steps=fed)
    assert (busy.cause, idle.cause) == (Cause.NONE, Cause.PARALLELISM)


def test_a_gpu_that_idles_with_batches_that_are_there_is_not_filled() -> None:
    synthetic = [{"changed": "synthetic-data", "step_times": 0.98}]
    assert first(gpus=gpu(0.3), trials=synthetic).cause is Cause.PARALLELISM


def test_another_gpu_that_is_no_faster_waits_for_pictures_where_few_workers_make_them() -> None:
    same = [{"changed": "gpu", "to": "V100", "rate_times": 1.02}]
    pictures = ONE | {"model_kind": "convolution", "num_workers": 2}
    assert first(gpus=gpu(0.4), trials=same, setup=pictures).cause is Cause.INPUT
    assert first(gpus=gpu(0.4), trials=same).cause is Cause.PARALLELISM


def test_shapes_that_change_are_compiled_for_anew() -> None:
    steps = STEP | {"p95_seconds": 2.5}
    changes = {"dynamic_shapes": True, "cudnn_benchmark": True}
    verdict = first(steps=steps, setup=ONE | changes)
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "compile")
    assert first(steps=steps, setup=ONE | {"dynamic_shapes": True}).cause is Cause.UNKNOWN


def test_a_narrow_link_is_no_less_narrow_for_a_gpu_that_waits_for_it() -> None:
    narrow = gpu(0.15, link_width=1, link_width_max=16)
    rests = gpu(0.15, link_generation=1, link_generation_max=4)
    assert first(gpus=narrow, steps=STEP).cause is Cause.SCHEDULING
    assert first(gpus=rests, steps=STEP).cause is Cause.UNKNOWN


def test_a_gpu_with_another_program_on_it_is_not_held_for_slow_kernels() -> None:
    slow = {"expected_times": 2.0}
    assert first(gpus=gpu(1.0, foreign_processes=1), throughput=slow).cause is Cause.SCHEDULING
    assert first(gpus=gpu(1.0), throughput=slow).cause is Cause.TUNING


def test_drives_that_work_where_no_memory_is_left_page() -> None:
    host = {"io_wait": 0.4, "memory_available_bytes": 1e8, "memory_total_bytes": 32e9}
    verdict = first(host=host, gpus=gpu(0.1))
    assert (verdict.cause, verdict.variant) == (Cause.MEMORY, "swapping")
    assert first(host={"io_wait": 0.4}, gpus=gpu(0.1)).cause is Cause.INPUT


def test_a_drive_that_others_read_is_not_the_fault_of_the_loader() -> None:
    host = {"drive_busy": 1.0, "other_programs": [{"gpu": "none", "read_bytes_s": 1.5e8}]}
    steps = STEP | {"data_wait": 0.3}
    assert first(host=host, steps=steps).cause is Cause.SCHEDULING
    assert first(host={"drive_busy": 1.0}, steps=steps).cause is Cause.INPUT


def test_gpus_of_several_computers_that_rest_wait_for_their_network() -> None:
    trace = {"idle": 0.9}
    steps = {"steps": 50, "seconds": 5.7, "device_seconds": 0.6}
    apart = first(profile=trace, steps=steps, setup=EIGHT | {"nodes": 2, "link": "network"})
    assert apart.cause is Cause.COMMUNICATION
    assert first(profile=trace, steps=steps).cause is not Cause.COMMUNICATION


def test_processes_of_one_computer_are_not_told_that_they_wait_for_each_other() -> None:
    """They share its cores, which a run of fewer has to itself."""
    trials = [{"changed": "devices", "factor": 0.5, "rate_times": 1.9}]
    cores = {"device": "cpu", "world_size": 8, "nodes": 1}
    assert first(trials=trials, setup=cores).cause is Cause.UNKNOWN


def test_what_waits_elsewhere_is_moved_for_a_batch_of_any_size() -> None:
    trials = [{"changed": "batch", "factor": 2, "step_times": 1.05}]
    assert first(trials=trials, setup=ONE | {"offload": True}).cause is Cause.MEMORY
    assert first(trials=trials).cause is Cause.PARALLELISM


def test_the_gpu_of_the_lowest_clock_is_what_the_others_wait_for() -> None:
    clocks = [{"sm_clock_mhz": {"mean": mhz}} for mhz in (800, 1950, 1950, 1950)]
    steps = STEP | {"slowest_rank": 1.8}
    setup = EIGHT | {"world_size": 4}
    assert first(gpus=clocks, steps=steps, setup=setup).cause is Cause.SCHEDULING
    assert first(gpus=clocks[1:], steps=steps, setup=setup).cause is Cause.COMMUNICATION


def test_a_twentieth_of_the_peak_is_not_called_fine_however_busy_the_gpu_is() -> None:
    gpus = gpu(0.99, power_w={"mean": 350}, power_limit_w=400)
    assert first(gpus=gpus, profile={"achieved_of_peak": 0.05}).cause is Cause.TUNING
    assert first(gpus=gpus, profile={"achieved_of_peak": 0.5}).cause is Cause.NONE


def test_a_load_beyond_the_run_and_its_workers_is_of_others() -> None:
    setup = ONE | {"num_workers": 4}
    crowded = first(host={"cores": 8, "load_average": 30.0}, setup=setup, steps=STEP)
    its_own = first(host={"cores": 8, "load_average": 5.0}, setup=setup, steps=STEP)
    assert (crowded.cause, its_own.cause) == (Cause.SCHEDULING, Cause.UNKNOWN)


def test_what_is_as_fast_without_the_gpu_waits_for_its_batches_where_no_worker_makes_them() -> None:
    trials = [{"changed": "gpu", "to": "the CPU", "step_times": 1.0}]
    assert first(trials=trials, setup=ONE | {"num_workers": 0}).cause is Cause.INPUT
    assert first(trials=trials).cause is Cause.PARALLELISM


def test_slow_steps_that_are_slow_for_their_batches_are_the_loader() -> None:
    uneven = STEP | {"p95_seconds": 6.0}
    assert first(steps=uneven | {"data_wait_p95": 5.5}).cause is Cause.INPUT
    assert first(steps=uneven | {"data_wait_p95": 0.5}).cause is Cause.UNKNOWN


def test_a_gpu_that_is_more_than_half_busy_is_no_sign_of_what_cores_do() -> None:
    host = {"cores": 16, "utilisation": {"mean": 0.3}}
    verdict = first(gpus=gpu(0.6), host=host, throughput={"expected_times": 2.0})
    assert verdict.cause is Cause.UNKNOWN


def test_odd_widths_that_leave_tensor_cores_idle_are_shapes() -> None:
    traced = {"tensor_core": 0.05, "tensor_core_eligible": 0.6}
    odd = ONE | {"precision": "fp16-mixed", "dims": [1021, 30522]}
    even = ONE | {"precision": "fp16-mixed", "dims": [1024, 30528]}
    assert first(profile=traced, setup=odd).variant == "shapes"
    assert first(profile=traced, setup=even).variant != "shapes"


def test_smaller_shapes_that_leave_a_full_memory_room_are_the_memory() -> None:
    trials = [{"changed": "shapes", "to": "one picture", "step_times": 0.3}]
    full = [{"memory_used_bytes": 16e9, "memory_total_bytes": 16e9}]
    steps = {"steps": 10, "seconds": 98.0, "p95_seconds": 310.0}
    assert first(gpus=full, steps=steps, trials=trials).cause is Cause.MEMORY
    assert first(steps=steps, trials=trials).cause is Cause.TUNING


def test_a_mean_between_its_own_ends_is_one_reading_and_no_second_sign() -> None:
    calm = [{"utilisation": {"mean": 0.45, "low": 0.4, "high": 0.5}}]
    assert first(gpus=calm).variant == "nothing-measured"


def test_pictures_in_memory_that_others_train_on_sooner_are_slow_kernels() -> None:
    slow, pictures = {"expected_times": 2.2}, ONE | {"model_kind": "convolution"}
    there = first(throughput=slow, loading={"data_on": "memory"}, setup=pictures)
    assert (there.cause, there.confidence) == (Cause.TUNING, Confidence.LOW)
    assert first(throughput=slow, setup=pictures).cause is Cause.UNKNOWN


def test_a_cost_that_explains_little_of_what_others_reach_more_is_less_sure() -> None:
    trials = [{"changed": "devices", "factor": 0.25, "rate_times": 1.3}]
    little = first(trials=trials, setup=EIGHT, throughput={"expected_times": 2.0})
    most = first(trials=trials, setup=EIGHT, throughput={"expected_times": 1.5})
    assert (little.confidence, most.confidence) == (Confidence.LOW, Confidence.MEDIUM)


def test_what_is_told_of_another_program_is_one_sign_however_much_is_told() -> None:
    host = {"other_programs": [{"gpu": "same", "trains": True, "utilisation": 0.5}]}
    assert first(host=host).confidence is not Confidence.HIGH


def test_pictures_of_which_few_devices_take_as_many_as_all_come_from_what_all_share() -> None:
    pictures = EIGHT | {"model_kind": "convolution"}
    whole = [{"changed": "devices", "factor": 0.5, "rate_times": 2.0}]
    part = [{"changed": "devices", "factor": 0.5, "rate_times": 1.4}]
    assert first(setup=pictures, trials=whole).cause is Cause.INPUT
    assert first(setup=pictures, trials=part).cause is Cause.COMMUNICATION
    assert first(setup=EIGHT | {"strategy": "zero"}, trials=whole).cause is Cause.COMMUNICATION


def test_an_idle_gpu_is_not_slow_for_its_precision_by_two_settings() -> None:
    setup = ONE | {"precision": "fp32"}
    card = {"name": "NVIDIA B200", "compute_capability": "10.0"}
    assert first(gpus=[card], profile={"idle": 0.7}, setup=setup).cause is not Cause.TUNING
    assert first(gpus=[card], profile={"idle": 0.05}, setup=setup).cause is Cause.TUNING


def test_reads_beside_a_gpu_that_is_busy_are_never_sure() -> None:
    counters, profile = {"steps": 10, "item_reads": 1640}, {"synchronise_calls": 164.0}
    busy = first(gpus=gpu(0.9), counters=counters, profile=profile)
    idle = first(gpus=gpu(0.4), counters=counters, profile=profile)
    assert (busy.cause, busy.confidence) == (Cause.MONITORING, Confidence.MEDIUM)
    assert idle.confidence is Confidence.HIGH


def test_workers_on_a_slow_drive_wait_for_it_and_not_for_cores() -> None:
    host = {"cores": 12, "run_cores": 2.0}
    setup = ONE | {"num_workers": 10}
    slow = first(host=host, setup=setup, loading={"data_on": "hdd"}, gpus=gpu(0.3), steps=STEP)
    near = first(host=host, setup=setup, loading={"data_on": "memory"}, gpus=gpu(0.3), steps=STEP)
    assert (slow.cause, slow.variant) == (Cause.INPUT, "fetch")
    assert (near.cause, near.variant) == (Cause.SCHEDULING, "affinity")


def test_what_a_step_takes_beside_its_passes_is_no_batch_where_state_is_kept_elsewhere() -> None:
    steps = {"steps": 2, "seconds": 5.8, "compute": 1.7}
    assert first(steps=steps).cause is Cause.INPUT
    assert first(steps=steps, setup=ONE | {"offload": True}).cause is not Cause.INPUT


def test_processes_of_one_computer_that_lose_more_than_their_part_fight_for_its_cores() -> None:
    cores = {"device": "cpu", "world_size": 4, "nodes": 1}
    trials = [{"changed": "devices", "factor": 0.25, "step_times": 0.04}]
    verdict = first(trials=trials, setup=cores, host={"cores": 8, "utilisation": {"mean": 1.0}})
    assert (verdict.cause, verdict.variant) == (Cause.SCHEDULING, "threads")


@pytest.mark.parametrize(
    ("times", "cause"),
    [(0.09, Cause.MEMORY), (0.6, Cause.TUNING)],  # four fifths of the size are half of the work
)
def test_smaller_inputs_that_are_faster_than_their_size_makes_them_had_no_room(
    times: float, cause: Cause
) -> None:
    trials = [{"changed": "shapes", "factor": 0.8, "to": "1024 pixels", "step_times": times}]
    assert first(trials=trials, steps=STEP).cause is cause


def test_a_setting_beside_one_trial_is_no_reason_to_be_sure() -> None:
    """DataParallel with devices that are slower together: their loader may be what they share."""
    trials = [{"changed": "devices", "factor": 0.25, "step_times": 0.25}]
    split = {"device": "cuda", "world_size": 4, "nodes": 1, "strategy": "dp"}
    verdict = first(trials=trials, setup=split)
    assert (verdict.cause, verdict.confidence) == (Cause.COMMUNICATION, Confidence.MEDIUM)


def test_a_card_of_another_computer_tells_nothing_of_the_card() -> None:
    faster = {"changed": "gpu", "step_times": 0.25}
    card = [{"name": "NVIDIA Tesla V100", "compute_capability": "7.0"}]
    here = first(gpus=card, trials=[faster | {"to": "GTX 1080"}])
    there = first(gpus=card, trials=[faster | {"to": "GTX 1080, in another computer"}])
    assert (here.cause, there.cause) == (Cause.TUNING, Cause.UNKNOWN)


def test_trials_that_all_say_that_it_is_not_the_gpu_are_one_sign() -> None:
    trials = [
        {"changed": "gpu", "to": "A100", "rate_times": 1.0},
        {"changed": "model-size", "factor": 0.5, "step_times": 1.0},
        {"changed": "precision", "to": "fp16", "step_times": 0.99},
    ]
    pictures = ONE | {"model_kind": "convolution", "num_workers": 2}
    verdict = first(gpus=gpu(0.4), trials=trials, setup=pictures)
    assert (verdict.cause, verdict.confidence) == (Cause.INPUT, Confidence.MEDIUM)


def test_a_loader_timed_twice_by_its_own_timer_is_not_sure() -> None:
    steps = {"steps": 100, "seconds": 0.5, "data_wait": 0.3, "data_wait_p95": 3.0}
    assert first(steps=steps | {"p95_seconds": 3.2}).confidence is not Confidence.HIGH


def test_what_compiling_saves_where_launches_follow_at_once_is_launching() -> None:
    cells = {
        "setup": {"device": "cuda", "model_kind": "recurrent", "world_size": 1},
        "steps": {"steps": 1, "seconds": 2.0},
        "trials": [{"changed": "compile", "step_times": 0.3}],
    }
    many = {"kernels_a_step": 67800.0, "step_seconds": 2.0}
    few = {"kernels_a_step": 700.0, "step_seconds": 2.0}
    assert first(**cells, profile=many).cause is Cause.PARALLELISM
    assert first(**cells, profile=few).cause is Cause.TUNING


def test_sums_that_a_link_carries_in_no_time_are_not_what_fewer_gpus_save() -> None:
    def gpus(link: str, parameters: float) -> Cause:
        return first(
            gpus=[{"name": "NVIDIA V100"}] * 8,
            setup={
                **{"device": "cuda", "batch": 256, "world_size": 8, "nodes": 1},
                **{"strategy": "ddp", "link": link, "parameters": parameters},
            },
            steps={"steps": 10, "seconds": 0.7},
            trials=[{"changed": "devices", "factor": 0.5, "to": "4", "rate_times": 1.45}],
        ).cause

    assert gpus("nvlink", 25_600_000) is not Cause.COMMUNICATION
    assert gpus("pcie", 2_560_000_000) is Cause.COMMUNICATION


def test_more_cores_that_hurry_a_gpu_made_its_batches() -> None:
    def processor(to: str) -> Cause:
        return first(
            setup={"device": "cuda", "num_workers": 2, "world_size": 1},
            steps={"steps": 10, "seconds": 5.0},
            trials=[{"changed": "cpu", "to": to, "step_times": 0.68}],
        ).cause

    assert processor("40 cores") is Cause.INPUT
    assert processor("one of a higher clock") is Cause.PARALLELISM


def test_who_waits_for_cores_a_fifth_of_the_time_is_not_well() -> None:
    def starved(share: float) -> Cause:
        return first(
            setup={"device": "cpu", "torch_threads": 2, "batch": 64},
            steps={"steps": 50, "seconds": 0.04, "data_wait": 0.0004, "compute": 0.039},
            host={
                **{"cores": 2, "usable_cores": 2, "run_cores": 1.7, "runnable_threads": 1.9},
                **{"starved_share": share},
            },
            profile={"kernels_a_step": 100.0, "top": [{"name": "aten::mm", "share": 0.8}]},
        ).cause

    assert starved(0.01) is Cause.NONE
    assert starved(0.25) is not Cause.NONE


def test_a_precision_that_changes_nothing_on_tensor_cores_is_no_sign_of_health() -> None:
    def card(capability: str) -> Cause:
        return first(
            gpus=[{"compute_capability": capability}],
            setup={"device": "cuda", "model_kind": "convolution", "world_size": 1},
            steps={"steps": 10, "seconds": 0.68},
            experiments={"synthetic_batch": 0.68},
            trials=[{"changed": "precision", "to": "fp32", "step_times": 1.02}],
        ).cause

    assert card("6.1") is Cause.NONE
    assert card("8.6") is not Cause.NONE


def test_twice_the_tokens_in_the_same_time_are_no_small_batch_where_sending_was_found_to_cost() -> (
    None
):
    shards = {
        "setup": {"device": "cuda", "batch": 1, "world_size": 2, "nodes": 1, "strategy": "zero"},
        "steps": {"steps": 10, "seconds": 0.38},
    }
    longer = {"changed": "sequence-length", "factor": 2.0, "step_times": 1.0}
    whole = {"changed": "backend", "to": "each GPU keeps all weights", "step_times": 0.38}
    assert first(**shards, trials=[longer]).cause is Cause.PARALLELISM
    assert first(**shards, trials=[longer, whole]).cause is Cause.COMMUNICATION


FP32_CARDS: dict[str, Any] = {
    "gpus": [{"compute_capability": "7.0"}] * 8,
    "setup": EIGHT | {"precision": "fp32", "batch": 64},
    "throughput": {"samples_s": 234.0, "expected_times": 0.85},
}


def test_devices_that_do_nearly_as_much_together_as_alone_are_well() -> None:
    alone = {"changed": "devices", "factor": 0.125}
    well = first(**FP32_CARDS, trials=[alone | {"rate_times": 1.05}])
    lost = first(**FP32_CARDS, trials=[alone | {"rate_times": 2.0}])
    assert (well.cause, lost.cause) == (Cause.NONE, Cause.COMMUNICATION)


def test_what_more_devices_would_lose_is_not_lost_by_those_that_there_are() -> None:
    more = {"changed": "devices", "factor": 2.0, "rate_times": 0.6}
    alone = {"changed": "devices", "factor": 0.125, "rate_times": 1.03}
    assert first(**FP32_CARDS, trials=[more, alone]).cause is Cause.NONE


@pytest.mark.parametrize(
    ("kept", "cause"), [(0.75, Cause.PARALLELISM), (1.0, Cause.INPUT), (0.26, Cause.NONE)]
)
def test_fewer_devices_that_share_all_samples_tell_of_the_batch(kept: float, cause: Cause) -> None:
    """Three quarters of the rate with one of four: its batch fills it. All of it: the loader."""
    shared = {"changed": "devices", "factor": 0.25, "to": "1 card, the same batch for all"}
    workers = {"changed": "workers", "factor": 4.0, "rate_times": 2.0}
    found = first(
        gpus=[{}] * 4,
        setup=EIGHT | {"world_size": 4, "batch": 8},
        throughput={"samples_s": 864.0, "expected_times": 1.0 if kept < 0.3 else None},
        trials=[shared | {"rate_times": kept / 0.25}, *([workers] if kept == 1.0 else [])],
    )
    assert found.cause is cause


def test_an_update_that_takes_a_sixth_of_a_short_step_is_for_too_few_samples() -> None:
    def updating(share: float) -> Cause:
        return first(
            setup={"device": "cpu", "torch_threads": 2, "batch": 16},
            steps={
                **{"steps": 300, "seconds": 0.007, "data_wait": 0.0003, "compute": 0.0066},
                **{"optimizer": 0.007 * share},
            },
            host={
                **{"cores": 2, "usable_cores": 2, "run_cores": 1.99, "runnable_threads": 2.0},
                **{"starved_share": 0.01},
            },
            profile={
                **{"kernels_a_step": 150.0, "flops_a_step": 2e8, "matrix_flops_s": 1.5e11},
                **{"top": [{"name": "aten::mkldnn_rnn_layer", "share": 0.4}]},
            },
        ).cause

    assert updating(0.03) is Cause.NONE
    assert updating(0.2) is Cause.PARALLELISM


def test_pages_that_a_fill_takes_anew_are_no_slow_kernel() -> None:
    def filling(faults: float, system: float) -> Cause:
        return first(
            setup={"device": "cpu", "torch_threads": 2, "batch": 16},
            steps={"steps": 90, "seconds": 0.024, "data_wait": 0.0004, "compute": 0.0236},
            host={
                **{"cores": 2, "usable_cores": 2, "run_cores": 1.9, "runnable_threads": 1.9},
                **{"main_minor_faults_s": faults, "main_system_share": system},
            },
            profile={
                **{"kernels_a_step": 170.0, "flops_a_step": 6.7e8, "matrix_flops_s": 2.5e11},
                "top": [
                    {"name": "aten::fill_", "share": 0.43, "calls": 5},
                    {"name": "aten::mkldnn_rnn_layer", "share": 0.27, "calls": 1},
                ],
            },
        ).cause

    assert filling(340_000, 0.44) is Cause.MEMORY
    assert filling(300, 0.01) is Cause.TUNING
