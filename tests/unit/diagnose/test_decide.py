"""Verdicts from evidence. The limits are others': torch-tb-profiler's 5, 10 and 90 %, HTA's and
KempnerPulse's cut-offs, NVIDIA's guides; what a run with known figures should be called is theirs.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwright.data import resources
from trainwright.diagnose import fixes as fixing
from trainwright.diagnose.causes import nothing_wrong
from trainwright.diagnose.decide import RULES, by_rules, judge
from trainwright.diagnose.evidence import Evidence, Setup
from trainwright.diagnose.verdict import Cause, Confidence, Diagnosis
from trainwright.diagnose.wording import WORDINGS
from trainwright.messages import LANGUAGES, Message, render
from trainwright.plan import file
from trainwright.plan.edit import with_keys

ALL_RULES = [rule for rules in (*RULES.values(), nothing_wrong.RULES) for rule in rules]


def diagnosed(**parts: Any) -> Diagnosis:
    return judge(Evidence.model_validate({"trainwright_record": 1, "made_by": "callback", **parts}))


def steps(**parts: float) -> dict[str, Any]:
    return {"steps": 50, "seconds": 1.0, **parts}


def messages_of(diagnosis: Diagnosis) -> list[Message]:
    found = []
    for verdict in diagnosis.verdicts:
        found += [verdict.title, verdict.says, verdict.sure]
        found += [fix.says for fix in verdict.fixes]
        for signal in (*verdict.signals, *verdict.against):
            found += [signal.name, signal.shown, signal.origin]
            found += [signal.held_against] if signal.held_against is not None else []
    found += [Message.of(f"diagnose.confidence.{each}") for each in Confidence]
    found += [message for ruled in diagnosis.ruled_out for message in (ruled.because,)]
    for each in diagnosis.unseen:
        found += [each.what, each.because] + ([each.remedy] if each.remedy is not None else [])
    return found


def said(message: Message) -> set[str]:
    """Return the sentence in both languages; a missing one renders as its id."""
    texts = {render(message, language) for language in LANGUAGES}
    assert not any(message.id in text for text in texts), texts
    return texts


def test_every_limit_says_where_it_comes_from() -> None:
    for rule in ALL_RULES:  # in one test: hundreds of their own take longer than what they check
        assert all(level.source for level in rule.levels), rule
        said(Message.of(f"diagnose.reading.{rule.reading.replace('_', '-')}"))
        said(Message.of(f"diagnose.origin.{rule.reading.split('.')[0]}"))
        said(
            Message.of(f"diagnose.verdict.{rule.cause}{'.' if rule.variant else ''}{rule.variant}")
        )


def test_nothing_seen_is_unknown_and_says_what_to_measure() -> None:
    diagnosis = diagnosed()
    assert diagnosis.first.cause is Cause.UNKNOWN
    assert {render(each.what, "en") for each in diagnosis.unseen} >= {"step timer", "GPU driver"}
    assert all(each.remedy is not None for each in diagnosis.unseen)


def test_one_measured_cost_alone_is_a_suspicion_and_says_so() -> None:
    first = diagnosed(steps=steps(data_wait=0.7)).first
    assert (first.cause, first.confidence) == (Cause.INPUT, Confidence.LOW)
    assert first.suspected
    assert "one signal alone" in render(first.sure, "en")
    said(first.sure)


def test_a_second_signal_makes_a_verdict_of_a_suspicion() -> None:
    first = diagnosed(steps=steps(data_wait=0.7), loading={"queue_empty": 0.9}).first
    assert (first.cause, first.suspected) == (Cause.INPUT, False)


def test_a_suspicion_that_a_reading_denies_is_none() -> None:
    flushed = {"steps": 100, "empty_cache": 100}
    assert diagnosed(counters=flushed, setup={"device": "cpu"}).first.cause is Cause.UNKNOWN


@pytest.mark.parametrize(
    "symptom",
    [
        {"gpus": [{"power_w": {"mean": 90}, "power_limit_w": 400}]},
        {"profile": {"idle": 0.6}},
        {"throughput": {"samples_s": 40, "expected_times": 3}},
        {"host": {"io_wait": 0.3}},
        {"setup": {"device": "cuda", "num_workers": 0}},
        {"gpus": [{"utilisation": {"mean": 0.2}, "idle_share": 0.6}], "steps": steps()},
    ],
    ids=["power", "idle", "expected", "drives", "workers", "utilisation"],
)
def test_a_symptom_alone_stays_unknown(symptom: dict[str, Any]) -> None:
    assert diagnosed(**symptom).first.cause is Cause.UNKNOWN


@pytest.mark.parametrize(
    "setting",
    [{"strategy": "dp", "world_size": 1}, {"precision": "fp32"}, {"backend": "gloo"}],
    ids=["dp", "fp32", "gloo"],
)
def test_a_setting_alone_is_no_suspicion(setting: dict[str, Any]) -> None:
    assert diagnosed(setup={"device": "cuda", **setting}).first.cause is Cause.UNKNOWN


def test_a_rate_near_the_peak_of_the_gpu_is_nothing_wrong() -> None:
    """A model of 7 billion weights at 3700 tokens/s does 155 of an A100's 312 TFLOP/s: 6 N each."""
    first = diagnosed(
        gpus=[{"name": "NVIDIA A100 80GB", "utilisation": {"mean": 0.99}}],
        throughput={"tokens_s": 3700},
        setup={
            "device": "cuda",
            "precision": "bf16",
            "model_kind": "transformer",
            "parameters": 7_000_000_000,
        },
    ).first
    assert first.cause is Cause.NONE
    assert next(
        each.value for each in first.signals if each.reading == "profile.achieved_by_rate"
    ) == pytest.approx(0.498, abs=0.01)


