"""Two figures of a thread, of which one denies what else the other could mean, name a cause."""

from typing import Any

import pytest

from trainwright.diagnose.decide import by_rules
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.verdict import Cause, Confidence, Verdict

ONE = {"device": "cuda", "world_size": 1}
EIGHT = {"device": "cuda", "world_size": 8, "nodes": 1, "strategy": "ddp"}
ON_CPU = {"device": "cpu", "world_size": 1}
PICTURES = {"model_kind": "convolution"}
STEP = {"steps": 100, "seconds": 0.5}


def first(**parts: Any) -> Verdict:
    whole = {"trainwright_record": 1, "setup": ONE, **parts}
    verdict = by_rules(Evidence.model_validate(whole))
    assert verdict.confidence is not Confidence.HIGH
    return verdict


def another_model(times: float) -> list[dict[str, Any]]:
    return [{"changed": "model-size", "to": "ResNet-101", "step_times": times}]


@pytest.mark.parametrize(("times", "cause"), [(1.02, Cause.INPUT), (1.6, Cause.UNKNOWN)])
def test_pictures_that_take_as_long_with_another_model_are_late(times: float, cause: Cause) -> None:
    assert first(setup=EIGHT | PICTURES, trials=another_model(times)).cause is cause


def test_text_that_takes_as_long_with_another_model_waits_for_launches_of_short_steps() -> None:
    short = first(setup=ONE | {"model_kind": "transformer"}, trials=another_model(1.0))
    long = first(
        setup=ONE | {"model_kind": "transformer"},
        trials=another_model(1.0),
        steps=STEP | {"seconds": 16.0},
    )
    assert (short.cause, long.cause) == (Cause.PARALLELISM, Cause.UNKNOWN)


def test_passes_that_are_all_of_what_was_timed_beside_a_gpu_at_rest_wait_for_launches() -> None:
    timed = {"steps": 1, "seconds": 2.5, "unit": "part", "compute": 2.5}
    rests, works = ([{"utilisation": {"mean": busy}}] for busy in (0.1, 0.6))
    assert first(steps=timed, gpus=rests).cause is Cause.PARALLELISM
    assert first(steps=timed, gpus=works).cause is Cause.UNKNOWN


def test_reads_of_values_that_take_a_third_of_the_time_are_named_where_no_device_is() -> None:
    reads = {"host_top": [{"name": "item", "share": 0.35}]}
    assert first(setup={}, steps=STEP, profile=reads).variant == "synchronisation"
    assert first(setup=ON_CPU, steps=STEP, profile=reads).cause is Cause.UNKNOWN


def test_threads_that_are_mostly_in_the_system_wait_for_each_other_or_for_files() -> None:
    host = {"run_cores": 7.0, "main_system_share": 0.75}
    files = host | {"main_read_bytes_s": 2e8}
    ranks = ON_CPU | {"world_size": 4}
    assert first(setup=ranks, host=host, steps=STEP).variant == "threads"
    assert first(setup=ranks, host=files, steps=STEP).variant != "threads"
    assert first(setup=ranks, host=host | {"run_cores": 3.9}, steps=STEP).cause is Cause.UNKNOWN


def test_a_processor_that_is_many_times_as_fast_tells_of_the_quota_here() -> None:
    def faster(times: float, **host: float) -> Verdict:
        trials = [{"changed": "cpu", "to": "another provider's", "step_times": times}]
        return first(setup=ON_CPU, host=host, trials=trials)

    assert faster(0.04, quota_cores=2).variant == "quota"
    assert faster(0.5, quota_cores=2).cause is Cause.UNKNOWN
    assert faster(0.04, cores=2).cause is Cause.UNKNOWN


def test_fewer_devices_that_are_as_fast_as_they_should_be_tell_of_the_exchange() -> None:
    def said(words: str) -> Cause:
        trials = [{"changed": "devices", "factor": 0.75, "to": words}]
        return first(setup=EIGHT, trials=trials, steps=STEP).cause

    assert said("6 GPUs: the time is normal") is Cause.COMMUNICATION
    assert said("6 GPUs: not normal either") is said("6 GPUs: still slow") is Cause.UNKNOWN


def test_a_gpu_of_the_same_arithmetic_tells_nothing_by_taking_as_long() -> None:
    def other(name: str) -> Verdict:
        trials = [{"changed": "gpu", "to": name, "step_times": 1.0}]
        return first(gpus=[{"name": "RTX 3090"}], trials=trials, steps=STEP | {"compute": 0.49})

    assert other("RTX 3090 Ti").cause is Cause.UNKNOWN
    assert other("RTX 4090").cause is Cause.PARALLELISM


def test_smaller_batches_of_no_stated_size_tell_of_a_memory_that_is_full() -> None:
    full = [{"memory_used_bytes": 23.8e9, "memory_total_bytes": 24e9}]
    trials = [{"changed": "batch", "to": "a smaller one", "rate_times": 3.0}]
    assert first(gpus=full, trials=trials).cause is Cause.MEMORY


def test_five_times_as_many_threads_as_cores_crowd_a_processor() -> None:
    crowded, busy = ({"cores": 8, "load_average": load} for load in (40.0, 9.0))
    assert first(setup=ON_CPU, host=crowded, steps=STEP).cause is Cause.SCHEDULING
    assert first(setup=ON_CPU, host=busy, steps=STEP).cause is Cause.UNKNOWN
