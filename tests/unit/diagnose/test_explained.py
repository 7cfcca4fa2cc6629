"""What explains a symptom that belongs to several causes, and what denies that a run is well."""

from typing import Any

import pytest

from trainwright.diagnose.decide import by_rules, judge
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.verdict import Cause, Confidence, Verdict

ONE = {"device": "cuda", "world_size": 1}
BUSY = [{"compute_capability": "8.0", "utilisation": {"mean": 0.98}}]
FULL = {"steps": 50, "seconds": 2.0, "data_wait": 0.05, "compute": 1.9}


def evidence(**parts: Any) -> Evidence:
    return Evidence.model_validate({"trainwright_record": 1, "setup": ONE, **parts})


def first(**parts: Any) -> Verdict:
    return by_rules(evidence(**parts))


def kernels(**shares: float) -> dict[str, Any]:
    return {"idle": 0.02, "top": [{"name": name, "share": each} for name, each in shares.items()]}


@pytest.mark.parametrize(
    "top", [{"ampere_sgemm_128x64_tn": 0.7}, {"cutlass_80_tensorop_d884gemm_64x64": 0.6}]
)
def test_products_without_tensor_cores_are_wrong_however_busy_the_gpu_is(
    top: dict[str, float],
) -> None:
    """And though runs whose figures are like these were well."""
    run = evidence(
        made_by="hand",
        gpus=[BUSY[0] | {"power_w": {"mean": 338}, "power_limit_w": 400}],
        steps=FULL,
        profile=kernels(**top),
        trials=[{"changed": "batch", "factor": 2, "step_times": 1.98}],
    )
    verdict = judge(run).first
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "precision")


def test_an_optimizer_for_the_processor_is_offloading() -> None:
    run = {"gpus": [{"utilisation": {"mean": 0.34}}], "host": {"cores": 32, "run_cores": 15.0}}
    steps = {"steps": 40, "seconds": 5.6, "data_wait": 0.0, "optimizer": 3.2, "compute": 5.5}
    setup = ONE | {"parameters": 6_740_000_000, "batch": 1}
    there, here = (
        first(**run, steps=steps, setup=setup | {"optimizer": name})
        for name in ("DeepSpeedCPUAdam", "AdamW")
    )
    assert (there.cause, there.variant) == (Cause.MEMORY, "offload")
    assert here.cause is not Cause.MEMORY


def test_a_gpu_idles_beside_a_program_that_compiles_each_new_shape() -> None:
    verdict = first(
        gpus=[{"utilisation": {"mean": 0.06}}],
        host={"cores": 24, "main_process_cores": 3.1},
        steps={"steps": 400, "seconds": 1.9, "data_wait": 0.02},
        setup=ONE | {"batch": 2, "compile": True, "dynamic_shapes": True},
        profile={"recompilations": 0.8, "host_top": [{"name": "backend_compile", "share": 0.7}]},
    )
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "compile")


@pytest.mark.parametrize(("longer", "cause"), [(1.2, Cause.PARALLELISM), (3.6, Cause.INPUT)])
def test_what_takes_as_long_for_four_times_the_samples_is_not_made_sample_by_sample(
    longer: float, cause: Cause
) -> None:
    """Words that a model writes one after the other, or pictures that workers decode."""
    verdict = first(
        gpus=[
            {"utilisation": {"mean": 0.4}, "power_w": {"mean": 118}, "power_limit_w": 400},
        ],
        steps={"steps": 100, "seconds": 19.0, "data_wait": 15.0, "compute": 3.4},
        setup=ONE | {"batch": 8},
        trials=[{"changed": "batch", "factor": 4, "step_times": longer}],
    )
    assert verdict.cause is cause


