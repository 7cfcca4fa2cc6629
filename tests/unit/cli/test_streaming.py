"""One process that answers line after line, and one that follows a file."""

import json
import subprocess
import sys
import time

from trainwright.data import resources

PLAN = resources("examples", "gpt2-rtx4070.plan.yaml")


def answers(trainwright, lines, *arguments):
    text = "".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines)
    run = trainwright("estimate", "--stdin", *arguments, stdin=text.encode())
    assert (run.code, run.err) == (0, "")
    return [json.loads(line) for line in run.out.splitlines()]


def test_each_line_changes_the_plan_and_gets_its_answer(trainwright):
    def whole(change):
        return json.loads(trainwright("estimate", PLAN, "--json", "--set", change).out)

    asked = [{"id": "a", "settings.micro_batch": 4}, {"settings.micro_batch": 2}]
    first, second = answers(trainwright, asked, PLAN)
    assert first == {"id": "a", **whole("settings.micro_batch=4")}
    assert second == whole("settings.micro_batch=2")  # nothing stays of the line before


def test_a_refused_line_is_answered_and_the_next_one_too(trainwright):
    lines = [
        {"id": 7, "settings.micro_bach": 4},
        "not JSON\n",
        '{"settings.micro_batch": NaN}\n',
        '{"id": 1, "id": 2}\n',
        {"settings": {"micro_batch": 2}},
        "\n",
        {"settings.micro_batch": 4},
    ]
    *refused, section, last = answers(trainwright, lines, PLAN)
    assert refused[0] == {"id": 7, "error": refused[0]["error"]}
    assert "did you mean micro_batch?" in refused[0]["error"]
    assert ["not a JSON object" in one["error"] for one in refused] == [False, True, True, True]
    assert section["error"].startswith("settings: ")
    assert "settings.micro_batch" in section["error"]
    assert last["memory"]


def test_whole_plans_need_no_plan_on_the_command_line(trainwright):
    plan = {
        "trainwright": 1,
        "model": {"preset": "gpt2"},
        "workload": {"task": "pretrain", "effective_batch": 32},
        "machine": {"gpus": [{"id": "rtx-4070"}]},
    }
    known, unknown = answers(trainwright, [plan, {**plan, "model": {"preset": "gpt9"}}])
    assert known["memory"]["device_total_bytes"] > 0
    assert unknown["error"].startswith("stdin:2: model.preset: ")


def test_a_plan_that_is_wrong_is_refused_before_any_line(trainwright):
    run = trainwright("estimate", "--stdin", "nowhere.plan.yaml", stdin=b"{}\n")
    assert run.complaint.startswith("nowhere.plan.yaml: ")


def test_a_watched_plan_is_answered_at_each_save(tmp_path):
    plan = tmp_path / "mine.plan.yaml"
    text = PLAN.read_text(encoding="utf-8")
    plan.write_text(text, encoding="utf-8")
    with subprocess.Popen(
        [sys.executable, "-m", "trainwright", "estimate", "--watch", plan, "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            before = json.loads(process.stdout.readline())
            plan.write_text("trainwright: 1\nmodel: [", encoding="utf-8")
            assert "mine.plan.yaml:" in process.stderr.readline()
            time.sleep(0.01)
            plan.write_text(text + "\n# saved again\n", encoding="utf-8")
            assert json.loads(process.stdout.readline()) == before
        finally:
            process.kill()
