"""What torch.compile costs before the first step, and whether a run is long enough for it."""

import csv
from pathlib import Path
from typing import Any

import pytest

from trainwright.estimate.time.compiling import warm_up_s
from trainwright.messages import LANGUAGES, render
from trainwright.plan.evaluate import Facts, evaluate, resolve
from trainwright.plan.report import Report, as_json
from trainwright.plan.schema import Plan

ROWS = Path(__file__).parents[2] / "accuracy" / "rows" / "compile.csv"


def published() -> list[dict[str, str]]:
    with ROWS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("row", published(), ids=lambda row: f"{row['model']} {row['task']}")
def test_published_cold_starts(row: dict[str, str]) -> None:
    if row["model"] == "eSCN-MD":
        pytest.skip("its 22 graph breaks are not traced operators")
    seconds = warm_up_s(int(row["operators"]), convolutions=row["model"] == "resnet50")
    assert seconds == pytest.approx(float(row["seconds"]), rel=0.25)


def report(*, preset: str = "gpt2", **workload: Any) -> Report:
    plan = Plan.model_validate(
        {
            "model": {"preset": preset},
            "workload": {"task": "full", "effective_batch": 32, **workload},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
            "settings": {"precision": "fp16-mixed", "micro_batch": 8, "compile": True},
        }
    )
    facts = resolve(plan)
    assert isinstance(facts, Facts)
    return evaluate(plan, facts)


def notes(found: Report) -> list[str]:
    return [note.id for note in found.time.notes]


def test_a_long_run_pays_it_back_and_a_short_one_does_not() -> None:
    assert "time.note.compile-pays" in notes(report(samples=100_000))
    assert "time.note.compile-too-short" in notes(report(samples=64))
    assert "time.note.compile-after" in notes(report())


def test_cost_and_gain_are_in_the_answer_for_scripts() -> None:
    found = report(samples=100_000)
    time = as_json(found)["time"]
    assert found.time.compiling is not None
    saved = found.time.compiling.saved
    assert time["compile_pays_back_steps"] * saved >= time["compile_seconds"]
    assert (time["compile_pays_back_steps"] - 1) * saved < time["compile_seconds"]


def test_a_deeper_model_takes_longer_to_compile() -> None:
    small, large = report(), report(preset="bert-large")
    assert small.time.compiling is not None
    assert large.time.compiling is not None
    assert large.time.compiling.seconds.value > 1.5 * small.time.compiling.seconds.value


@pytest.mark.parametrize("language", LANGUAGES)
def test_it_is_said_in_both_languages(language: Any) -> None:
    for samples in (64, 100_000):
        for note in report(samples=samples).time.notes:
            assert "{" not in render(note, language)