def test_fewer_workers_that_are_faster_are_too_many() -> None:
    first = diagnosed(
        setup={"device": "cuda", "num_workers": 32},
        trials=[{"changed": "workers", "factor": 0.25, "step_times": 0.6}],
    ).first
    assert (first.cause, first.variant) == (Cause.SCHEDULING, "workers")


def test_gpus_that_look_busy_and_draw_little_wait_for_each_other() -> None:
    spinning = {"utilisation": {"mean": 1.0}, "power_w": {"mean": 120}, "power_limit_w": 400}
    first = diagnosed(
        gpus=[spinning] * 8, setup={"device": "cuda", "world_size": 8, "strategy": "ddp"}
    ).first
    assert first.cause is Cause.COMMUNICATION


def test_an_update_of_many_small_kernels_is_too_little_parallel_work() -> None:
    parts = {"steps": steps(optimizer=0.4, compute=0.95)}
    alone = diagnosed(**parts, setup={"device": "cuda", "optimizer_foreach": False}).first
    assert alone.cause is Cause.PARALLELISM
    shards = {"device": "cuda", "strategy": "zero", "world_size": 32}
    assert diagnosed(**parts, setup=shards).first.cause is not Cause.PARALLELISM


def test_a_slow_link_is_nearer_to_the_root_than_the_copies_over_it() -> None:
    first = diagnosed(
        gpus=[{"utilisation": {"mean": 0.6}, "link_width": 1, "link_width_max": 16}],
        profile={"copies": 0.3},
        setup={"device": "cuda"},
    ).first
    assert (first.cause, first.variant) == (Cause.SCHEDULING, "link")


def test_waiting_beside_an_idle_gpu_is_the_input_pipeline() -> None:
    diagnosis = diagnosed(
        steps=steps(data_wait=0.6, compute=0.4),
        gpus=[{"utilisation": {"mean": 0.38, "low": 0, "high": 1}, "idle_share": 0.5}],
        setup={"device": "cuda", "num_workers": 0},
    )
    first = diagnosis.first
    assert (first.cause, first.confidence) == (Cause.INPUT, Confidence.HIGH)
    assert first.gain == pytest.approx(0.6)
    assert first.faster == pytest.approx(2.5)  # Amdahl: 1 / (1 - 0.6)


def test_a_wait_below_five_percent_rules_the_loader_out() -> None:
    diagnosis = diagnosed(steps=steps(data_wait=0.04, compute=0.9), setup={"num_workers": 0})
    ruled = next(each for each in diagnosis.ruled_out if each.cause is Cause.INPUT)
    assert ruled.signals[0].source == "torch-tb-profiler: DataLoader above 5 % of the step"


@pytest.mark.parametrize(("cpu", "variant"), [(0.95, "preprocessing"), (0.05, "fetch")])
def test_fetching_and_preprocessing_are_told_apart(cpu: float, variant: str) -> None:
    diagnosis = diagnosed(
        steps=steps(data_wait=0.6), loading={"cpu_share": cpu}, setup={"num_workers": 4}
    )
    assert (diagnosis.first.cause, diagnosis.first.variant) == (Cause.INPUT, variant)


