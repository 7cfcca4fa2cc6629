"""Whatever is wrong, a person gets one line that names what, where and what to do."""

import json
import math
import os
import subprocess
import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{key}: &{key} [{', '.join([f'*{last}'] * 9)}]\n"
    for last, key in zip("abcdefgh", "bcdefghi", strict=True)
)

WRONG_PLANS = {
    "wrong type": ("effective_batch: 64", "effective_batch: many", "workload.effective_batch"),
    "unknown key": ("task: lora", "task: lora\n  epoch: 3", "epochs"),
    "negative": ("effective_batch: 64", "effective_batch: -64", "workload.effective_batch"),
    "absurd": ("sequence_length: 2048", "sequence_length: 1e30", "workload.inputs.sequence_length"),
    "not a number": ("samples: 52000", "samples: .nan", "some.plan.yaml:8"),
    "infinite": ("epochs: 3", "epochs: .inf", "some.plan.yaml:9"),
    "unknown GPU": ("rtx-4090", "rtx-4909", "rtx-4090"),
    "unknown preset": ("llama-3.1-8b", "lama-3.1-8b", "llama-3.1-8b"),
    "newer schema": ("trainwright: 1", "trainwright: 99", "99"),
    "tag": (
        "name: llama-8b-lora",
        "name: !!python/object/apply:os.system [id]",
        "some.plan.yaml:2",
    ),
    "empty name": ("name: llama-8b-lora", 'name: ""', "some.plan.yaml:2: name: is empty"),
    "blank name": ("name: llama-8b-lora", 'name: " \u3000 "', "some.plan.yaml:2: name: is empty"),
    "no GPU": ("gpus: [{id: rtx-4090, count: 1}]", "gpus: []", "machine"),
}


@pytest.mark.parametrize(("old", "new", "named"), WRONG_PLANS.values(), ids=WRONG_PLANS)
def test_a_wrong_plan_is_refused_by_name(inside, plan_file, old, new, named):
    path = plan_file(replace=[(old, new)])
    assert named in inside("estimate", path, "--json").complaint


IMAGES = {
    "a window is not filled": ("swin-t", 230, "multiple of 32 from 32 on, such as 224, 256"),
    "a patch is not filled": ("vit-b16", 225, "multiple of 16 from 16 on, such as 224, 240"),
    "odd patches": ("vit-h14", 225, "multiple of 14 from 14 on, such as 224, 238"),
    "levels do not meet": ("yolox-s", 8, "multiple of 32 from 32 on, such as 32"),
    "smaller than the stride": ("efficientnet-b0", 8, "give 32 or more"),
    "fewer anchors than proposals": ("faster-rcnn-r50", 17, "give 128 or more"),
}


@pytest.mark.parametrize(("preset", "size", "advice"), IMAGES.values(), ids=IMAGES)
def test_an_image_that_the_model_cannot_take_is_refused_with_sizes_that_work(
    inside, tmp_path, preset, size, advice
):
    path = tmp_path / "some.plan.yaml"
    path.write_text(
        f"trainwright: 1\nname: t\nmodel: {{preset: {preset}}}\n"
        f"workload: {{task: full, effective_batch: 8, inputs: {{image_size: {size}}}}}\n"
        "machine: {gpus: [{id: rtx-4090}]}\n"
    )
    complaint = inside("estimate", path).complaint
    assert "workload.inputs.image_size" in complaint
    assert str(size) in complaint
    assert advice in complaint


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x00\x01\x02\xff\xfe binary junk" * 50,
        b"\xff\xd8\xff\xe0 a photograph",
        BOMB.encode(),
        ("[" * 5000).encode(),
        b"just a sentence",
        b"- a\n- list\n",
        b"{unclosed: [",
        b"trainwright: 1\n---\ntrainwright: 1\n",
        "이름: 한글만\n".encode(),
    ],
    ids=["empty", "binary", "jpeg", "bomb", "deep", "text", "list", "cut", "two", "hangul"],
)
def test_what_is_no_plan_is_refused(inside, plan_file, content):
    assert "some.plan.yaml" in inside("estimate", plan_file(content)).complaint


def test_a_huge_file_is_refused_without_reading_it(trainwright, tmp_path):
    path = tmp_path / "huge.plan.yaml"
    with path.open("wb") as file:
        file.truncate(100 * 1024 * 1024)
    assert "huge.plan.yaml" in trainwright("estimate", path).complaint


def test_a_missing_file_is_refused_by_name(trainwright, tmp_path):
    assert "nothing.plan.yaml" in trainwright("estimate", tmp_path / "nothing.plan.yaml").complaint


def test_a_file_name_cannot_break_the_line_or_the_terminal(inside, tmp_path):
    complaint = inside("estimate", tmp_path / "two\nlines \x1b[31m red.plan.yaml").complaint
    assert "\x1b" not in complaint


def test_junk_on_standard_input_is_refused(trainwright):
    assert trainwright("estimate", "-", "--json", stdin=b"\x00\xff" * 1000).complaint


