"""What a step's time is held against: the loader alone, another device, the hardware, its parts."""

from typing import Any

import pytest

from trainwright.diagnose.decide import by_rules, judge
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures import cost, hardware, trials, work
from trainwright.diagnose.verdict import Cause, Confidence, Diagnosis

CUDA = {"device": "cuda"}
CPU = {"device": "cpu", "precision": "fp32", "batch": 8, "torch_threads": 2, "strategy": "single"}


def seen(**parts: Any) -> Evidence:
    return Evidence.model_validate({"trainwright_record": 1, **parts})


def diagnosed(**parts: Any) -> Diagnosis:
    return judge(seen(**parts))


def gpu(utilisation: float, **more: Any) -> list[dict[str, Any]]:
    return [{"utilisation": {"mean": utilisation}, **more}]


def steps(seconds: float = 1.0, **parts: Any) -> dict[str, Any]:
    return {"steps": 50, "seconds": seconds, **parts}


def on_cores(**profile: Any) -> dict[str, Any]:
    """Return a run on a processor that has its cores and its batches."""
    return {
        "host": {"cores": 2, "usable_cores": 2, "run_cores": 1.95, "starved_share": 0.03},
        "steps": steps(0.1, data_wait=0.001, compute=0.099, other=0.0001, blocked=0.0),
        "setup": CPU,
        "profile": {"kernels_a_step": 200, "matrix_flops_s": 2e11, **profile},
    }


def in_one_thread(**profile: Any) -> dict[str, Any]:
    """Return such a run with one thread for its two cores."""
    run = on_cores(**profile)
    run["setup"] = CPU | {"torch_threads": 1}
    run["host"] |= {"run_cores": 1.0, "starved_share": 0.0}
    return run


def test_a_batch_that_takes_long_beside_a_gpu_that_rests_is_the_input() -> None:
    slow = diagnosed(gpus=gpu(0.03), loading={"batch_seconds": 0.5}, setup=CUDA)
    assert slow.first.cause is Cause.INPUT
    assert slow.first.confidence is not Confidence.HIGH
    quick = diagnosed(gpus=gpu(0.03), loading={"batch_seconds": 0.005}, setup=CUDA)
    assert quick.first.cause is not Cause.INPUT


def test_a_loader_that_is_far_ahead_clears_itself() -> None:
    ahead = {"loading": {"samples_s": 400}, "throughput": {"samples_s": 40}, "setup": CUDA}
    assert diagnosed(**ahead).first.cause is Cause.NONE
    assert diagnosed(**ahead, gpus=gpu(0.99)).first.cause is Cause.NONE
    assert diagnosed(**ahead, gpus=gpu(0.3)).first.cause is Cause.PARALLELISM
    level = {**ahead, "loading": {"samples_s": 42}}
    assert diagnosed(**level).first.cause is Cause.INPUT


@pytest.mark.parametrize("named", ["the CPU", "none: 8 threads of the processor", "12 cores"])
def test_a_processor_that_is_as_fast_as_the_gpu_tells_of_small_operators(named: str) -> None:
    trial = {"changed": "gpu", "to": named, "step_times": 0.5}
    found = diagnosed(steps=steps(), setup=CUDA, trials=[trial])
    assert found.first.cause is Cause.PARALLELISM
    assert hardware.another_gpu(seen(steps=steps(), trials=[trial])) is None


def test_a_gpu_that_is_slower_than_its_peak_against_another_ones_has_slow_kernels() -> None:
    own = gpu(1.0, name="NVIDIA GeForce RTX 3090")
    trial = {"changed": "gpu", "to": "NVIDIA GeForce RTX 2080 Ti", "step_times": 0.1}
    run = {"gpus": own, "steps": steps(), "setup": CUDA}
    assert diagnosed(**run, trials=[trial]).first.cause is Cause.TUNING
    larger = trial | {"to": "NVIDIA H100 SXM", "step_times": 0.3}
    assert (hardware.beyond_its_peak(seen(**run, trials=[larger])) or 0) < 2


def test_what_leaves_a_devices_work_as_it_is_changes_its_utilisation_as_its_rate() -> None:
    saved = trials.saved_by("more_workers")
    trial = {"changed": "workers", "factor": 2, "utilisation": 0.8}
    assert saved(seen(gpus=gpu(0.4), trials=[trial])) == pytest.approx(0.5)
    assert saved(seen(trials=[trial])) is None  # of nothing
    other = {"changed": "batch", "factor": 2, "utilisation": 0.8}
    assert trials.doubled_batch(seen(gpus=gpu(0.4), trials=[other])) is None