def test_loading_that_would_keep_up_without_the_others_is_scheduling() -> None:
    diagnosis = diagnosed(
        steps=steps(data_wait=0.5, compute=0.45),
        loading={"cpu_share": 1.0, "batch_seconds": 1.6},
        host={
            "cores": 4,
            "usable_cores": 4,
            "run_cores": 1.5,
            "foreign_cores": 2.4,
            "starved_share": 0.6,
            "pressure_cpu": 0.9,
        },
        setup={"device": "cpu", "num_workers": 2, "torch_threads": 4},
    )
    first = diagnosis.first
    assert (first.cause, first.variant) == (Cause.SCHEDULING, "other-programs-cpu")


def test_a_used_up_quota_is_scheduling() -> None:
    diagnosis = diagnosed(
        steps=steps(data_wait=0.1, compute=0.8),
        host={
            "cores": 16,
            "usable_cores": 2,
            "quota_cores": 2,
            "run_cores": 1.9,
            "throttled_periods": 0.8,
            "starved_share": 0.7,
        },
        setup={"device": "cpu", "torch_threads": 16, "num_workers": 0},
    )
    first = diagnosis.first
    assert (first.cause, first.variant) == (Cause.SCHEDULING, "quota")
    assert first.confidence is Confidence.HIGH


def test_unused_tensor_cores_are_the_precision() -> None:
    diagnosis = diagnosed(
        gpus=[{"utilisation": {"mean": 0.97}, "compute_capability": "8.0"}],
        profile={"tensor_core": 0.0, "tensor_core_eligible": 0.7, "idle": 0.02},
        setup={"device": "cuda", "precision": "fp32", "tf32_allowed": False},
    )
    first = diagnosis.first
    assert (first.cause, first.variant) == (Cause.TUNING, "precision")
    assert first.fixes[0].patch == {"settings.precision": "bf16-mixed"}


def test_a_card_without_tensor_cores_is_not_blamed_for_its_precision() -> None:
    diagnosis = diagnosed(
        gpus=[{"utilisation": {"mean": 0.97}, "compute_capability": "6.1"}],
        profile={"tensor_core": 0.0, "tensor_core_eligible": 0.7, "idle": 0.02},
        setup={"device": "cuda", "precision": "fp32"},
    )
    assert diagnosis.first.variant != "precision"


def test_volta_gets_fp16() -> None:
    diagnosis = diagnosed(
        gpus=[{"utilisation": {"mean": 0.97}, "compute_capability": "7.0"}],
        profile={"tensor_core": 0.0, "tensor_core_eligible": 0.7},
        setup={"device": "cuda", "precision": "fp32"},
    )
    assert diagnosis.first.fixes[0].patch == {"settings.precision": "fp16-mixed"}


def test_collectives_above_ten_percent_are_communication() -> None:
    diagnosis = diagnosed(
        steps=steps(communication=0.35, data_wait=0.01, compute=0.6),
        setup={"device": "cuda", "world_size": 4, "strategy": "ddp", "link": "pcie"},
    )
    assert diagnosis.first.cause is Cause.COMMUNICATION


def test_one_device_never_communicates() -> None:
    diagnosis = diagnosed(
        steps=steps(communication=0.35),
        setup={"device": "cuda", "world_size": 1, "find_unused_parameters": True},
    )
    assert Cause.COMMUNICATION not in {verdict.cause for verdict in diagnosis.verdicts}


def test_a_hot_gpu_is_scheduling() -> None:
    diagnosis = diagnosed(
        gpus=[
            {
                "utilisation": {"mean": 0.98},
                "throttled": {"thermal": 0.6},
                "temperature_c": {"mean": 87},
                "sm_clock_mhz": {"mean": 1200},
                "sm_clock_max_mhz": 2000,
            }
        ]
    )
    first = diagnosis.first
    assert (first.cause, first.variant) == (Cause.SCHEDULING, "heat")
    assert first.gain == pytest.approx(0.4)


def test_a_full_device_that_is_fed_is_left_alone() -> None:
    diagnosis = diagnosed(
        gpus=[
            {
                "utilisation": {"mean": 0.99},
                "sm_active": {"mean": 0.92},
                "power_w": {"mean": 640},
                "power_limit_w": 700,
                "throttled": {},
            }
        ],
        steps=steps(data_wait=0.004, compute=0.99),
        setup={"device": "cuda", "precision": "bf16-mixed", "batch": 2, "world_size": 1},
    )
    assert diagnosis.first.cause is Cause.NONE
    assert len(diagnosis.verdicts) == 1


def test_utilisation_alone_asks_for_measuring() -> None:
    diagnosis = diagnosed(gpus=[{"utilisation": {"mean": 0.3}}])
    assert diagnosis.first.cause is Cause.MONITORING
    assert diagnosis.first.confidence is Confidence.LOW