def test_a_pipeline_that_waits_for_its_stages_talks_no_longer_for_it() -> None:
    verdict = first(
        gpus=8 * [{"utilisation": {"mean": 0.97}, "power_w": {"mean": 190}, "power_limit_w": 400}],
        steps={"steps": 100, "seconds": 1.65, "data_wait": 0.0},
        setup={
            **{"device": "cuda", "world_size": 8, "strategy": "pp", "pipeline_stages": 8},
            **{"batch": 1, "accumulation": 4, "link": "nvlink"},
        },
        profile={
            "bubble": 0.62,
            "top": [{"name": "ncclDevKernel_SendRecv", "share": 0.61}, {"name": "g", "share": 0.2}],
        },
        trials=[{"changed": "accumulation", "factor": 4, "step_times": 2.04}],
    )
    assert verdict.cause is Cause.PARALLELISM


def test_batches_that_are_ready_and_copied_slowly_are_the_inputs() -> None:
    verdict = first(
        gpus=[{"utilisation": {"mean": 0.56}}],
        steps={"steps": 150, "seconds": 1.14, "data_wait": 0.03, "transfer": 0.5, "compute": 0.59},
        loading={"queue_empty": 0.03},
        setup=ONE | {"pin_memory": False, "non_blocking": False, "num_workers": 24},
    )
    assert (verdict.cause, verdict.variant) == (Cause.INPUT, "transfer")


def test_a_loader_that_its_quota_stops_wants_cores() -> None:
    verdict = first(
        gpus=[{"utilisation": {"mean": 0.27}}],
        host={"cores": 128, "run_cores": 3.96, "throttled_periods": 0.91, "runnable_threads": 18.9},
        steps={"steps": 300, "seconds": 0.71, "data_wait": 0.46, "compute": 0.23},
        setup=ONE | {"batch": 48, "num_workers": 16},
    )
    assert (verdict.cause, verdict.variant) == (Cause.SCHEDULING, "quota")
    assert verdict.confidence is Confidence.HIGH


def test_a_cause_that_explains_another_is_no_less_sure_for_it() -> None:
    """Workers on 4 of 128 cores: that batches are waited for is the cores' doing."""
    verdict = first(
        gpus=[{"utilisation": {"mean": 0.05}}],
        host={"cores": 128, "threads_per_core": 2, "usable_cores": 4, "run_cores": 3.97},
        steps={"steps": 90, "seconds": 14.2, "data_wait": 12.9, "compute": 1.2},
        setup=ONE | {"batch": 4096, "num_workers": 48},
        trials=[{"changed": "affinity", "factor": 12, "step_times": 0.15}],
    )
    assert (verdict.cause, verdict.variant) == (Cause.SCHEDULING, "affinity")
    assert verdict.confidence is Confidence.HIGH


def test_a_gpu_may_be_busy_and_fast_with_what_only_fills_rows_up() -> None:
    verdict = first(
        gpus=BUSY,
        steps=FULL,
        setup=ONE | {"sequence_padding": 0.8},
        profile={"achieved_of_peak": 0.51},
    )
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "padding")


def test_the_passes_of_a_direct_convolution_are_one() -> None:
    verdict = first(
        gpus=BUSY,
        steps=FULL,
        profile=kernels(
            conv_depthwise2d_forward_kernel=0.22,
            conv_depthwise2d_backward_kernel=0.21,
            conv_depthwise2d_grad_weight_kernel=0.1,
        ),
    )
    assert (verdict.cause, verdict.variant) == (Cause.TUNING, "kernels")


def test_a_pipeline_with_few_parts_is_not_well_however_busy_its_gpus_look() -> None:
    """Four parts of a batch fill eight stages for 4 turns of 11 (GPipe)."""
    verdict = first(
        gpus=8 * BUSY,
        steps={"steps": 30, "seconds": 3.1},
        setup={
            **{"device": "cuda", "world_size": 8, "strategy": "pp", "pipeline_stages": 8},
            **{"batch": 1, "accumulation": 4},
        },
        trials=[
            {"changed": "batch", "factor": 2, "step_times": 1.94},
            {"changed": "accumulation", "factor": 4, "step_times": 2.1},
        ],
    )
    assert verdict.cause is Cause.PARALLELISM


