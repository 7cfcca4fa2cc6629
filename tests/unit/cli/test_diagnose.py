"""``trainwright diagnose``: from records, errors, commands and live readings of many computers."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from trainwright.diagnose.outofmemory import explain
from trainwright.messages import render

SLOW_LOADER = {
    "trainwright_record": 1,
    "steps": {"steps": 50, "seconds": 0.31, "data_wait": 0.2, "compute": 0.1},
    "loading": {"cpu_share": 0.05},
    "setup": {"device": "cuda", "num_workers": 0, "batch": 32},
}
ERROR = (
    "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 3.00 GiB. GPU 0 has a "
    "total capacty of 23.65 GiB of which 1.66 GiB is free. Including non-PyTorch memory, this "
    "process has 20.81 GiB memory in use. Of the allocated memory 12.09 GiB is allocated by "
    "PyTorch, and 4.84 GiB is reserved by PyTorch but unallocated."
)


@pytest.fixture
def slow_loader(tmp_path):
    path = tmp_path / "run.record.json"
    path.write_text(json.dumps(SLOW_LOADER), encoding="utf-8")
    return path


def test_a_record_gets_its_verdict(inside, slow_loader):
    outcome = inside("diagnose", "--record", slow_loader)
    assert outcome.code == 0
    assert "Input pipeline: high confidence" in outcome.out
    assert "--set settings.loader.num_workers=4" in outcome.out
    assert "torch-tb-profiler" in outcome.out
    assert "earlier first verdicts of high confidence were right" in outcome.out


def test_the_verdict_speaks_korean(inside, slow_loader):
    out = inside("diagnose", "--record", slow_loader, "--lang", "ko").out
    assert "입력 파이프라인: 확신 높음" in out
    assert "diagnose." not in out


def test_json_is_one_object_with_the_evidence(inside, slow_loader):
    outcome = inside("diagnose", "--record", slow_loader, "--json")
    document = json.loads(outcome.out)
    verdict = document["verdict"]
    assert (verdict["cause"], verdict["variant"]) == ("input", "fetch")
    assert verdict["gain_at_most"] == pytest.approx(0.2 / 0.31)
    assert verdict["fixes"][0]["set"]["settings.loader.num_workers"] == 4
    assert {signal["reading"] for signal in verdict["signals"]} >= {"steps.data_wait"}
    assert document["evidence"] == SLOW_LOADER


def test_an_empty_record_is_unknown_and_says_no(inside, tmp_path):
    path = tmp_path / "empty.json"
    path.write_text('{"trainwright_record": 1}', encoding="utf-8")
    outcome = inside("diagnose", "--record", path, "--json")
    assert outcome.code == 1
    assert json.loads(outcome.out)["verdict"]["cause"] == "unknown"


def test_a_pasted_error_is_explained(trainwright):
    outcome = trainwright("diagnose", "--traceback", "-", "--json", stdin=ERROR.encode())
    assert outcome.code == 0
    document = json.loads(outcome.out)
    assert document["kind"] == "fragmentation"
    assert document["account"]["asked_bytes"] == 3 << 30
    assert document["fixes"][0]["set"] == {"settings.allocator": "expandable"}


def test_advice_in_korean_loses_no_word_at_the_end_of_a_line(inside, tmp_path):
    path = tmp_path / "log"
    path.write_text("RuntimeError: CUDA error: device-side assert triggered", encoding="utf-8")
    shown = inside("--lang", "ko", "diagnose", "--traceback", path).out
    fix = explain(path.read_text()).fixes[0].says
    assert "".join(render(fix, "ko").split()) in "".join(shown.split())


def test_text_without_an_error_says_no(inside, tmp_path):
    path = tmp_path / "log"
    path.write_text("all went well", encoding="utf-8")
    assert inside("diagnose", "--traceback", path).code == 1


@pytest.mark.parametrize(
    "content", [bytes(range(256)) * 99, b"\x7fELF" + bytes(4096), b"\x89PNG\r\n\xd4"]
)
def test_a_file_that_holds_no_text_is_refused_in_a_line(inside, tmp_path, content):
    path = tmp_path / "model.bin"
    path.write_bytes(content)
    assert "model.bin: this is not text" in inside("diagnose", "--traceback", path).complaint


VISION = """trainwright: 1
name: vision
model: {preset: resnet50}
workload: {task: full, inputs: {image_size: 224}, effective_batch: 256}
machine: {gpus: [{id: rtx-3090}]}
settings: {precision: fp16-mixed, micro_batch: 128, checkpointing: full, allocator: expandable}
"""


def test_an_error_with_a_plan_gets_what_is_enough_and_not_in_place(inside, tmp_path, plan_file):
    path = tmp_path / "log"
    path.write_text(ERROR, encoding="utf-8")
    outcome = inside("diagnose", "--traceback", path, "--plan", plan_file(VISION), "--json")
    assert outcome.code == 0
    document = json.loads(outcome.out)
    assert not document["fixes"]  # the plan's segments are expandable already
    assert document["remedies"]
    for one in document["remedies"]:
        assert one["saves_bytes"] >= document["missing_bytes"]
        assert "settings.allocator" not in one["set"]
    shown = inside("diagnose", "--traceback", path, "--plan", plan_file(VISION)).out
    said = " ".join(shown.split())
    assert "lowers the peak by" in said
    assert "--set settings.micro_batch=" in said


def test_a_measured_step_stands_next_to_what_a_plan_predicts(inside, plan_file, slow_loader):
    plan = plan_file(VISION)
    predicted = json.loads(inside("estimate", plan, "--json").out)["time"]["step_seconds"]
    outcome = inside("diagnose", slow_loader, "--plan", plan, "--json")
    found = json.loads(outcome.out)["predicted"]
    parts = {each.pop("part"): each for each in found["parts"]}
    assert parts["step"]["predicted_seconds"] == pytest.approx(predicted)
    assert parts["step"]["times"] == pytest.approx(0.31 / predicted)
    assert parts["input"]["measured_seconds"] == pytest.approx(0.2)
    assert any("32 samples a batch" in note for note in found["notes"])
    said = inside("diagnose", "--record", slow_loader, "--plan", plan, "--lang", "ko").out
    assert "계획의 예측값" in said
    assert "diagnose." not in said


def test_a_trace_of_a_gpu_tells_kernels_from_the_wait_for_their_launches(
    inside, plan_file, tmp_path
):
    def event(category, name, start, lasts):
        return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 1, "ts": start,
                "dur": lasts}  # fmt: skip

    events = [
        each
        for at in range(0, 500_000, 100_000)
        for each in (
            event("user_annotation", f"ProfilerStep#{at // 100_000}", at, 100_000),
            event("cpu_op", "aten::mm", at, 100_000),
            event("kernel", "ampere_sgemm_128x64_nn", at + 1_000, 60_000),
        )
    ]
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": events}), encoding="utf-8")
    outcome = inside("diagnose", path, "--plan", plan_file(VISION), "--json")
    parts = {each["part"]: each for each in json.loads(outcome.out)["predicted"]["parts"]}
    assert parts["kernels"]["measured_seconds"] == pytest.approx(0.06)
    assert parts["launch"]["measured_seconds"] == pytest.approx(0.04)
    assert 0 < parts["kernels"]["predicted_seconds"] <= parts["step"]["predicted_seconds"]


def test_an_error_without_a_plan_names_the_facts_that_are_needed(inside, tmp_path):
    path = tmp_path / "log"
    path.write_text("RuntimeError: CUDA error: out of memory", encoding="utf-8")
    out = inside("diagnose", "--traceback", path).out
    assert "Facts that are needed" in out
    assert "--plan PLAN" in out
    assert "Halve" not in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--record", "absent.json"], "no such file"),
        (["--traceback", "absent.log"], "no such file"),
        (["--record", "."], "folder"),
        (["--pid", "4194303"], "no such process"),
        (["--pid", "0"], "--pid"),
        (["--seconds", "-1"], "seconds"),
        (["--pid", "1", "--traceback", "x"], "exclude"),
        (["--plan", "x"], "--traceback"),
        (["--try"], "after --"),
        (["--traceback", "x", "--record", "y"], "explains a text alone"),
        (["--traceback", "x", "--seconds", "3"], "explains a text alone"),
        (["--record", "x", "--seconds", "3"], "needs no time"),
        (["--", "no-such-command-here"], "no such command"),
    ],
)
def test_bad_input_is_refused_in_a_line(inside, tmp_path, monkeypatch, arguments, says):
    monkeypatch.chdir(tmp_path)
    assert says in inside("diagnose", *arguments).complaint


def test_what_a_command_prints_stays_out_of_the_json(trainwright):
    outcome = trainwright("diagnose", "--json", "--", sys.executable, "-S", "-c", "print('mine')")
    assert json.loads(outcome.out)["command"] == {"exit": 0}
    assert "mine" in outcome.err


def test_what_a_command_prints_stays_where_it_prints_it_without_json():
    words = ["diagnose", "--", sys.executable, "-c", "print('loss 0.5')", "--json"]
    run = subprocess.run(
        [sys.executable, "-m", "trainwright", *words], capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert "loss 0.5" in run.stdout


def test_a_failing_command_is_told_with_its_code(trainwright):
    outcome = trainwright("diagnose", "--", sys.executable, "-S", "-c", "raise SystemExit(7)")
    assert outcome.code == 1
    assert "code 7" in outcome.out


def live(stub: Any, scenario: str) -> dict[str, Any]:
    """Watch this very process for a second on one of the stub's computers."""
    run = subprocess.run(
        [sys.executable, "-m", "trainwright", "diagnose", "--json", "--seconds", "1",
         "--pid", str(os.getpid())],
        env=stub.environment(scenario), capture_output=True, text=True, timeout=90, check=False,
    )  # fmt: skip
    assert run.returncode in (0, 1), run.stderr
    assert run.stderr == ""
    document: dict[str, Any] = json.loads(run.stdout)
    assert document["evidence"]["host"]
    return document