def test_signs_that_contradict_each_other_are_never_sure() -> None:
    diagnosis = diagnosed(
        steps=steps(data_wait=0.6, compute=0.4),
        experiments={"synthetic_batch": 1.0},
        gpus=[{"utilisation": {"mean": 0.97}}],
        setup={"device": "cuda", "num_workers": 0},
    )
    assert diagnosis.first.confidence is not Confidence.HIGH or (
        diagnosis.first.cause is not Cause.INPUT
    )


EVERY_FIX = [
    pytest.param(cause, variant, id=f"{cause}:{variant}") for cause, variant in fixing._FIXES
]


@pytest.mark.parametrize(("cause", "variant"), EVERY_FIX)
def test_every_fix_is_a_change_that_a_plan_takes(cause: Cause, variant: str) -> None:
    plan = file.read(resources("examples", "gpt2-rtx4070.plan.yaml"))
    evidence = Evidence.model_validate(
        {
            "trainwright_record": 1,
            "host": {"cores": 8, "usable_cores": 4},
            "setup": {"batch": 8, "accumulation": 2, "num_workers": 6},
        }
    )
    found = fixing.fixes(cause, variant, evidence)
    assert found
    for fix in found:
        said(fix.says)
        if fix.patch:
            with_keys(plan, dict(fix.patch))  # refuses keys and values that the schema lacks


@pytest.mark.parametrize(("cause", "variant"), WORDINGS)
def test_other_wordings_are_there_in_both_languages(cause: Cause, variant: str) -> None:
    for name, _ in WORDINGS[cause, variant]:
        parts = ("diagnose.verdict", cause, variant, name)
        said(Message.of(".".join(part for part in parts if part)))


def test_a_run_on_the_processor_is_told_nothing_of_launches() -> None:
    profile = {"kernels_a_step": 4000, "flops_a_step": 1e6, "matrix_flops_s": 1e11}
    diagnosis = diagnosed(
        steps=steps(seconds=0.1, compute=0.099, data_wait=0.0001),
        setup={"device": "cpu"},
        profile=profile,
    )
    assert (diagnosis.first.cause, diagnosis.first.variant) == (Cause.PARALLELISM, "host-bound")
    says = said(diagnosis.first.says)
    assert not any("launch" in text or "device" in text for text in says)


def test_one_profile_of_a_step_is_no_reason_to_be_sure() -> None:
    # 5,000 operators in 80 ms are short ones, and do little beside a plain product, say both.
    whole: dict[str, Any] = {
        "steps": steps(seconds=0.08, compute=0.0795, data_wait=0.0002),
        "setup": {"device": "cpu", "batch": 2},
    }
    profile = {"kernels_a_step": 5000, "flops_a_step": 1e8, "matrix_flops_s": 1e11}
    first = diagnosed(profile=profile, **whole).first
    assert (first.cause, first.confidence) == (Cause.PARALLELISM, Confidence.MEDIUM)


def signs_of_short_operators(**profile: float) -> list[int]:
    """Return the weights of what 5,000 operators in 79.5 ms say, 16 µs each."""
    parts = {"setup": {"device": "cpu"}, "steps": steps(seconds=0.08, compute=0.0795)}
    found = diagnosed(profile={"kernels_a_step": 5000, **profile}, **parts)
    readings = [*found.verdicts, *found.ruled_out]
    signals = (signal for each in readings for signal in each.signals)
    return [one.weight for one in signals if one.reading == "profile.operator_calls"]


def test_few_long_operators_among_many_short_ones_are_no_sign_of_short_ones() -> None:
    middle = "kernel_median_seconds"
    least, most = (signs_of_short_operators(**{middle: each}) for each in (1.5e-6, 8e-6))
    assert max(most) > max(least)


def test_an_operator_is_short_by_what_a_call_takes_on_that_computer() -> None:
    slow, fast = (signs_of_short_operators(empty_call_seconds=each) for each in (2e-6, 0.8e-6))
    assert max(slow) > max(fast)


def test_what_is_kept_in_files_is_not_called_memory() -> None:
    diagnosis = diagnosed(
        steps=steps(compute=0.9, data_wait=0.001),
        counters={"steps": 50, "mid_step_seconds": 20, "loads": 100, "load_seconds": 10},
        setup={"device": "cpu"},
    )
    assert (diagnosis.first.cause, diagnosis.first.variant) == (Cause.MEMORY, "offload")
    assert "files on a drive" in render(diagnosis.first.says, "en")
    assert not diagnosis.first.fixes[0].patch


