"""Steps of others through the front door: each plan says how its source ran, and what it measured.

``python tests/accuracy/test_steps.py [--without-recipe] [ID ...]`` prints the rows, and what the
command says of each; without the recipe, the p95 is that of the hungriest likely one.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

import comparing
import pytest
import yaml
from comparing import Said, p90

from trainwright.messages import UserError
from trainwright.plan import file
from trainwright.plan.evaluate import resolve

HERE = Path(__file__).parent / "steps"
FIGURE = {
    "allocated": "allocated_peak_bytes",
    "reserved": "reserved_peak_bytes",
    "device": "device_used_bytes",
    "taken": "taken_at_start_bytes",
}
"""Metric of a row -> the figure of the answer that it is compared with."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the command says of a row."""

    row: dict[str, Any]
    reason: str
    """Why there is no answer; empty where there is one."""
    memory: dict[str, Any]
    fits: bool

    @property
    def error(self) -> float | None:
        """Predicted over measured, less 1."""
        measured = self.row["measured"]
        if self.reason or measured is None:
            return None
        return float(self.memory[FIGURE[self.row["metric"]]] / measured - 1)


@cache
def rows() -> tuple[dict[str, Any], ...]:
    return tuple(yaml.safe_load((HERE / "rows.yaml").read_text(encoding="utf-8")))


def text(row: dict[str, Any]) -> str:
    """Return the row's plan, its paths made whole."""
    model = dict(row["model"])
    if "hf" in model:
        model["hf"] = str(HERE / model["hf"])
    if "python" in model:
        model["python"] = {**model["python"], "file": str(HERE / model["python"]["file"])}
    known = {key: row[key] for key in ("workload", "machine", "settings")}
    return yaml.safe_dump({"trainwright": 1, "name": row["id"], "model": model, **known})


OF_RECIPES = (
    *("recipe", "output_kept", "expanded_heads", "kbit_preparation", "double_quantization"),
    *("input_gradients", "scores_upcast", "optimizer_implementation", "loss_in_model"),
    *("gradients_cleared", "adapter_dtype", "separate_experts", "softmax_inputs"),
    "reentrant",
)
"""Keys that a person leaves out who does not know who runs the step."""