def test_a_gpu_that_is_too_hot_is_named(nvml_stub):
    document = live(nvml_stub, "throttled")
    verdict = document["verdict"]
    assert (verdict["cause"], verdict["variant"]) == ("scheduling", "heat")
    assert {"gpus.throttled", "gpus.temperature_c"} <= {s["reading"] for s in verdict["signals"]}


def test_a_power_limit_that_somebody_lowered_is_named(nvml_stub):
    document = live(nvml_stub, "low-power")
    verdict = document["verdict"]
    assert (verdict["cause"], verdict["variant"]) == ("scheduling", "power")
    (card,) = document["evidence"]["gpus"]
    assert card["power_limit_w"] == card["power_limit_default_w"] / 2


def test_a_driver_that_crashes_is_a_reason_and_the_computer_is_still_seen(nvml_stub):
    evidence = live(nvml_stub, "crash-init")["evidence"]
    assert evidence["unavailable"]["gpus"] == "probe.driver-crashed"


@pytest.mark.slow
@pytest.mark.parametrize(
    "scenario",
    ["not-loaded", "updated", "no-permission", "none", "hang", "lost", "lost-midway", "wsl", "mig",
     "mig-container", "laptop", "garbage", "old-driver", "silent", "unified", "crash", "chatty"],
)  # fmt: skip
def test_no_computer_makes_it_sure_of_what_it_cannot_see(nvml_stub, scenario):
    verdict = live(nvml_stub, scenario)["verdict"]
    busy = verdict["variant"] == "other-programs-cpu"  # the computer that the tests run on
    assert verdict["confidence"] != "high" or busy