def test_state_that_each_step_saves_and_loads_is_no_checkpoint_however_long_saving_takes() -> None:
    """Weights that lie in a file between steps: 3.0 s saving, 1.8 s loading of 10 s."""
    saved = {"checkpoints": 100, "checkpoint_seconds": 15, "loads": 100, "load_seconds": 9}
    diagnosis = diagnosed(
        steps=steps(data_wait=0.04, compute=0.8, other=0.16),
        counters={"steps": 50, "mid_step_seconds": 4.4, **saved},
        host={"main_read_bytes_s": 2.9e8, "main_written_bytes_s": 2.9e8},
        profile={"host_top": [{"name": "torch/serialization.py:save", "share": 0.3}]},
        setup={"device": "cpu"},
    )
    assert (diagnosis.first.cause, diagnosis.first.variant) == (Cause.MEMORY, "offload")
    assert diagnosis.first.gain == pytest.approx(0.48)


def test_double_precision_is_fixed_by_single_precision() -> None:
    fix = fixing.fixes(
        Cause.TUNING, "precision", Evidence(trainwright_record=1, setup=Setup(precision="fp64"))
    )[0]
    assert fix.patch == {"settings.precision": "fp32"}


def convolutions(**parts: Any) -> dict[str, Any]:
    """Return a run of convolutions on two cores, computing all the time."""
    setup = {
        "device": "cpu",
        "model_kind": "convolution",
        "channels_last": False,
        "precision": "fp32",
        "torch_threads": 2,
    }
    profile = {
        "kernels_a_step": 100,
        "flops_a_step": 8e9,
        "matrix_flops_s": 1.8e11,
        "top": [
            {"name": "aten::convolution_backward", "share": 0.5},
            {"name": "aten::mkldnn_convolution", "share": 0.3},
        ],
    }
    whole = {
        "steps": steps(seconds=0.1, compute=0.0995, data_wait=0.0004),
        "host": {"cores": 2, "usable_cores": 2, "run_cores": 1.9, "starved_share": 0.04},
        "setup": setup,
        "profile": profile,
    }
    return {key: {**whole.get(key, {}), **parts.get(key, {})} for key in whole | parts}


def test_convolutions_that_compute_fast_are_not_blamed_for_their_layout() -> None:
    assert diagnosed(**convolutions()).first.cause is Cause.NONE


def test_slow_convolutions_are_the_layout_only_where_they_are_measured_to_be_slow() -> None:
    slow = diagnosed(**convolutions(profile={"flops_a_step": 1e9}))
    assert (slow.first.cause, slow.first.variant) == (Cause.TUNING, "layout")
    crowded = convolutions(profile={"flops_a_step": 1e9}, host={"starved_share": 0.4})
    assert diagnosed(**crowded).first.variant != "layout"


def test_half_the_threads_are_named_before_a_layout() -> None:
    first = diagnosed(**convolutions(setup={"torch_threads": 1}, host={"run_cores": 1})).first
    assert (first.cause, first.variant) == (Cause.SCHEDULING, "threads")


def test_a_thread_on_each_core_is_enough_where_a_core_has_two() -> None:
    host = {"cores": 16, "usable_cores": 16, "run_cores": 7.8}
    single = convolutions(host=host, setup={"torch_threads": 8})
    assert diagnosed(**single).first.variant == "threads"
    paired = convolutions(host={**host, "threads_per_core": 2}, setup={"torch_threads": 8})
    assert diagnosed(**paired).first.cause is Cause.NONE


@pytest.mark.parametrize(("precision", "wording"), [("bf16-mixed", "few-bits"), ("fp64", "double")])
def test_a_processor_that_is_slow_in_a_precision_is_told_to_take_fp32(
    precision: str, wording: str
) -> None:
    slow = {"flops_a_step": 1e9, "top": [{"name": "aten::mm", "share": 0.8}]}
    parts = convolutions(setup={"precision": precision, "model_kind": "mlp"}, profile=slow)
    first = diagnosed(**parts).first
    assert (first.cause, first.variant, first.wording) == (Cause.TUNING, "precision", wording)
    assert first.fixes[0].patch == {"settings.precision": "fp32"}


def test_a_processor_with_units_for_bf16_may_use_them() -> None:
    fast = {"flops_a_step": 16e9, "top": [{"name": "aten::mm", "share": 0.8}]}
    parts = convolutions(setup={"precision": "bf16-mixed", "model_kind": "mlp"}, profile=fast)
    assert diagnosed(**parts).first.cause is Cause.NONE


