"""Every experiment that a record can name is read, in each direction in which it tells a cause."""

from typing import Any, get_args

import pytest

from trainwright.diagnose.causes.rules import signals
from trainwright.diagnose.decide import RULES, by_rules, judge
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.measures import hardware, trials
from trainwright.diagnose.trials import Changed
from trainwright.diagnose.verdict import Cause, Confidence

ONE = {"device": "cuda", "world_size": 1, "batch": 8, "num_workers": 4}
MANY = {"device": "cuda", "world_size": 8, "nodes": 2, "strategy": "ddp"}
OFFLOADING = {"device": "cuda", "world_size": 1, "offload": True}
TELLS: dict[Changed, tuple[Cause, dict[str, Any], float | None]] = {
    "batch": (Cause.PARALLELISM, ONE, 4),
    "accumulation": (Cause.COMMUNICATION, MANY, 4),
    "sequence-length": (Cause.PARALLELISM, ONE, 4),
    "model-size": (Cause.PARALLELISM, ONE, 4),
    "workers": (Cause.INPUT, ONE, 2),
    "prefetch": (Cause.INPUT, ONE, 4),
    "pinned-memory": (Cause.INPUT, ONE, None),
    "synthetic-data": (Cause.INPUT, ONE, None),
    "cached-data": (Cause.INPUT, ONE, None),
    "augmentation": (Cause.INPUT, ONE, None),
    "drive": (Cause.INPUT, ONE, None),
    "threads": (Cause.SCHEDULING, ONE, None),
    "affinity": (Cause.SCHEDULING, ONE, 4),
    "quota": (Cause.SCHEDULING, ONE, 4),
    "other-programs": (Cause.SCHEDULING, ONE, None),
    "devices": (Cause.COMMUNICATION, MANY, 0.125),
    "nodes": (Cause.COMMUNICATION, MANY, 0.5),
    "link": (Cause.COMMUNICATION, MANY, None),
    "backend": (Cause.COMMUNICATION, MANY, None),
    "bucket": (Cause.COMMUNICATION, MANY, 8),
    "precision": (Cause.TUNING, ONE, None),
    "tf32": (Cause.TUNING, ONE, None),
    "channels-last": (Cause.TUNING, ONE, None),
    "compile": (Cause.TUNING, ONE, None),
    "graphs": (Cause.PARALLELISM, ONE, None),
    "attention": (Cause.TUNING, ONE, None),
    "cudnn-benchmark": (Cause.TUNING, ONE, None),
    "shapes": (Cause.TUNING, ONE, None),
    "padding": (Cause.TUNING, ONE, None),
    "offloading": (Cause.MEMORY, OFFLOADING, None),
    "checkpointing": (Cause.MEMORY, ONE, None),
    "empty-cache": (Cause.MEMORY, ONE, None),
    "garbage-collection": (Cause.MEMORY, ONE, None),
    "allocator": (Cause.MEMORY, ONE, None),
    "synchronisation": (Cause.MONITORING, ONE, None),
    "logging": (Cause.MONITORING, ONE, 0.1),
    "checkpoints": (Cause.MONITORING, ONE, 0.1),
    "evaluation": (Cause.MONITORING, ONE, None),
    "profiler": (Cause.MONITORING, ONE, None),
    "anomaly-detection": (Cause.MONITORING, ONE, None),
    "power-limit": (Cause.SCHEDULING, ONE, 1.3),
    "cooling": (Cause.SCHEDULING, ONE, None),
    "slice": (Cause.SCHEDULING, ONE, 2),
    "gpu": (Cause.NONE, ONE, None),
    "cpu": (Cause.PARALLELISM, ONE, None),
}
"""What is changed -> the cause that it tells where samples pass three times as fast."""


def tried(setup: dict[str, Any], **trial: Any) -> Evidence:
    parts = {"setup": setup, "steps": {"steps": 50, "seconds": 0.5}, "trials": [trial]}
    return Evidence.model_validate({"trainwright_record": 1, **parts})


def test_every_change_is_in_the_table() -> None:
    assert set(TELLS) == set(get_args(Changed))


@pytest.mark.parametrize("changed", TELLS)
def test_a_change_that_hurries_a_run_tells_its_cause_and_is_never_sure_alone(
    changed: Changed,
) -> None:
    cause, setup, factor = TELLS[changed]
    diagnosis = judge(tried(setup, changed=changed, factor=factor, rate_times=3.0))
    if changed in ("gpu", "model-size"):  # another GPU tells of none, a model size of two causes
        return
    assert diagnosis.first.cause is cause
    assert diagnosis.first.confidence is not Confidence.HIGH


@pytest.mark.parametrize("changed", [each for each in TELLS if each != "gpu"])
def test_what_a_change_tells_it_tells_in_times_of_a_step_as_well(changed: Changed) -> None:
    cause, setup, factor = TELLS[changed]
    grows = changed in ("batch", "accumulation", "sequence-length")
    rate = tried(setup, changed=changed, factor=factor, rate_times=3.0)
    taken = (factor or 1) / 3 if grows else 1 / 3
    times = tried(setup, changed=changed, factor=factor, step_times=taken)
    read = [[s.weight for s in signals(RULES[cause], each)] for each in (rate, times)]
    assert read[0] == read[1]
    assert max(read[0]) >= 2