def test_gpus_that_wait_for_a_hot_one_need_no_faster_link() -> None:
    cool = {"sm_clock_mhz": {"mean": 1410}, "sm_clock_max_mhz": 1410, "utilisation": {"mean": 1.0}}
    hot = cool | {"sm_clock_mhz": {"mean": 825}, "throttled": {"thermal": 0.86}}
    parts = {
        "steps": {"steps": 200, "seconds": 0.94, "data_wait": 0.01, "communication": 0.37},
        "setup": {"device": "cuda", "world_size": 8, "strategy": "ddp"},
        "trials": [{"changed": "devices", "factor": 0.875, "rate_times": 1.6}],
    }
    slow, even = first(gpus=[*(7 * [cool]), hot], **parts), first(gpus=8 * [cool], **parts)
    assert (slow.cause, slow.variant) == (Cause.SCHEDULING, "heat")
    assert even.cause is Cause.COMMUNICATION


def test_ranks_that_wait_for_the_batches_of_another_need_a_faster_loader() -> None:
    verdict = first(
        gpus=8 * [{"utilisation": {"mean": 0.97}, "power_w": {"mean": 196}, "power_limit_w": 400}],
        host={"cores": 64, "utilisation": {"mean": 0.94}},
        steps={
            **{"steps": 120, "seconds": 1.31, "data_wait": 0.12, "communication": 0.6},
            **{"compute": 0.58, "slowest_rank": 1.62},
        },
        loading={"cpu_share": 0.95, "workers_cpu": 0.93},
        setup={
            **{"device": "cuda", "world_size": 8, "strategy": "ddp", "num_workers": 6},
            **{"link": "nvlink", "parameters": 87_000_000},  # their gradients take milliseconds
        },
        trials=[{"changed": "synthetic-data", "step_times": 0.46}],
    )
    assert (verdict.cause, verdict.variant) == (Cause.INPUT, "preprocessing")


def test_tokens_on_their_way_to_experts_are_communication() -> None:
    rows = [{"name": "dispatch", "share": 0.23}, {"name": "combine", "share": 0.21}]
    verdict = first(
        gpus=8 * [{"utilisation": {"mean": 0.99}}],
        steps={"steps": 50, "seconds": 6.4},
        setup={"device": "cuda", "world_size": 64, "nodes": 8, "link": "network"},
        profile={"host_top": [*rows, {"name": "grouped_mlp", "share": 0.22}]},
    )
    assert verdict.cause is Cause.COMMUNICATION


def test_a_mean_above_almost_all_steps_is_what_few_of_them_do_besides() -> None:
    verdict = first(
        gpus=[{"utilisation": {"mean": 0.82}}],
        steps={"steps": 2000, "seconds": 0.0213, "p95_seconds": 0.0089, "data_wait": 0.0002},
        setup=ONE | {"evaluate_every": 100},
        profile={"host_top": [{"name": "Figure.savefig", "share": 0.14}]},
    )
    assert verdict.cause is Cause.MONITORING


def test_a_cache_that_was_emptied_twice_in_hundreds_of_steps_is_not_what_slows_them() -> None:
    saves = {"steps": 200, "checkpoints": 4, "checkpoint_seconds": 384.0, "alloc_retries": 2}
    seldom, often = (
        first(
            gpus=[{"memory_used_bytes": 73e9, "memory_total_bytes": 80e9}],
            steps={"steps": 200, "seconds": 4.0, "data_wait": 0.0},
            counters=counters,
        )
        for counters in (saves, {"steps": 200, "alloc_retries": 200})
    )
    assert seldom.cause is Cause.MONITORING
    assert (often.cause, often.variant) == (Cause.MEMORY, "fragmentation")