def test_a_closed_standard_input_is_refused():
    script = f'"{sys.executable}" -m trainwright estimate - <&-'
    run = subprocess.run(script, shell=True, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (2, "", 1)


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is a device of Linux")
@pytest.mark.parametrize("arguments", ["doctor", "doctor --json", "catalog list", "--help"])
def test_a_full_disk_behind_standard_output_is_said(arguments):
    script = f'"{sys.executable}" -m trainwright {arguments} > /dev/full'
    run = subprocess.run(script, shell=True, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)
    assert "space" in run.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is a device of Linux")
@pytest.mark.parametrize("errors", ["2> /dev/full", "2>&-"])
def test_bad_input_ends_with_the_same_code_where_nobody_can_be_told(errors):
    script = f'"{sys.executable}" -m trainwright estimate no-such.plan.yaml {errors}'
    assert subprocess.run(script, shell=True, check=False).returncode == 2


def test_a_closed_standard_output_is_said():
    script = f'"{sys.executable}" -m trainwright doctor >&-'
    run = subprocess.run(script, shell=True, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr.count("\n")) == (2, 1)


def test_a_reader_that_leaves_is_no_error():
    writer = subprocess.Popen(
        [sys.executable, "-m", "trainwright", "catalog", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    writer.stdout.close()
    complaint = writer.stderr.read()
    writer.stderr.close()
    assert (writer.wait(timeout=60), complaint) == (141, b"")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["estimat", "x"], "estimate"),
        (["estimate"], "PLAN"),
        (["estimate", "--jsn"], "--json"),
        (["estimate", "x.yaml", "--set", "settings.micro_batch"], "--set"),
        (["estimate", "x.yaml", "--frobnicate"], "--frobnicate"),
        (["catalog", "sho"], "show"),
        (["catalog", "list", "--vendor", "Matrox"], "NVIDIA"),
        (["catalog", "show", "rtx-4909"], "rtx-4090"),
        (["catalog", "show", "corsair hx1500"], "corsair-hx1500i-2025"),
        (["catalog", "show", "rtx-4090", "--kind", "psu"], "power supply"),
        (["catalog", "list", "psu", "--filter", "wats>=3"], "watts"),
        (["catalog", "list", "psu", "--filter", "watts"], "watts>=850"),
        (["catalog", "list", "psu", "--sort", "colour"], "efficiency"),
        (["catalog", "list", "psu", "--vendor", "amd"], "--filter"),
        (["--lang", "xx", "doctor"], "ko"),
        (["export", "x.yaml", "--out", "y"], "--to"),
        (["profile", "no-such-model"], "no-such-model"),
        (["frobnicate"], "estimate"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_a_wrong_command_line_is_refused_with_a_remedy(inside, plan_file, arguments, named):
    if "x.yaml" in arguments:
        arguments = [str(plan_file()) if each == "x.yaml" else each for each in arguments]
    assert named in inside(*arguments).complaint


def test_refusals_speak_korean(inside, plan_file):
    path = plan_file(replace=[("rtx-4090", "rtx-4909")])
    before = inside("--lang", "ko", "estimate", path).complaint
    after = inside("estimate", path, "--lang=ko").complaint
    assert before == after
    assert any("가" <= character <= "힣" for character in before)


def test_overrides_are_named_in_a_refusal(inside, plan_file):
    complaint = inside("estimate", plan_file(), "--set", "settings.micro_batch=-1").complaint
    assert "settings.micro_batch" in complaint
    assert "--set" in complaint


def test_an_override_cannot_take_the_name_away(inside, plan_file):
    complaint = inside("estimate", plan_file(), "--set", "name=' '").complaint
    assert "--set name=' ': name: is empty" in complaint


def test_a_python_model_needs_consent(inside, plan_file):
    model = "{python: {file: net.py, factory: build}}"
    path = plan_file(replace=[("{preset: llama-3.1-8b}", model)])
    path.with_name("net.py").touch()
    complaint = inside("estimate", path).complaint
    assert "Python file" in complaint
    assert "net.py" in complaint
    assert "--allow-code" in complaint
    path.with_name("net.pt2").touch()
    complaint = inside("estimate", plan_file(replace=[("preset: llama-3.1-8b", "pt2: net.pt2")]))
    assert "exported program" in complaint.complaint
    assert "--allow-code" in complaint.complaint


@pytest.mark.skipif(sys.platform == "win32", reason="Unix has these")
@pytest.mark.timeout(20)
@pytest.mark.parametrize("model", ["pt2: {}", "python: {{file: {}, factory: build}}"])
@pytest.mark.parametrize("consent", [(), ("--allow-code",)])
def test_what_is_not_a_file_of_code_is_refused_before_any_question_of_trust(
    inside, plan_file, tmp_path, model, consent
):
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / "folder.pt2").mkdir()
    places = {
        tmp_path / "absent.py": "no such file",
        tmp_path / "pipe.py": "a pipe or a device",
        tmp_path / "folder.pt2": "is a folder",
        "/dev/null": "a pipe or a device",
    }
    for place, said in places.items():
        path = plan_file(replace=[("preset: llama-3.1-8b", model.format(place))])
        complaint = inside("estimate", path, *consent).complaint
        assert said in complaint
        assert str(place) in complaint


def test_a_fault_of_ours_leaves_a_crash_file_and_no_traceback(inside, monkeypatch, tmp_path):
    from trainwright import crashes
    from trainwright.cli import doctor

    def fail():
        raise RuntimeError("the sky fell")

    monkeypatch.setattr(doctor, "CHECKS", (fail,))
    monkeypatch.setattr(crashes, "folder", lambda: tmp_path / "crashes")
    complaint = inside("doctor").complaint
    (file,) = (tmp_path / "crashes").iterdir()
    assert str(file) in complaint
    assert "the sky fell" in file.read_text(encoding="utf-8")


def test_a_crash_file_holds_nothing_of_the_person(monkeypatch, tmp_path):
    from trainwright import crashes

    mark = "Zq7Marker"
    monkeypatch.setattr(crashes, "folder", lambda: tmp_path)
    monkeypatch.setenv("HOME", f"/srv/{mark}")
    monkeypatch.setenv("HF_TOKEN", f"hf-{mark}")
    words = ["estimate", f"/srv/{mark}/a.plan.yaml", "--set", f"workload.token={mark}"]
    monkeypatch.setattr(sys, "argv", ["trainwright", *words])
    try:
        raise RuntimeError(f"/srv/{mark}/a.plan.yaml: hf-{mark}, {words}")
    except RuntimeError as error:
        path = crashes.record(error)
    text = path.read_text(encoding="utf-8")
    assert mark not in text
    assert "command: estimate … --set …\n" in text
    assert "RuntimeError: ~/…" in text
    assert "test_refusals.py" in text


def test_a_fault_of_ours_shows_its_traceback_when_asked(inside, monkeypatch):
    from trainwright.cli import doctor

    def fail():
        raise RuntimeError("the sky fell")

    monkeypatch.setattr(doctor, "CHECKS", (fail,))
    monkeypatch.setenv("TRAINWRIGHT_DEBUG", "1")
    with pytest.raises(RuntimeError, match="the sky fell"):
        inside("doctor")


def test_ctrl_c_ends_with_one_line(inside, monkeypatch):
    from trainwright.cli import doctor

    def interrupt():
        raise KeyboardInterrupt

    monkeypatch.setattr(doctor, "CHECKS", (interrupt,))
    outcome = inside("doctor", "--json")
    assert (outcome.code, outcome.out, outcome.err.count("\n")) == (130, "", 1)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=12), min_size=1, max_size=5))
