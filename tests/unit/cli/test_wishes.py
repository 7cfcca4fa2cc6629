"""Wishes of a plan file on the command line: refused by name, taken back by flags."""

import json

import pytest

PLAN = """trainwright: 1
model: {preset: resnet50}
workload: {task: pretrain, effective_batch: 256, samples: 100000}
machine: {gpus: [{id: rtx-3090, count: 2}]}
"""


@pytest.mark.parametrize("command", ["build", "upgrade"])
def test_the_command_line_names_file_and_key_of_a_contradiction(inside, tmp_path, command):
    path = tmp_path / "loud.plan.yaml"
    path.write_text(PLAN + "limits:\n  power_w: 900\n  wishes: {quiet: true}\n", encoding="utf-8")
    assert f"{path}: limits.wishes: " in inside(command, path).complaint


def test_other_plans_are_named_in_the_file_or_on_the_command_line(inside, tmp_path):
    first, second = tmp_path / "one.plan.yaml", tmp_path / "two.plan.yaml"
    limits = "limits: {budget: 2500 USD, also: [{plan: two.plan.yaml, times: 3}]}\n"
    first.write_text(PLAN + limits, encoding="utf-8")
    second.write_text(PLAN, encoding="utf-8")
    command = ("build", first, "--gpus", "1", "--top", "1", "--json")
    (best,) = json.loads(inside(*command).out)["builds"]
    assert [work["times"] for work in best["workloads"]] == [1, 3]
    (best,) = json.loads(inside(*command, "--plan", f"0.5x {second}").out)["builds"]
    assert [work["times"] for work in best["workloads"]] == [1, 0.5]
    second.unlink()
    assert "two.plan.yaml" in inside(*command).complaint


def test_a_flag_takes_a_wish_of_the_file_back(inside, tmp_path):
    path = tmp_path / "one.plan.yaml"
    limits = "limits: {budget: 2500 USD, wishes: {gpus: 4, form: mini-itx}}\n"
    path.write_text(PLAN + limits, encoding="utf-8")
    assert "limits.wishes.gpus" in inside("build", path).complaint
    outcome = inside("build", path, "--gpus", "1", "--top", "1", "--json")
    assert outcome.code == 0
    (best,) = json.loads(outcome.out)["builds"]
    assert [part["count"] for part in best["parts"] if part["kind"] == "gpu"] == [1]
