"""Advice takes what the evidence says into account: what is there or was tried is not proposed."""

from typing import Any

import pytest

from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.fixes import fixes
from trainwright.diagnose.verdict import Cause

LIMITED = {"power_limit_w": 350, "power_limit_default_w": 350}


def advised(cause: Cause, variant: str, **parts: Any) -> dict[str, dict[str, Any]]:
    """Return the ids of what is advised, each with what it sets."""
    evidence = Evidence.model_validate({"trainwright_record": 1, **parts})
    found = fixes(cause, variant, evidence)
    return {fix.says.id.removeprefix("diagnose.fix."): fix.patch for fix in found}


@pytest.mark.parametrize(
    ("cause", "variant", "parts", "wanted", "unwanted"),
    [
        (Cause.INPUT, "fetch", {"setup": {"num_workers": 24}}, "shards", "workers"),
        (
            Cause.INPUT,
            "fetch",
            {"trials": [{"changed": "workers", "to": "more", "step_times": 1.0}]},
            "shards",
            "workers",
        ),
        (
            Cause.TUNING,
            "layout",
            {"setup": {"channels_last": True}},
            "channels-first",
            "channels-last",
        ),
        (
            Cause.TUNING,
            "attention",
            {
                "setup": {"attention": "flash"},
                "trials": [{"changed": "attention", "to": "eager", "step_times": 0.2}],
            },
            "attention-tried",
            "attention",
        ),
        (
            Cause.MONITORING,
            "anomaly-detection",
            {"setup": {"anomaly_detection": False}},
            "watching",
            "anomaly-detection",
        ),
        (Cause.SCHEDULING, "power", {"gpus": [LIMITED]}, "power-board", "power"),
        (
            Cause.SCHEDULING,
            "power",
            {"gpus": [LIMITED | {"power_limit_w": 250}]},
            "power",
            "power-board",
        ),
        (
            Cause.SCHEDULING,
            "power",
            {
                "gpus": [
                    {
                        "power_w": {"mean": 240},
                        "power_limit_w": 400,
                        "throttled": {"power-cap": 1.0},
                    }
                ]
            },
            "power-brake",
            "power",
        ),
        (
            Cause.SCHEDULING,
            "threads",
            {"host": {"usable_cores": 4}, "setup": {"torch_threads": 4}},
            "threads-others",
            "threads-of",
        ),
        (Cause.INPUT, "transfer", {"setup": {"device": "cuda"}}, "pin", "prefetch"),
        (Cause.INPUT, "", {"setup": {"device": "cuda"}}, "workers-more", "workers"),
        (
            Cause.INPUT,
            "",
            {"setup": {"num_workers": 2, "persistent_workers": True}},
            "workers-kept",
            "workers",
        ),
        (
            Cause.SCHEDULING,
            "quota",
            {"setup": {"num_workers": 2}, "host": {"usable_cores": 8}},
            "quota",
            "fewer-workers",
        ),
    ],
)
def test_what_is_there_or_was_tried_is_not_proposed(
    cause: Cause, variant: str, parts: dict[str, Any], wanted: str, unwanted: str
) -> None:
    found = advised(cause, variant, **parts)
    assert wanted in found
    assert unwanted not in found


def test_the_batch_that_was_fastest_when_tried_is_proposed_and_not_twice_the_batch() -> None:
    tried = [
        {"changed": "batch", "factor": factor, "rate_times": rate}
        for factor, rate in ((2, 1.02), (4, 3.1), (8, 2.9))
    ]
    found = advised(Cause.PARALLELISM, "small-batch", setup={"batch": 2}, trials=tried)
    assert found["larger-batch-of"]["settings.micro_batch"] == 8


def test_a_gpu_that_is_known_by_its_name_alone_gets_a_precision_that_it_has() -> None:
    found = advised(Cause.TUNING, "precision", gpus=[{"name": "Tesla T4"}])
    assert found["precision"] == {"settings.precision": "fp16-mixed"}


def test_a_run_without_a_gpu_is_not_told_to_pin_memory() -> None:
    assert advised(Cause.INPUT, "transfer", setup={"device": "cpu"}) == {}