def test_no_arguments_break_the_parser(inside, arguments):
    if any(each.startswith("-h") for each in arguments):
        return
    outcome = inside("estimate", *arguments)
    assert outcome.code in (0, 1, 2)
    assert "inside Trainwright" not in outcome.err


def test_json_has_no_infinities(inside):
    def refuse(name):
        raise AssertionError(name)

    document = json.loads(inside("catalog", "list", "--json").out, parse_constant=refuse)
    assert all(math.isfinite(gpu["memory_bytes"]["value"]) for gpu in document["gpus"])


COMPLAINTS = {
    ("profile", "nonesuch"): "there is no preset “nonesuch”; choose one of resnet18, ",
    ("--set", "model.preset=nonesuch"): "model.preset: there is no preset “nonesuch”; choose",
    ("--set", "model.preset=resnet81"): "model.preset: there is no preset “resnet81”; nearest: ",
    ("--set", "workload.epochs=.nan"): "--set workload.epochs=.nan: workload.epochs: .nan is not",
    ("--set", "model={timm: none, timm: x}"): "--set model={timm: none, timm: x}: ",
}


@pytest.mark.parametrize("words", COMPLAINTS, ids=" ".join)
def test_a_complaint_names_the_key_once_and_the_remedy(inside, plan_file, words):
    arguments = words if words[0] == "profile" else ("estimate", plan_file(), *words)
    complaint = inside(*arguments).complaint
    assert COMPLAINTS[words] in complaint
    assert complaint.count("model.preset") <= 1 + ("--set model.preset" in complaint)


@pytest.mark.parametrize("words", [("estimate", "a", "b"), ("advise", "a", "--top")], ids=" ".join)
def test_a_line_that_cannot_be_read_is_refused_in_the_readers_language(inside, words):
    english = inside(*words).complaint
    korean = inside("--lang", "ko", *words).complaint
    assert english.isascii()
    assert words[-1] in english
    assert words[-1] in korean
    assert not any(word in korean for word in ("argument", "unexpected", "requires"))


@pytest.mark.parametrize("words", [("export", "--to", "plain", "--out", ""), ("advise", "-o", "")])
def test_an_empty_name_is_not_the_current_folder(inside, plan_file, words):
    command, *options = words
    assert "the name is empty" in inside(command, plan_file(), *options).complaint


def test_an_empty_model_is_not_the_current_folder(inside):
    for empty in ("", " "):
        assert "MODEL: the name is empty" in inside("profile", empty).complaint