DENIED = {
    *("augmentation", "cached-data", "drive", "pinned-memory", "synthetic-data", "threads"),
    *("affinity", "quota", "other-programs", "devices", "nodes", "link", "precision", "tf32"),
    *("channels-last", "compile", "graphs", "attention", "cudnn-benchmark", "shapes", "padding"),
    *("offloading", "checkpointing", "empty-cache", "garbage-collection", "synchronisation"),
    *("logging", "checkpoints", "evaluation", "profiler", "anomaly-detection", "power-limit"),
    *("cooling", "slice", "cpu", "batch", "sequence-length"),
}
"""What rules its cause out where it changes nothing: the rest are one way of many."""


@pytest.mark.parametrize("changed", sorted(DENIED))
def test_a_change_that_does_nothing_rules_its_cause_out(changed: Changed) -> None:
    cause, setup, factor = TELLS[changed]
    idle = tried(setup, changed=changed, factor=factor, rate_times=1.0)
    assert min(signal.weight for signal in signals(RULES[cause], idle)) <= -2
    assert by_rules(idle).cause in (Cause.UNKNOWN, Cause.NONE)
    assert judge(idle).first.cause is not cause


@pytest.mark.parametrize(
    ("trial", "saved"),
    [
        ({"changed": "logging", "step_times": 0.6}, 0.4),
        ({"changed": "logging", "factor": 0.5, "step_times": 0.8}, 0.4),
        ({"changed": "logging", "factor": 2, "step_times": 1.4}, 0.4),
        ({"changed": "logging", "to": "none", "rate_times": 1 / 0.6}, 0.4),
    ],
)
def test_less_of_a_burden_or_more_of_it_tell_what_all_of_it_costs(
    trial: dict[str, Any], saved: float
) -> None:
    measure = trials.saved_by("without_logging")
    assert measure(tried(ONE, **trial)) == pytest.approx(saved)


def test_how_much_is_tried_is_read_in_words_too() -> None:
    words = tried(ONE, changed="batch", to="32", step_times=1.0)
    assert trials.doubled_batch(words) == pytest.approx(1.0)
    for said in ("2 workers", "two", "half of them", "from 4 to 2"):
        halved = tried(ONE, changed="workers", to=said, step_times=2.0)
        assert trials.saved_by("more_workers")(halved) == pytest.approx(0.5)
    twice = tried(ONE, changed="batch", to="four times as many", step_times=4.0)
    assert trials.doubled_batch(twice) == pytest.approx(2.0)


def test_batches_that_are_made_sooner_without_workers_are_an_input_pipeline() -> None:
    verdict = judge(tried(ONE, changed="workers", to="0", step_times=0.1)).first
    assert verdict.cause is Cause.INPUT


def test_a_smaller_batch_on_a_ladder_says_as_much_as_a_larger_one() -> None:
    down = tried(ONE, changed="batch", factor=0.25, step_times=1.0)
    up = tried(ONE, changed="batch", factor=4, step_times=1.0)
    assert judge(down).first.cause is judge(up).first.cause is Cause.PARALLELISM


def test_steps_that_are_not_computed_twice_are_shorter_by_that() -> None:
    verdict = judge(tried(ONE, changed="checkpointing", to="none", step_times=0.4)).first
    assert (verdict.cause, verdict.variant) == (Cause.MEMORY, "recomputation")
    assert verdict.gain == pytest.approx(0.6)


def test_a_gpu_is_known_where_its_computer_stands_beside_its_name() -> None:
    """Two cards alike: that they are as fast says nothing of the run."""
    seen = {
        "trainwright_record": 1,
        "gpus": [{"name": "NVIDIA Tesla V100 16GB"}],
        "setup": ONE,
        "trials": [{"changed": "gpu", "to": "V100 32GB of a DGX-2", "rate_times": 1.06}],
    }
    assert hardware.another_gpu(Evidence.model_validate(seen)) is None


def test_twice_the_batch_that_is_two_fifths_faster_a_sample_is_enough_for_a_cause() -> None:
    seen = {
        "trainwright_record": 1,
        "setup": ONE,
        "trials": [{"changed": "batch", "factor": 2, "rate_times": 1.45}],
    }
    assert by_rules(Evidence.model_validate(seen)).cause is Cause.PARALLELISM


def test_two_of_computers_that_nobody_counted_are_fewer_of_them() -> None:
    over = {"device": "cuda", "strategy": "zero", "link": "network"}
    faster = {"changed": "nodes", "to": "two nodes", "step_times": 0.6}
    saved = trials.saved_by("single_device")
    many = {"trainwright_record": 1, "steps": {"steps": 1, "seconds": 18.0}, "trials": [faster]}
    assert saved(Evidence.model_validate(many | {"setup": over})) == pytest.approx(0.4)
    of_one = Evidence.model_validate(many | {"setup": ONE})  # a second one is more of them
    assert (saved(of_one) or 0) < 0