def test_a_system_that_reads_pages_back_is_short_of_memory() -> None:
    """An M2 whose process has 0.94 of its time in the system, and pages read back each second."""
    mac = {"main_process_cores": 0.28, "major_faults_s": 3.3, "memory_total_bytes": 24e9}
    parts = {
        "steps": {"steps": 5000, "seconds": 13.1},
        "throughput": {"tokens_s": 1250, "expected_times": 2.2},
        "setup": {"device": "mps", "batch": 8},
    }
    pages, computes = (
        first(host=mac | {"main_system_share": share}, **parts) for share in (0.94, 0.05)
    )
    assert (pages.cause, pages.variant) == (Cause.MEMORY, "swapping")
    assert computes.cause is not Cause.MEMORY


STEP = {"steps": 260, "seconds": 0.0077, "data_wait": 0.0002, "optimizer": 0.0005}
ON_CPU = {"device": "cpu", "torch_threads": 2, "batch": 10}
TWO_CORES = {"cores": 2, "usable_cores": 2.0, "run_cores": 1.98, "starved_share": 0.01}


def on_a_processor(**parts: Any) -> Verdict:
    top = [{"name": f"aten::{name}", "share": share, "calls": 1.0} for name, share in TOP]
    profile = {"kernels_a_step": 182.0, "top": top, "matrix_flops_s": 2e11, "flops_a_step": 7e6}
    return first(
        setup=ON_CPU, gpus=[], **{"profile": profile, "host": TWO_CORES, "steps": STEP, **parts}
    )


TOP = (("_index_put_impl_", 0.41), ("index", 0.06), ("mm", 0.03), ("addmm", 0.02))


def test_pages_that_the_system_gives_slowly_cost_what_the_system_takes() -> None:
    """43 % of the time: 9 us each on a virtual computer, or fewer that are large."""
    steps = STEP | {"compute": 0.0073, "forward": 0.0058, "backward": 0.0011}
    quiet = {"main_read_bytes_s": 49_000.0, "main_written_bytes_s": 27_000.0}
    for pages in (49_500.0, 9_600.0):
        taken = TWO_CORES | {"main_minor_faults_s": pages, "main_system_share": 0.43}
        verdict = on_a_processor(host=taken | quiet, steps=steps)
        assert (verdict.cause, verdict.variant) == (Cause.MEMORY, "heap")


def test_a_way_back_of_ones_own_that_takes_most_of_a_step_computes_the_way_there_again() -> None:
    steps = STEP | {"compute": 0.0074, "forward": 0.0011, "backward": 0.0060}
    parts = {"kernels_a_step": 1200.0, "matrix_flops_s": 2e11, "flops_a_step": 7e6}
    names = ("model.py:FromTheGround.backward", "run_backward()")
    again, plain = (
        on_a_processor(
            steps=steps,
            profile=parts | {"host_top": [{"name": name, "share": 0.77}]},
        )
        for name in names
    )
    assert (again.cause, again.variant) == (Cause.MEMORY, "recomputation")
    assert plain.cause is not Cause.MEMORY


def test_a_run_that_waits_for_cores_which_nobody_else_uses_waits_for_its_own_threads() -> None:
    steps = STEP | {"compute": 0.0074, "forward": 0.0011, "backward": 0.0060}
    waiting = TWO_CORES | {"run_cores": 1.56, "starved_share": 0.29, "runnable_threads": 2.2}

    def beside(foreign_cores: float, threads: int) -> Verdict:
        host = waiting | {"foreign_cores": foreign_cores}
        return first(setup=ON_CPU | {"torch_threads": threads}, gpus=[], host=host, steps=steps)

    alone = beside(0.18, 3)
    assert (alone.cause, alone.variant) == (Cause.SCHEDULING, "threads")
    assert beside(1.2, 2).variant != "threads"


