"""What is suspected where no rule decides: the cause of known runs that are like this one."""

import os
import subprocess
import sys
from typing import Any

import pytest

from trainwright.diagnose import decide
from trainwright.diagnose.decide import by_rules, judge
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.likeness import Likeness, weights
from trainwright.diagnose.report import as_json
from trainwright.diagnose.traits import measured, traits
from trainwright.diagnose.verdict import Cause, Confidence
from trainwright.messages import render

# Cards that rest and work in turns, a step that others do eight times as fast, and fewer workers
# are slower: by themselves none of it decides (as in an issue of a speech toolkit).
FEATURES: dict[str, Any] = {
    "gpus": [{"utilisation": {"mean": 0.6, "low": 0.0, "high": 1.0}}],
    "host": {"cores": 64},
    "steps": {"steps": 50, "seconds": 400.0, "unit": "step"},
    "setup": {"device": "cuda", "num_workers": 16, "world_size": 4, "strategy": "ddp"},
    "trials": [{"changed": "workers", "factor": 0.125, "to": "2: slower"}],
    "throughput": {"expected_times": 8.0},
}


def evidence(**parts: Any) -> Evidence:
    return Evidence.model_validate({"trainwright_record": 1, **parts})


def test_where_no_rule_decides_the_cause_of_runs_like_it_is_suspected() -> None:
    seen = evidence(**FEATURES)
    assert by_rules(seen).cause is Cause.UNKNOWN
    first = judge(seen).first
    assert (first.cause, first.confidence) == (Cause.INPUT, Confidence.LOW)
    assert (first.suspected, first.alike) == (True, True)
    assert "known runs" in render(first.sure, "en")
    named = {signal.reading: signal for signal in first.signals}
    assert 0.25 <= float(named["likeness.chance"].value) <= 1
    assert "setup.num_workers" in str(named["likeness.traits"].value)


def test_a_program_that_reads_the_answer_can_tell_a_suspicion_from_a_verdict() -> None:
    seen = evidence(**FEATURES)
    first = as_json(judge(seen), seen)["verdict"]
    assert (first["suspected"], first["confidence"]) == (True, "low")
    assert any(each["reading"] == "likeness.chance" for each in first["signals"])


@pytest.mark.parametrize("part", ["gpus", "trials"])
def test_a_time_and_one_thing_more_are_too_little_to_compare(part: str) -> None:
    few = evidence(steps=FEATURES["steps"], setup=FEATURES["setup"], **{part: FEATURES[part]})
    assert measured(few) == 2
    assert not judge(few).first.alike


def test_what_an_experiment_denies_is_not_suspected() -> None:
    denied = {"experiments": {"synthetic_batch": 400.0}}
    assert judge(evidence(**FEATURES, **denied)).first.cause is not Cause.INPUT


def test_a_trial_that_denies_one_fault_leaves_the_others_of_its_cause() -> None:
    """Four ranks that are bound to a core each, on a computer of 16 cores: more threads for each
    change nothing, and what binds them is there as before (from an issue of a library for CPUs)."""
    bound = evidence(
        made_by="hand",
        host={"cores": 16, "run_cores": 4},
        steps={"steps": 1, "seconds": 23, "unit": "epoch"},
        loading={"data_on": "memory"},
        setup={"device": "cpu", "model_kind": "convolution", "world_size": 4, "nodes": 1},
        trials=[{"changed": "threads", "to": "no limit of threads", "step_times": 1.0}],
    )
    assert judge(bound).first.cause is Cause.SCHEDULING


def test_a_run_that_others_do_in_a_third_of_the_time_is_not_said_to_be_well() -> None:
    busy = evidence(
        gpus=[{"name": "NVIDIA RTX 3080", "utilisation": {"mean": 0.99}}],
        steps={"steps": 100, "seconds": 0.9},
        setup={"device": "cuda", "model_kind": "convolution", "batch": 32},
        throughput={"expected_times": 3.0},
        trials=[{"changed": "cudnn-benchmark", "rate_times": 1.0}],
    )
    assert judge(busy).first.cause is not Cause.NONE


def test_who_wrote_a_record_and_what_for_is_no_trait() -> None:
    said = {
        "made_by": "hand",
        "source": "https://example.org",
        "note": "slow",
        "command": "python a.py",
    }
    assert traits(evidence(**FEATURES, **said), ()) == traits(evidence(**FEATURES), ())


def test_the_same_run_measured_again_has_nearly_the_same_traits() -> None:
    again = {**FEATURES, "steps": {"steps": 50, "seconds": 401.0, "unit": "step"}}
    assert traits(evidence(**again), ()) == traits(evidence(**FEATURES), ())


