"""The Python interface gives what the command line prints, without what only that needs."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
import yaml

import trainwright
from trainwright import api
from trainwright.data import resources

PLAN = resources("examples", "gpt2-rtx4070.plan.yaml")


def printed(*arguments):
    command = [sys.executable, "-m", "trainwright", "estimate", *map(str, arguments), "--json"]
    return json.loads(subprocess.run(command, capture_output=True, check=False).stdout)


def test_a_file_and_its_data_answer_as_the_command_line_does():
    whole = printed(PLAN, "--set", "settings.micro_batch=4")
    data = yaml.safe_load(PLAN.read_text(encoding="utf-8"))
    for plan in (str(PLAN), PLAN, data):
        found = trainwright.estimate(plan, {"settings.micro_batch": 4})
        assert found.document == whole
    assert data == yaml.safe_load(PLAN.read_text(encoding="utf-8"))  # as it was given
    assert found.fits is whole["fits"]
    assert found.device_used_p95_bytes == whole["memory"]["device_used_p95_bytes"]
    assert found.step_seconds == whole["time"]["step_seconds"]
    assert list(found.interval90) == whole["time"]["interval90"]


def test_a_bad_plan_is_one_line():
    for changes, said in {
        ("settings.micro_batch", "four"): "settings.micro_batch: must be a whole number",
        ("settings.micro_bach", 4): "settings.micro_bach: ",
        ("a..b", 4): "a..b: this is not a key",
        ("settings", ("micro_batch",)): "settings: ",
        ("settings.micro_batch", PLAN): "settings.micro_batch: a value of type ",
        ("model.preset.x", 4): "model.preset.x: the plan has nothing",
    }.items():  # nobody typed --set
        with pytest.raises(api.UserError, match=f"^{re.escape(said)}"):
            api.estimate(PLAN, dict([changes]))
    with pytest.raises(api.UserError, match=r"for example settings\.micro_batch"):
        api.estimate(PLAN, {"settings": {"micro_batch": 2}})
    with pytest.raises(api.UserError, match=r"^A plan is a file's path or a mapping"):
        api.estimate(5)
    with pytest.raises(api.UserError, match=r"^Changes are a mapping"):
        api.estimate(PLAN, ["settings.micro_batch=4"])
    with pytest.raises(api.UserError, match="<plan>: model: is required"):
        api.estimate({"trainwright": 1})


def test_numbers_of_numpy_and_paths_are_plain_data_and_objects_are_refused_in_a_line():
    data = yaml.safe_load(PLAN.read_text(encoding="utf-8"))
    plain = trainwright.estimate(data, {"settings.micro_batch": 4})
    data["settings"] = dict(data.get("settings", {}), micro_batch=np.int64(4))
    assert trainwright.estimate(data).device_used_bytes == plain.device_used_bytes
    data["settings"]["micro_batch"] = object()
    with pytest.raises(api.UserError, match="of the type object"):
        trainwright.estimate(data)


def test_a_models_code_runs_only_where_the_caller_says_so(tmp_path):
    (tmp_path / "net.py").write_text("raise SystemExit\n")
    data = yaml.safe_load(PLAN.read_text(encoding="utf-8"))
    data["model"] = {"python": {"file": str(tmp_path / "net.py"), "factory": "build"}}
    with pytest.raises(api.UserError, match="pass allow_code=True"):
        api.estimate(data)


def test_neither_torch_nor_qt_nor_the_command_line_is_loaded():
    code = (
        "import sys, trainwright\n"
        f"trainwright.estimate({str(PLAN)!r})\n"
        "print([m for m in ('torch', 'PySide6', 'click', 'rich') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