def without_recipe(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row as that person would state it."""
    known = {key: value for key, value in row["settings"].items() if key not in OF_RECIPES}
    return row | {"settings": known}


def refusal(row: dict[str, Any]) -> str:
    """Return why the row's plan is none; empty where it is one."""
    try:
        resolve(file.parsed(text(row), row["id"]))
    except UserError as error:
        return str(error)
    return ""


def answered(row: dict[str, Any], folder: Path) -> Answer:
    """Ask the command about a row's plan."""
    path = folder / f"{row['id']}.plan.yaml"
    path.write_text(text(row), encoding="utf-8")
    command = [sys.executable, "-m", "trainwright", "estimate", str(path), "--json", "--allow-code"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    if not done.stdout:
        return Answer(row, done.stderr.strip().splitlines()[-1].partition(": ")[2], {}, False)
    found = json.loads(done.stdout)
    figures = found["memory"] | (found["serving"] or {})
    return Answer(row, "", figures, found["fits"])


def lines(answers: Sequence[Answer]) -> Iterator[str]:
    """Yield the table: each row, then its kind's figures."""
    for answer in answers:
        row, error = answer.row, answer.error
        yield (
            f"{row['id']:36} {row['kind']:7} {row['outcome']:5} "
            + (f"not stated: {answer.reason}" if answer.reason else f"fits {answer.fits!s:6}")
            + (f" {error:+7.1%} of the {row['metric']}" if error is not None else "")
            + (f" (lacks {row['lacks']})" if "lacks" in row else "")
        )
    kinds = dict.fromkeys(row["kind"] for row in rows())
    for name, chosen in (
        *((kind, [a for a in answers if a.row["kind"] == kind]) for kind in kinds),
        ("all", list(answers)),
        ("all that a plan can say", [a for a in answers if "lacks" not in a.row]),
    ):
        yield summary(name, chosen)


def summary(name: str, answers: Sequence[Answer]) -> str:
    """Return a kind's figures in a line."""
    errors = sorted(abs(a.error) for a in answers if a.error is not None)
    stated = [a for a in answers if not a.reason]
    over = [a for a in stated if a.row["measured"] and above(a)]
    oom = [a for a in stated if a.row["outcome"] == "oom"]
    fine = [a for a in stated if a.row["outcome"] == "fits"]
    figures = f"median {median(errors):.1%}, p90 {p90(errors):.1%}" if errors else "no figure"
    return (
        f"{name:24} n {len(errors):2}: {figures}; above p95 {len(over)}; "
        f"out of memory said to fit {sum(a.fits for a in oom)} of {len(oom)}; "
        f"worked said not to fit {sum(not a.fits for a in fine)} of {len(fine)}"
    )


def above(answer: Answer) -> bool:
    """Return whether the measured figure lies above its p95, as far over as the device's does.

    Where the plan states no recipe, it is the p95 of the hungriest likely one.
    """
    spread = answer.memory["device_used_p95_bytes"] - answer.memory["device_used_bytes"]
    low, high = answer.memory.get("likely_recipes_bytes") or (0, 0)
    spread += high - low
    figure = answer.memory[FIGURE[answer.row["metric"]]]
    return bool(answer.row["measured"] > figure + spread)


def said(answers: Sequence[Answer]) -> list[Said]:
    """Return the rows of transformers that have a figure, for others to be asked too."""
    found = ((answer, comparing.config_of(answer.row, HERE)) for answer in answers)
    return [Said(a.row, a.error, config) for a, config in found if config and a.error is not None]


def test_every_row_is_a_plan_or_says_why_not() -> None:
    assert len({row["id"] for row in rows()}) == len(rows()) >= 60
    for row in rows():
        assert row["source"].startswith("https://")
        assert row["how"]
        assert "lacks" in row or refusal(row) == "", row["id"]


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> list[Answer]:
    folder = tmp_path_factory.mktemp("plans")
    found = [answered(row, folder) for row in rows()]
    print("\n".join(["", *lines(found), "", *comparing.lines(said(found))]))
    return found


@pytest.mark.slow
@pytest.mark.timeout(7200)
def test_rows_that_a_plan_can_say_are_close(answers: list[Answer]) -> None:
    stated = [a for a in answers if "lacks" not in a.row and not a.reason]
    errors = sorted(abs(a.error) for a in stated if a.error is not None)
    assert median(errors) <= 0.03
    assert p90(errors) <= 0.10
    assert not [a.row["id"] for a in answers if a.row["outcome"] == "oom" and a.fits]
    worked = [a for a in answers if a.row["outcome"] == "fits" and not a.reason]
    assert sum(not a.fits for a in worked) <= 2


@pytest.mark.slow
def test_both_sides_of_the_edge_of_a_t4_are_told_apart(answers: list[Answer]) -> None:
    edge = [a for a in answers if a.row["id"].startswith("t4-edge-")]
    assert {a.row["outcome"] for a in edge} == {"fits", "oom"}
    assert not [a.row["id"] for a in edge if a.fits != (a.row["outcome"] == "fits")]


@pytest.mark.slow
def test_no_other_estimator_is_closer(answers: list[Answer]) -> None:
    assert not [(one.group, one.name) for one in comparing.pairs(said(answers)) if not one.ahead]


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        named = [word for word in sys.argv[1:] if not word.startswith("--")]
        asked = [row for row in rows() if not named or row["id"] in named]
        if "--without-recipe" in sys.argv:
            trained = (row for row in asked if row["workload"]["task"] != "infer")
            asked = [without_recipe(row) for row in trained]
        answers = [answered(row, Path(folder)) for row in asked]
        print("\n".join([*lines(answers), "", *comparing.lines(said(answers))]))