CHANCES = """
from trainwright.diagnose.likeness import likeness, weights
print(likeness(frozenset(weights())).chances)
"""


def test_a_run_is_told_the_same_to_the_last_digit_whenever_it_is_asked() -> None:
    told = {
        subprocess.check_output(
            [sys.executable, "-c", CHANCES], env={**os.environ, "PYTHONHASHSEED": seed}, timeout=60
        )
        for seed in "123"
    }
    assert len(told) == 1


def test_every_trait_speaks_for_some_causes_as_much_as_against_others() -> None:
    assert all(abs(sum(of.values())) < 0.01 for of in weights().values())


@pytest.mark.parametrize(("chance", "sure"), [(0.6, Confidence.HIGH), (0.4, Confidence.MEDIUM)])
def test_rules_are_sure_only_where_most_known_runs_that_are_alike_had_the_cause(
    chance: float, sure: Confidence, monkeypatch: pytest.MonkeyPatch
) -> None:
    chances = {Cause.INPUT: chance, Cause.MEMORY: 1 - chance}
    monkeypatch.setattr(decide, "likeness", lambda _: Likeness(chances, frozenset()))
    waits = evidence(
        steps={"steps": 100, "seconds": 0.1, "data_wait": 0.07, "compute": 0.03},
        setup={"device": "cuda", "world_size": 1, "num_workers": 1},
        gpus=[{"utilisation": {"mean": 0.3}}],
        experiments={"synthetic_batch": 0.03},
    )
    assert by_rules(waits).confidence is Confidence.HIGH
    first = judge(waits).first
    assert (first.cause, first.confidence) == (Cause.INPUT, sure)


@pytest.mark.parametrize(
    ("made_by", "chance", "cause"),
    [
        ("hand", 0.9, Cause.MEMORY),
        ("hand", 0.6, Cause.INPUT),  # rules count seven times
        ("callback", 0.9, Cause.INPUT),  # which reads more than people report
    ],
)
def test_of_what_a_person_reports_runs_like_it_tell_as_well_as_rules_do(
    made_by: str, chance: float, cause: Cause, monkeypatch: pytest.MonkeyPatch
) -> None:
    chances = {Cause.MEMORY: chance, Cause.INPUT: 1 - chance}
    monkeypatch.setattr(decide, "likeness", lambda _: Likeness(chances, frozenset()))
    waits = evidence(
        made_by=made_by,
        steps={"steps": 100, "seconds": 0.1, "data_wait": 0.03},
        setup={"device": "cuda", "world_size": 1, "num_workers": 1},
        gpus=[{"utilisation": {"mean": 0.5}}],
        throughput={"samples_s": 300.0},
    )
    assert (by_rules(waits).cause, by_rules(waits).confidence) == (Cause.INPUT, Confidence.MEDIUM)
    first = judge(waits).first
    assert first.cause is cause
    assert first.alike == (cause is Cause.MEMORY)


def test_a_record_that_says_not_who_made_it_is_judged_as_one_that_a_person_wrote() -> None:
    # A layer of an LSTM on an old card that is slower in half precision (pytorch/pytorch#1539).
    half = {
        "steps": {"steps": 1, "seconds": 0.39, "forward": 0.11, "backward": 0.28, "unit": "part"},
        "throughput": {"samples_s": 164.0},
        "gpus": [{"name": "NVIDIA Tesla P100", "compute_capability": "6.0"}],
        "setup": {"device": "cuda", "precision": "fp16", "batch": 64, "model_kind": "recurrent"},
        "experiments": {"doubled_batch": 0.46},
        "trials": [{"changed": "precision", "to": "fp32", "step_times": 0.615}],
    }
    unsaid, written, recorded = (
        judge(evidence(made_by=made_by, **half)).first.cause for made_by in ("", "hand", "callback")
    )
    assert unsaid is written is Cause.TUNING
    assert recorded is Cause.PARALLELISM  # of what is recorded, rules tell more


def test_where_one_cause_is_named_and_not_sure_runs_like_it_name_a_second() -> None:
    """Never one that a reading rules out, and none next to a run that is well."""
    half = {"steps": {"steps": 50, "seconds": 0.3, "data_wait": 0.03, "compute": 0.26}}
    seen = evidence(**half, setup={"device": "cpu", "batch": 1}, host={"cores": 8, "run_cores": 2})
    verdicts = judge(seen).verdicts
    assert verdicts[0].confidence is not Confidence.HIGH
    assert len({each.cause for each in verdicts}) == 2
    fed = {**half, "steps": half["steps"] | {"data_wait": 0.003}}
    assert Cause.INPUT not in {each.cause for each in judge(evidence(**fed)).verdicts}