@pytest.mark.parametrize("trial", [{"factor": 0.25}, {"to": "one"}, {"to": "1 GPU"}])
def test_one_device_in_place_of_four_is_that_in_words_too(trial: dict[str, Any]) -> None:
    found = seen(
        setup={**CUDA, "world_size": 4},
        trials=[{"changed": "devices", "rate_times": 4.0, **trial}],
    )
    assert trials.saved_by("single_device")(found) == pytest.approx(0.75)


def test_accumulating_is_held_against_the_samples_it_takes() -> None:
    found = seen(trials=[{"changed": "accumulation", "factor": 8, "rate_times": 2.0}])
    assert trials.saved_by("accumulation")(found) == pytest.approx(0.5)


def test_a_wait_that_the_collector_fills_is_the_collectors() -> None:
    counters = {"steps": 50, "garbage_collections": 50, "garbage_seconds": 44.0}
    waiting = steps(data_wait=0.9, compute=0.1)
    found = diagnosed(steps=waiting, counters=counters, setup={**CPU, "num_workers": 0})
    assert found.first.cause is Cause.MEMORY
    without = diagnosed(steps=waiting, setup={**CPU, "num_workers": 0}, loading={"cpu_share": 1.0})
    assert without.first.cause is Cause.INPUT


def test_pages_that_are_taken_anew_cost_half_a_microsecond_each() -> None:
    faults = seen(host={"main_minor_faults_s": 4e5})
    assert cost.page_faults(faults) == pytest.approx(0.2)
    assert cost.page_faults(seen(host={})) is None


def test_a_quiet_process_has_the_systems_time_for_its_pages_and_no_thread_would_share_it() -> None:
    quiet = {"main_read_bytes_s": 4e4, "main_written_bytes_s": 3e4}
    faults = {"main_minor_faults_s": 1.7e5, "main_system_share": 0.45}
    assert cost.page_faults(seen(host=faults | quiet)) == pytest.approx(0.45)
    busy = {"main_read_bytes_s": 4e8, "main_written_bytes_s": 3e4}
    assert cost.page_faults(seen(host=faults | busy)) == pytest.approx(0.085)
    run = in_one_thread(flops_a_step=1e10)
    assert diagnosed(**run).first.variant == "threads"
    run["host"] |= faults | quiet
    first = diagnosed(**run).first
    assert (first.cause, first.variant) == (Cause.MEMORY, "heap")


def test_a_second_thread_is_no_cure_for_operators_of_a_few_numbers() -> None:
    def with_one_thread(operators: int) -> Diagnosis:
        run = in_one_thread(flops_a_step=1e10, empty_call_seconds=1.5e-6)
        run["profile"]["kernels_a_step"] = operators
        return diagnosed(**run)

    assert with_one_thread(1000).first.cause is Cause.SCHEDULING
    assert with_one_thread(6000).first.cause is not Cause.SCHEDULING


def test_long_operators_that_do_little_are_slow_kernels_and_short_ones_are_not() -> None:
    rows = [{"name": "aten::pow", "share": 0.7}]
    long = on_cores(flops_a_step=5e8, top=rows)
    assert work.slow_operators(seen(**long)) == pytest.approx(5e8 / 0.099 / 2e11)
    assert diagnosed(**long).first.cause is Cause.TUNING
    short = on_cores(flops_a_step=5e8, top=rows) | {}
    short["profile"]["kernels_a_step"] = 9000
    assert diagnosed(**short).first.cause is Cause.PARALLELISM
    starved = on_cores(flops_a_step=5e8, top=rows)
    starved["host"] |= {"starved_share": 0.5, "foreign_cores": 1.0}
    assert work.slow_operators(seen(**starved)) is None


def test_nothing_is_wrong_for_sure_only_where_a_trial_says_so() -> None:
    busy = on_cores(flops_a_step=1.4e10, top=[{"name": "aten::mm", "share": 0.9}])
    found = by_rules(seen(**busy))
    assert (found.cause, found.confidence) == (Cause.NONE, Confidence.MEDIUM)
    tried = by_rules(seen(**busy, trials=[{"changed": "synthetic-data", "step_times": 1.0}]))
    assert (tried.cause, tried.confidence) == (Cause.NONE, Confidence.HIGH)


def test_products_below_half_of_a_plain_ones_rate_are_no_healthy_run() -> None:
    slow = on_cores(flops_a_step=4e9, top=[{"name": "aten::mm", "share": 0.9}])
    assert diagnosed(**slow).first.cause is Cause.TUNING