def test_a_precision_that_was_tried_and_is_much_faster_is_the_fix() -> None:
    first = diagnosed(
        gpus=[{"utilisation": {"mean": 0.01}, "compute_capability": "7.0"}],
        setup={"device": "cuda", "precision": "fp16-mixed"},
        trials=[{"changed": "precision", "to": "fp32", "step_times": 0.03}],
    ).first
    assert (first.cause, first.variant, first.wording) == (Cause.TUNING, "precision", "tried")
    assert first.fixes[0].patch == {"settings.precision": "fp32"}


@pytest.mark.parametrize("cores", [2, 4])
def test_nothing_is_wrong_is_not_said_of_a_run_that_may_not_use_its_cores(cores: int) -> None:
    first = diagnosed(**convolutions(host={"cores": cores})).first
    assert (first.cause is Cause.NONE) is (cores == 2)


def test_passes_without_gradients_beside_the_steps_are_seen() -> None:
    rows = [
        {"name": "aten::mkldnn_convolution", "share": 0.5},
        {"name": "aten::convolution_backward", "share": 0.1},
    ]
    sampled = steps(seconds=0.1, compute=0.03, other=0.07, data_wait=0.0004)
    first = diagnosed(**convolutions(steps=sampled, profile={"top": rows})).first
    assert (first.cause, first.variant) == (Cause.MONITORING, "logging")


def test_workers_that_take_the_cores_of_computing_are_the_input() -> None:
    first = diagnosed(
        **convolutions(
            steps={"data_wait": 0.007, "compute": 0.09},
            loading={"cpu_share": 1.0, "batch_seconds": 0.07, "workers_cpu": 0.5},
            host={"starved_share": 0.35, "run_cores": 1.8, "foreign_cores": 0.1},
            setup={"num_workers": 1},
        )
    ).first
    assert (first.cause, first.variant, first.wording) == (
        Cause.INPUT,
        "preprocessing",
        "on-cores",
    )
    assert not any("settings.loader.num_workers" in fix.patch for fix in first.fixes)


def test_saw_teeth_alone_do_not_blame_the_network_that_the_data_lie_on() -> None:
    first = diagnosed(
        gpus=[{"utilisation": {"mean": 0.24, "low": 0.0, "high": 0.95}, "idle_share": 0.6}],
        loading={"data_on": "network"},
    ).first
    assert first.cause is not Cause.INPUT


def on_processor(*, counters: dict[str, float], **parts: float) -> dict[str, Any]:
    """Return a run whose operators are small, of 50 steps of a second, on a roomy computer."""
    return {
        "made_by": "callback",
        "watched_seconds": 50.0,
        "setup": {"device": "cpu", "strategy": "single", "num_workers": 0, "batch": 8},
        "steps": steps(**({"data_wait": 0.01, "other": 0.0, "compute": 0.99} | parts)),
        "counters": {"steps": 50, **counters},
        "host": {"memory_total_bytes": 64e9, "memory_available_bytes": 60e9},
        "loading": {"cpu_share": 1.0},
        "profile": {"kernels_a_step": 90_000, "flops_a_step": 1e9, "matrix_flops_s": 1e11},
    }


def test_what_a_cause_takes_goes_before_how_a_run_computes() -> None:
    small = diagnosed(**on_processor(counters={}))
    assert small.first.cause is Cause.PARALLELISM
    again = diagnosed(**on_processor(counters={"recomputation_seconds": 12.0}))
    assert (again.first.cause, again.first.variant) == (Cause.MEMORY, "recomputation")
    seldom = diagnosed(**on_processor(counters={"recomputation_seconds": 5.0}))
    assert seldom.first.cause is Cause.PARALLELISM


@pytest.mark.parametrize(
    ("wait", "after", "cause"),
    [(0.25, 0.4, Cause.MONITORING), (0.4, 0.25, Cause.INPUT), (0.3, 0.31, Cause.INPUT)],
)
def test_of_two_parts_of_a_step_the_larger_one_is_named(
    wait: float, after: float, cause: Cause
) -> None:
    parts = {"data_wait": wait, "other": after, "compute": 1 - wait - after}
    first = diagnosed(**on_processor(counters={"item_reads": 500}, **parts)).first
    assert first.cause is cause


