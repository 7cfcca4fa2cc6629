"""How often verdicts like this one were right before, said beside the verdict."""

import csv
from typing import Any

import pytest

from trainwright.data import resources
from trainwright.diagnose.decide import judge
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.report import as_json
from trainwright.diagnose.verdict import Cause
from trainwright.messages import render

# The quota is used up in each period, and the run stands still for a third of its time.
QUOTA: dict[str, Any] = {
    "host": {"cores": 8, "quota_cores": 1.0, "throttled_periods": 0.99, "starved_share": 0.35},
    "steps": {"steps": 200, "seconds": 0.2, "data_wait": 0.01, "compute": 0.15},
    "setup": {"device": "cpu"},
}


def evidence(made_by: str, **parts: Any) -> Evidence:
    return Evidence.model_validate({"trainwright_record": 1, "made_by": made_by, **parts})


def shipped(kind: str, confidence: str) -> tuple[str, str]:
    with resources("calibration", "verdicts.csv").open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if (row["kind"], row["confidence"]) == (kind, confidence):
                return row["right"], row["of"]
    raise AssertionError


@pytest.mark.parametrize(
    ("made_by", "kind", "whose"),
    [
        ("callback", "recorded", "small trainings on a processor"),
        ("diagnose", "recorded", "small trainings on a processor"),
        ("hand", "reported", "runs that people reported"),
        ("", "reported", "runs that people reported"),  # as the docs' example has it
    ],
)
def test_a_verdict_says_how_many_as_sure_were_right_and_of_which_runs(
    made_by: str, kind: str, whose: str
) -> None:
    diagnosis = judge(evidence(made_by, **QUOTA))
    assert diagnosis.first.cause is Cause.SCHEDULING
    assert diagnosis.reliability is not None
    right, of = shipped(kind, diagnosis.first.confidence)
    said = render(diagnosis.reliability.says, "en")
    assert said.startswith(f"{right} of {of} earlier first verdicts")
    assert diagnosis.first.confidence in said
    assert whose in said


def test_of_a_recorded_gpu_run_it_says_that_none_was_scored() -> None:
    diagnosis = judge(evidence("callback", **QUOTA | {"setup": {"device": "cuda"}}))
    assert diagnosis.reliability is not None
    said = render(diagnosis.reliability.says, "en")
    assert "on recorded GPU runs was not measured" in said
    right, of = shipped("recorded", diagnosis.first.confidence)
    assert f"{right} of {of}" in said


def test_nothing_is_said_of_what_was_not_scored() -> None:
    assert judge(evidence("readings", **QUOTA)).reliability is None
    nothing_seen = judge(evidence("callback"))
    assert nothing_seen.first.cause is Cause.UNKNOWN
    assert nothing_seen.reliability is None


def test_programs_read_the_counts_too() -> None:
    seen = evidence("callback", **QUOTA)
    diagnosis = judge(seen)
    document = as_json(diagnosis, seen)["reliability"]
    right, of = shipped("recorded", diagnosis.first.confidence)
    assert (document["right"], document["of"]) == (int(right), int(of))
    assert document["says"].startswith(f"{right} of {of}")