def test_values_of_many_operators_are_no_reads_for_their_own_sake() -> None:
    reads = {"steps": 50, "item_reads": 1600, "synchronisation_seconds": 0.05}
    acting = on_cores(flops_a_step=3e4, top=[{"name": "aten::mul", "share": 0.3}])
    acting["profile"]["kernels_a_step"] = 4000
    acting["steps"] |= {"seconds": 0.013, "compute": 0.0127, "data_wait": 0.0001}
    assert diagnosed(**acting, counters=reads).first.cause is Cause.PARALLELISM
    acting["profile"]["kernels_a_step"] = 200
    assert work.kernels_a_read(seen(**acting, counters=reads)) == pytest.approx(200 / 32)


def test_what_is_left_of_a_step_beside_its_passes_is_the_loaders() -> None:
    parts = {"forward": 0.1, "backward": 0.2, "optimizer": 0.02}
    assert diagnosed(steps=steps(**parts), setup=CUDA, gpus=gpu(0.3)).first.cause is Cause.INPUT
    filled = {"forward": 0.3, "backward": 0.6, "optimizer": 0.05}
    assert diagnosed(steps=steps(**filled), setup=CUDA).first.cause is not Cause.INPUT


def test_slow_operators_are_told_before_a_thread_that_would_halve_them_at_most() -> None:
    rows = [{"name": "aten::mm", "share": 0.8}]

    def with_one_thread(flops: float) -> Diagnosis:
        return diagnosed(**in_one_thread(flops_a_step=flops, top=rows))

    assert with_one_thread(1e10).first.variant == "threads"
    assert with_one_thread(1e9).first.cause is Cause.TUNING


def test_a_checkpoint_that_is_read_back_now_and_then_is_no_state_that_is_put_away() -> None:
    def saving(every: int) -> Diagnosis:
        times = 50 // every
        counters = {"steps": 50, "checkpoints": times, "loads": times}
        counters |= {"checkpoint_seconds": 12.0, "load_seconds": 10.0}
        host = {"main_read_bytes_s": 2e8, "main_written_bytes_s": 2e8}
        setup = CPU | {"parameters": 1_000_000}
        own = steps(compute=0.55, other=0.44, data_wait=0.01)
        return diagnosed(steps=own, counters=counters, host=host, setup=setup)

    assert saving(every=3).first.cause is Cause.MONITORING
    assert saving(every=1).first.cause is Cause.MEMORY


def test_what_watches_every_operator_is_told_before_operators_that_it_makes_long() -> None:
    watched = on_cores(flops_a_step=4e8, empty_call_seconds=1e-5)
    watched["profile"]["kernels_a_step"] = 1000
    watched["host"] |= {"main_written_bytes_s": 5e7}
    watched["setup"] = CPU | {"parameters": 200_000}
    first = diagnosed(**watched).first
    assert (first.cause, first.variant) == (Cause.MONITORING, "profiler")
    watched["profile"]["empty_call_seconds"] = 2e-6
    assert diagnosed(**watched).first.variant != "profiler"


def test_an_evaluation_within_a_step_makes_its_products_no_slower() -> None:
    rows = [{"name": "aten::mm", "share": 0.6}]
    run = on_cores(flops_a_step=4e9, top=rows)
    alone = work.any_products_rate(seen(**run)) or 0.0
    evaluating = run | {"counters": {"steps": 50, "evaluations": 50, "evaluation_seconds": 2.5}}
    assert work.any_products_rate(seen(**evaluating)) == pytest.approx(alone * 0.97 / 0.48)
    first = diagnosed(**evaluating).first
    assert first.cause is Cause.MONITORING
    assert first.gain == pytest.approx(0.5, abs=0.01)


def test_a_pseudo_inverse_is_a_slow_way_to_solve_and_no_lack_of_threads() -> None:
    rows = [{"name": "aten::_linalg_svd", "share": 0.3}, {"name": "aten::bmm", "share": 0.5}]
    run = in_one_thread(flops_a_step=4e9, top=rows)
    assert diagnosed(**run).first.variant != "threads"
    run["profile"]["host_top"] = [{"name": "torch.linalg.pinv()", "share": 0.35}]
    assert (diagnosed(**run).first.cause, diagnosed(**run).first.variant) == (
        Cause.TUNING,
        "kernels",
    )


def test_what_lies_beside_steps_that_compile_anew_is_no_log() -> None:
    run = {"steps": steps(20.0, other=17.0), "setup": {"model_kind": "transformer"}}
    assert diagnosed(**run).first.cause is Cause.MONITORING
    anew = diagnosed(**run, profile={"recompilations": 1.0}).first
    assert (anew.cause, anew.variant) == (Cause.TUNING, "compile")