def test_a_wait_within_steps_that_are_few_of_the_time_is_a_small_one() -> None:
    waits = {"data_wait": 0.2, "compute": 0.8}
    assert diagnosed(**on_processor(counters={}, **waits)).first.cause is Cause.INPUT
    seldom = on_processor(counters={}, **waits) | {"watched_seconds": 250.0}
    first = diagnosed(**seldom).first
    assert first.cause is Cause.MONITORING
    assert first.gain == pytest.approx(0.8)


def test_a_thread_that_rests_while_its_own_program_works_is_kept_by_other_threads() -> None:
    parts = on_processor(counters={}, compute=0.99, blocked=0.35)
    parts["setup"] |= {"torch_threads": 2}
    parts["host"] |= {"cores": 2, "usable_cores": 2, "run_cores": 1.7}
    first = diagnosed(**parts).first
    assert (first.cause, first.variant, first.wording) == (Cause.SCHEDULING, "threads", "own")
    assert all("num_threads" not in render(fix.says, "en") for fix in first.fixes)
    drive = parts | {"host": parts["host"] | {"main_read_bytes_s": 5e7}}
    assert diagnosed(**drive).first.cause is not Cause.SCHEDULING
    idle = parts | {"host": parts["host"] | {"run_cores": 0.7}}
    assert diagnosed(**idle).first.cause is not Cause.SCHEDULING


def test_workers_that_start_anew_for_every_epoch_are_the_input() -> None:
    rows = [{"name": "data/dataloader.py:_MultiProcessingDataLoaderIter.__init__", "share": 0.12}]
    first = diagnosed(
        made_by="callback",
        watched_seconds=60.0,
        setup={"device": "cpu", "strategy": "single", "num_workers": 2},
        steps=steps(data_wait=0.08, compute=0.9, other=0.0),
        profile={"host_top": rows},
    ).first
    assert first.cause is Cause.INPUT


def test_large_tensors_that_are_written_and_not_multiplied_are_slow_kernels() -> None:
    taken = {"main_minor_faults_s": 300_000, "main_system_share": 0.4}
    quiet = {"main_read_bytes_s": 0.0, "main_written_bytes_s": 0.0}
    host = taken | quiet | {"cores": 2, "usable_cores": 2, "run_cores": 1.9, "starved_share": 0.03}
    written = {
        "setup": {"device": "cpu", "strategy": "single", "precision": "fp32", "torch_threads": 2},
        "steps": steps(seconds=0.03, data_wait=0.0002, compute=0.0297, other=0.0001, blocked=0.0),
        "host": host,
        "profile": {
            "kernels_a_step": 50,
            "flops_a_step": 1.7e7,
            "matrix_flops_s": 1.8e11,
            "top": [{"name": "aten::mul", "share": 0.6}, {"name": "aten::sum", "share": 0.2}],
        },
    }
    assert diagnosed(**written).first.cause is Cause.TUNING
    products = {"flops_a_step": 1e9, "top": [{"name": "aten::mm", "share": 0.7}]}
    fresh = written | {"profile": written["profile"] | products}
    assert (diagnosed(**fresh).first.cause, diagnosed(**fresh).first.variant) == (
        Cause.MEMORY,
        "heap",
    )


SHARES = st.floats(0, 1)
ANY = st.fixed_dictionaries(
    {},
    optional={
        "steps": st.builds(
            lambda count, seconds, parts: {
                "steps": count,
                "seconds": seconds,
                **{part: share * seconds for part, share in parts.items()},
            },
            st.integers(1, 99),
            st.floats(1e-6, 100),
            st.fixed_dictionaries(
                {},
                optional={
                    key: SHARES for key in ("data_wait", "compute", "other", "communication")
                },
            ),
        ),
        "gpus": st.lists(
            st.fixed_dictionaries(
                {},
                optional={
                    "utilisation": SHARES.map(lambda mean: {"mean": mean}),
                    "sm_active": SHARES.map(lambda mean: {"mean": mean}),
                    "power_limit_w": st.just(0.0),
                    "memory_total_bytes": st.just(0.0),
                    "memory_used_bytes": st.just(1.0),
                    "mig_profile": st.just("1g.10gb"),
                },
            ),
            max_size=3,
        ),
        "host": st.fixed_dictionaries(
            {},
            optional={
                "starved_share": SHARES,
                "run_cores": st.floats(0, 64),
                "foreign_cores": st.floats(0, 64),
                "usable_cores": st.floats(0.1, 64),
                "cores": st.integers(1, 64),
            },
        ),
        "profile": st.fixed_dictionaries({}, optional={"idle": SHARES, "tensor_core": SHARES}),
        "setup": st.fixed_dictionaries(
            {},
            optional={
                "device": st.sampled_from(["cpu", "cuda"]),
                "num_workers": st.integers(0, 9),
                "world_size": st.integers(1, 9),
                "torch_threads": st.integers(1, 99),
                "batch": st.integers(1, 9),
                "accumulation": st.integers(1, 9),
            },
        ),
    },
)