def test_what_nothing_was_seen_of_is_not_called_innocent(inside, tmp_path, slow_loader):
    path = tmp_path / "empty.json"
    path.write_text('{"trainwright_record": 1}', encoding="utf-8")
    told = inside("diagnose", "--record", path).out
    assert "Not the cause" not in told
    assert "No sign, or too little of one" in told
    assert "Could not be seen" in told  # the verdict points there
    denied = inside("diagnose", "--record", slow_loader).out.partition("Not the cause")[2]
    assert "waiting for the next batch, of the step: 65 %" in denied.partition("No sign")[0]


@pytest.mark.parametrize(
    ("script", "options", "says"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", (), "ended by signal 9"),
        ("import time; time.sleep(60)", ("--seconds", "0.5"), "The command was ended here"),
    ],
)
def test_a_command_that_was_ended_is_told_how(inside, script, options, says):
    told = inside("diagnose", *options, "--", sys.executable, "-c", script).out
    assert says in told
    assert "code -" not in told


FAILING = """
import os, sys
open("ready", "w").close()
raise OSError(f"{sys.argv[1:]} {os.environ['HF_TOKEN']} {os.environ['TEAM']} {os.environ['HOME']}")
"""


def test_a_record_holds_nothing_of_the_command_or_the_person_and_says_what_it_holds(tmp_path):
    """A run that fails with its arguments, its environment and its home folder in the error."""
    mark = "Zq7Marker"
    home = tmp_path / mark
    home.mkdir()
    script = home / "train.py"
    script.write_text(FAILING, encoding="utf-8")
    record = tmp_path / "run.record.json"
    words = [sys.executable, str(script), "--lr", f"0.1{mark}", f"--hf-token={mark}", mark]
    run = subprocess.run(
        [sys.executable, "-m", "trainwright", "diagnose", "--json", "--record", str(record), "--",
         *words],
        env=os.environ | {"HOME": str(home), "HF_TOKEN": f"x{mark}", "TEAM": f"of {mark}"},
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (tmp_path / "ready").exists()
    written = record.read_bytes().decode()
    evidence = json.loads(written)
    assert mark not in written
    assert evidence["failure"]["kind"] == "OSError"
    assert evidence["command"].endswith("… --lr … --hf-token=… …")
    assert mark not in run.stdout
    listed = run.stderr.partition("run.record.json will hold:")[2]
    assert all(word in listed for word in ("its options, without their values", "the error:"))
    assert "It never holds the environment" in listed
    json.loads(run.stdout)


def test_a_record_that_cannot_be_written_is_refused_before_the_run(inside, tmp_path):
    begun = tmp_path / "begun"
    script = f"open({str(begun)!r}, 'w').close()"
    record = tmp_path / "absent" / "run.record.json"
    outcome = inside("diagnose", "--record", record, "--", sys.executable, "-c", script)
    assert "cannot be written" in outcome.complaint
    assert not begun.exists()


def test_a_record_that_fails_at_the_end_costs_no_verdict(inside, tmp_path):
    folder = tmp_path / "records"
    folder.mkdir()
    script = f"import shutil; shutil.rmtree({str(folder)!r})"
    outcome = inside(
        "diagnose", "--record", folder / "run.json", "--", sys.executable, "-c", script
    )
    assert str(folder) in outcome.err
    assert "The command ended with code 0." in outcome.out