def test_a_short_step_of_a_few_long_operators_has_no_small_batch() -> None:
    """A sum of comparisons with every edge: 5.4 ms, a half of them in three operators."""
    steps = {"steps": 290, "seconds": 0.0054, "data_wait": 0.0002, "compute": 0.0051}

    def with_top(operators: float, **calls: float) -> Verdict:
        shares = {"gt": 0.25, "copy_": 0.25, "sum": 0.17, "sort": 0.05}
        top = [
            {"name": f"aten::{name}", "share": share, "calls": calls.get(name, 1.0)}
            for name, share in shares.items()
        ]
        profile = {"kernels_a_step": operators, "top": top, "flops_a_step": 7e4}
        rate = {"matrix_flops_s": 2e11}
        return first(setup=ON_CPU, gpus=[], host=TWO_CORES, steps=steps, profile=profile | rate)

    assert with_top(57).cause is Cause.TUNING
    assert with_top(400, gt=100, copy_=100, sum=100).cause is Cause.PARALLELISM


def test_garbage_that_takes_half_of_the_time_in_few_long_steps_is_what_slows_them() -> None:
    """17 collections in 236 steps, 1.09 s of 2.16: a mean of 9 ms, and 65 ms at times."""

    def collecting(seconds: float) -> Cause:
        return first(
            setup=ON_CPU,
            gpus=[],
            host=TWO_CORES | {"run_cores": 1.54},
            steps={"steps": 236, "seconds": 0.00916, "p95_seconds": 0.065}
            | {"data_wait": 0.0017, "compute": 0.0068, "optimizer": 0.0021, "blocked": 0.0031},
            counters={"steps": 236, "garbage_collections": 17, "garbage_seconds": seconds},
            profile={"kernels_a_step": 400.0, "flops_a_step": 7e6, "matrix_flops_s": 2e11},
        ).cause

    assert collecting(1.09) is Cause.MEMORY
    assert collecting(0.02) is not Cause.MEMORY


def test_a_short_step_tells_of_a_small_batch_only_where_calls_take_it() -> None:
    """8 ms: 100 operators that work for 80 µs each, or 800 that are called in 10."""

    def says(operators: float, call: float = 2e-6) -> bool:
        profile = {"kernels_a_step": operators, "empty_call_seconds": call}
        steps = {"steps": 250, "seconds": 0.0082, "data_wait": 0.0002, "compute": 0.008}
        run = evidence(setup=ON_CPU, gpus=[], host=TWO_CORES, steps=steps, profile=profile)
        found = judge(run)
        signals = (one for each in (*found.verdicts, *found.ruled_out) for one in each.signals)
        return any(one.reading == "steps.seconds" and one.weight > 0 for one in signals)

    assert says(800)
    assert not says(100)
    assert not says(800, call=1e-6)  # twice as fast a computer calls 8,000 of them meanwhile


def test_ranks_that_sleep_in_all_steps_wait_for_each_other_though_one_step_looks_quick() -> None:
    """Two ranks, one of which has more to compute: its exchange was ready in the step looked at."""
    slept = first(
        steps={
            **{"steps": 137, "seconds": 0.0155, "data_wait": 0.0005, "compute": 0.0142},
            **{"blocked": 0.0057, "forward": 0.0037, "backward": 0.0097, "optimizer": 0.0008},
        },
        setup={
            "device": "cpu",
            "strategy": "ddp",
            "world_size": 2,
            "torch_threads": 1,
            "batch": 32,
        },
        host={"cores": 2, "usable_cores": 2.0, "run_cores": 0.65, "starved_share": 0.17},
        profile={
            **{"kernels_a_step": 661, "kernel_median_seconds": 2.8e-6, "flops_a_step": 9.6e7},
            **{"matrix_flops_s": 9.5e10, "communication": 0.05, "communication_hidden": 0.0},
            "top": [{"name": "aten::mm", "share": 0.12}, {"name": "aten::addmm", "share": 0.07}],
        },
    )
    assert slept.cause is Cause.COMMUNICATION