@given(ANY)
def test_any_evidence_gets_an_answer_that_can_be_said(parts: dict[str, Any]) -> None:
    diagnosis = diagnosed(**parts)
    for message in messages_of(diagnosis):
        said(message)
    for verdict in diagnosis.verdicts:
        assert verdict.gain is None or 0 < verdict.gain < 1
        if verdict.confidence is Confidence.HIGH:
            assert len({signal.instrument for signal in verdict.signals}) >= 2
            assert not verdict.against


def trial(**parts: Any) -> dict[str, Any]:
    return {"changed": "batch", **parts}


def test_a_device_that_larger_batches_do_not_hurry_is_full() -> None:
    table = [trial(factor=0.125, rate_times=0.6), trial(factor=2, rate_times=1.02)]
    found = diagnosed(setup={"device": "cuda"}, throughput={"samples_s": 100}, trials=table)
    assert found.first.cause is Cause.NONE
    loader = [trial(factor=0.125, rate_times=1.0), trial(factor=2, rate_times=1.0)]
    setup, throughput = {"device": "cuda"}, {"samples_s": 100}
    evidence = {"trainwright_record": 1, "setup": setup, "throughput": throughput, "trials": loader}
    # a loader gives as much with any batch
    assert by_rules(Evidence.model_validate(evidence)).cause is Cause.UNKNOWN


def test_a_batch_whose_half_takes_a_tenth_of_the_time_has_no_room() -> None:
    half = [trial(factor=0.5, step_times=0.1)]
    busy = [{"utilisation": {"mean": 1.0}}]
    found = diagnosed(gpus=busy, setup={"device": "cuda"}, steps=steps(), trials=half)
    assert found.first.cause is Cause.MEMORY


def test_attention_that_no_flash_kernel_fits_is_told_what_to_do_about_its_mask() -> None:
    top = [{"name": "fmha_cutlassB_bf16_aligned_128x128_k65536_sm80", "share": 0.5}]
    found = diagnosed(setup={"device": "cuda"}, steps=steps(), profile={"top": top}).first
    assert (found.cause, found.variant) == (Cause.TUNING, "attention")
    assert any("mask" in text for fix in found.fixes for text in said(fix.says))


def test_workers_that_a_mask_holds_on_one_core_are_no_slow_loader() -> None:
    found = diagnosed(
        gpus=[{"utilisation": {"mean": 0.3}}],
        host={"cores": 8, "usable_cores": 1},
        steps=steps(data_wait=0.6),
        setup={"device": "cuda", "num_workers": 8},
    )
    assert (found.first.cause, found.first.variant) == (Cause.SCHEDULING, "affinity")


def test_a_cause_that_is_measured_to_take_little_is_not_the_first() -> None:
    emptied = {
        "steps": steps(data_wait=0.002, device_seconds=0.16),
        "counters": {"steps": 50, "empty_cache": 50},
        "profile": {"idle": 0.84, "allocation_calls": 300},
        "setup": {"device": "cuda"},
    }
    trial_of = {"changed": "empty-cache", "to": "never"}
    little = diagnosed(**emptied, trials=[trial_of | {"step_times": 0.94}])
    timed = emptied | {"counters": {"steps": 50, "empty_cache": 50, "empty_cache_seconds": 30.0}}
    much = diagnosed(**timed, trials=[trial_of | {"step_times": 0.3}]).first
    assert little.first.cause is Cause.PARALLELISM
    assert (Cause.MEMORY, Confidence.MEDIUM) in [(v.cause, v.confidence) for v in little.verdicts]
    assert (much.cause, much.confidence) == (Cause.MEMORY, Confidence.HIGH)


def test_what_an_update_waits_for_is_no_log() -> None:
    writes = {
        "host": {"main_written_bytes_s": 3.3e7, "cores": 2, "usable_cores": 2},
        "profile": {"host_top": [{"name": "save (serialization.py:900)", "share": 0.67}]},
        "setup": {"device": "cpu"},
    }
    between = diagnosed(steps=steps(compute=0.3, other=0.6), **writes).first
    within = diagnosed(steps=steps(compute=0.9, optimizer=0.7, blocked=0.45), **writes).first
    assert (between.cause, between.variant) == (Cause.MONITORING, "logging")
    assert within.confidence is not Confidence.HIGH
