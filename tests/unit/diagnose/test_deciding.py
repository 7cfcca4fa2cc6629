"""Where no cause is sure, the trial is named that tells the likeliest two apart."""

from typing import Any

import pytest

from trainwright.diagnose.decide import judge
from trainwright.diagnose.deciding import Deciding, deciding
from trainwright.diagnose.evidence import Evidence
from trainwright.diagnose.verdict import Cause, Confidence, Diagnosis, Verdict
from trainwright.messages import LANGUAGES, render

NOTHING: dict[str, Any] = {"trainwright_record": 1}


def named(*causes: tuple[Cause, str], **parts: Any) -> Deciding | None:
    verdicts = tuple(Verdict(cause, variant, Confidence.LOW) for cause, variant in causes)
    return deciding(Diagnosis(verdicts), Evidence.model_validate(NOTHING | parts))


def test_a_batch_that_is_used_again_tells_input_from_launches() -> None:
    found = named((Cause.PARALLELISM, "host-bound"), (Cause.INPUT, "fetch"))
    assert found is not None
    assert found.changed == "synthetic-data"
    assert (found.verdict.cause, found.other and found.other.cause) == (
        Cause.INPUT,
        Cause.PARALLELISM,
    )
    said = render(found.outcome, "en")
    assert said.index("Input") < said.index("parallel")


@pytest.mark.parametrize(
    "parts",
    [
        {"trials": [{"changed": "synthetic-data", "step_times": 0.98}]},
        {"experiments": {"synthetic_batch": 0.3}, "steps": {"steps": 9, "seconds": 0.3}},
    ],
)
def test_what_was_tried_is_not_asked_for_again(parts: dict[str, Any]) -> None:
    found = named((Cause.INPUT, ""), (Cause.PARALLELISM, ""), **parts)
    assert found is not None
    assert found.changed == "batch"
    assert "twice as long" in render(found.outcome, "en")


def test_one_suspicion_alone_gets_the_trial_that_confirms_it() -> None:
    found = named((Cause.UNKNOWN, ""), (Cause.MONITORING, "logging"))
    assert found is not None
    assert "something else" in render(found.outcome, "en")
    for language in LANGUAGES:
        assert "diagnose." not in render(found.how, language) + render(found.outcome, language)


def test_nothing_is_tried_where_a_cause_is_sure_or_none_was_named() -> None:
    assert named((Cause.UNKNOWN, "")) is None
    assert named((Cause.NONE, "")) is None
    steps = {"steps": 50, "seconds": 0.31, "data_wait": 0.2, "compute": 0.1}
    loading = {"cpu_share": 0.05}
    sure = Evidence.model_validate(NOTHING | {"steps": steps, "loading": loading})
    assert judge(sure).first.confidence is Confidence.HIGH
    assert deciding(judge(sure), sure) is None
