"""Estimate, advise, export and profile, on a small preset whose profile ships."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

PLAN = """\
trainwright: 1
name: small
model: {preset: resnet18}
workload: {task: full, effective_batch: 64, inputs: {image_size: 224}}
machine: {gpus: [{id: rtx-3060-12gb, count: 1}]}
settings: {precision: bf16-mixed, micro_batch: 32}
"""
HUGE = ("--set", "settings.micro_batch=4096", "--set", "workload.effective_batch=4096")


@pytest.fixture
def small(plan_file):
    return plan_file(PLAN, name="small.plan.yaml")


def test_prices_of_several_pieces_say_so_and_add_up_to_the_total(inside, tmp_path):
    path = tmp_path / "two.plan.yaml"
    path.write_text(
        "trainwright: 1\nmodel: {preset: resnet50}\nmachine: {gpus: [{id: rtx-3090}]}\n"
        "workload: {task: pretrain, effective_batch: 256, samples: 100000}\n",
        encoding="utf-8",
    )
    said = inside("build", path, "--budget", "3000USD", "--used", "--gpus", "2", "--top", "1").out
    total = int(re.search(r"Together: \$([\d,]+)", said)[1].replace(",", ""))
    rows = re.findall(r"  (\d+) +\$([\d,]+)( each)? ", said)
    assert [count for count, _, each in rows if each] == [n for n, _, _ in rows if n != "1"] != []
    assert abs(sum(int(n) * int(price.replace(",", "")) for n, price, _ in rows) - total) <= len(
        rows
    )


def test_estimate_keeps_its_contract(trainwright, small):
    outcome = trainwright("estimate", small, "--json")
    assert (outcome.code, outcome.err, outcome.out.count("\n")) == (0, "", 1)
    report = json.loads(outcome.out)
    assert report["fits"] is True
    memory, time = report["memory"], report["time"]
    assert sum(term["bytes"] for term in memory["terms"]) == memory["allocated_peak_bytes"]
    used = (
        memory["allocated_peak_bytes"],
        memory["reserved_peak_bytes"],
        memory["device_used_bytes"],
        memory["device_used_p95_bytes"],
        memory["device_total_bytes"],
    )
    assert list(used) == sorted(used)
    low, high = time["interval90"]
    assert low < time["samples_per_second"] < high
    assert time["step_seconds"] == pytest.approx(64 / time["samples_per_second"])
    assert time["bottleneck"] in {
        "gpu", "launch", "storage", "decode", "transfer", "communication",
    }  # fmt: skip


def test_several_gpus_show_what_each_adds(inside, trainwright, small, plan_file):
    text = PLAN.replace("count: 1", "count: 4").replace("micro_batch: 32", "micro_batch: 16")
    several = plan_file(text, name="four.plan.yaml")
    shown = inside("estimate", several).out
    assert "Efficiency" in shown
    assert "4 GPUs are" in shown
    points = json.loads(trainwright("estimate", several, "--json").out)["time"]["scaling"]
    assert [point["gpus"] for point in points] == [1, 2, 3, 4]
    assert {"gpus", "samples_per_second", "efficiency"} <= points[0].keys()
    assert points[0]["efficiency"] == 1
    # One GPU: no table, but a sentence about a second one.
    shown = inside("estimate", small).out
    assert "Efficiency" not in shown
    assert "A second GeForce RTX 3060" in shown


def test_figures_and_settings_are_those_of_the_task(inside, small, plan_file):
    serving = plan_file(
        """\
trainwright: 1
model: {preset: gpt2}
workload: {task: infer, inputs: {prompt_tokens: 64, new_tokens: 8, concurrent: 2}}
machine: {gpus: [{id: rtx-3060-12gb}]}
""",
        name="serving.plan.yaml",
    )
    shown = inside("estimate", serving).out
    assert "Generated tokens per second" in shown
    assert "One round of requests" in shown
    of_training = ("optimizer", "checkpointing", "accumulation", "num_workers")
    assert not [name for name in of_training if name in shown]
    assert "kv_cache" in shown
    shown = inside("estimate", small).out
    assert "kv_cache" not in shown
    assert not [name for name in of_training if name not in shown]


def test_what_does_not_fit_exits_1_and_still_answers(inside, small):
    outcome = inside("estimate", small, *HUGE, "--json")
    assert (outcome.code, outcome.err) == (1, "")
    assert json.loads(outcome.out)["fits"] is False


def test_a_plan_comes_from_standard_input_too(trainwright, small):
    piped = trainwright("estimate", "-", "--json", stdin=small.read_bytes())
    assert json.loads(piped.out) == json.loads(trainwright("estimate", small, "--json").out)


def test_a_path_with_spaces_and_hangul_works(trainwright, plan_file, tmp_path):
    folder = tmp_path / "내 계획 모음"
    folder.mkdir()
    path = folder / "작은 모델.plan.yaml"
    path.write_text(PLAN, encoding="utf-8")
    assert trainwright("estimate", path, "--json").code == 0
    out = folder / "내보낸 파일"
    assert trainwright("export", path, "--to", "plain", "--out", out).code == 0
    assert (out / "train.py").is_file()


def test_overrides_change_the_answer(inside, small):
    def peak(*overrides):
        outcome = inside("estimate", small, "--json", *overrides)
        return json.loads(outcome.out)["memory"]["allocated_peak_bytes"]

    assert peak("--set", "settings.micro_batch=64") > 1.5 * peak()


@pytest.mark.parametrize(
    ("spoken", "words"),
    [("en", ("Fits", "GiB", "Limited by")), ("ko", ("들어갑니다", "GiB", "병목"))],
)
def test_people_read_the_verdict_in_their_language(inside, small, spoken, words):
    printed = inside("--lang", spoken, "estimate", small).out
    assert all(word in printed for word in words)
    assert "~" in printed


def test_explain_opens_the_derivation(inside, small):
    brief, opened = inside("estimate", small).out, inside("estimate", small, "--explain").out
    assert opened.count("\n") > brief.count("\n") + 10


def test_advise_ranks_and_says_why(inside, small):
    advice = json.loads(inside("advise", small, "--top", "3", "--json").out)
    assert 1 <= len(advice["choices"]) <= 3
    speeds = [each["estimate"]["time"]["samples_per_second"] for each in advice["choices"]]
    assert speeds == sorted(speeds, reverse=True)
    assert all(each["estimate"]["fits"] for each in advice["choices"])
    best = advice["choices"][0]
    assert best["settings"]["micro_batch"] == 32, "a fixed setting stays"
    assert best["reasons"]
    assert all(reason["because"] and reason["source"] for reason in best["reasons"])


def test_advise_saves_the_first_choice_as_a_plan(inside, small, tmp_path):
    better = tmp_path / "better.plan.yaml"
    choice = json.loads(inside("advise", small, "-o", better, "--json").out)["choices"][0]
    report = json.loads(inside("estimate", better, "--json").out)
    assert report["settings"] == choice["settings"]
    assert report["memory"] == choice["estimate"]["memory"]


def test_advise_says_what_would_help_when_nothing_fits(inside, small):
    outcome = inside("advise", small, *HUGE, "--json")
    advice = json.loads(outcome.out)
    assert (outcome.code, advice["choices"]) == (1, [])
    assert advice["nothing_fits"]
    assert "fits" in inside("advise", small, *HUGE).out


def test_advise_refuses_fewer_samples_than_gpus_as_the_estimate_does(inside, small):
    many = ("--set", "machine.gpus[0].count=11", "--set", "settings.micro_batch=null")
    many += ("--set", "machine.nodes=3", "--set", "machine.network={kind: ethernet-25g}")
    few = ("--set", "workload.effective_batch=16")
    estimate, advice = (inside(command, small, *many, *few) for command in ("estimate", "advise"))
    assert advice.code == estimate.code == 2
    assert "16 does not divide over 33 GPUs" in advice.err


def test_advise_says_that_pytorch_does_not_run_there(inside, small):
    outcome = inside("advise", small, "--set", "machine.system=macos")
    assert outcome.code == 1
    assert "no CUDA for GeForce RTX 3060" in outcome.out


def test_ways_out_of_a_served_model_speak_of_requests(inside, small):
    serve = ("--set", "model.preset=llama-3.1-8b", "--set", "workload={task: infer, inputs: "
             "{prompt_tokens: 512, new_tokens: 128}}", "--set", "settings={}")  # fmt: skip
    out = inside("advise", small, *serve, "--set", "machine.gpus[0].id=rtx-3070").out
    assert "requests/s" in out
    assert "answers differently" in out
    assert "samples/s" not in out
    assert "trains differently" not in out


@pytest.mark.parametrize("target", ["plain", "transformers"])
def test_export_writes_programs_that_compile(inside, plan_file, tmp_path, target):
    out = tmp_path / target
    outcome = inside("export", plan_file(), "--to", target, "--out", out, "--json")
    written = json.loads(outcome.out)["files"]
    programs = [out / name for name in written if name.endswith(".py")]
    assert programs
    run = [sys.executable, "-m", "py_compile", *map(str, programs)]
    assert subprocess.run(run, check=False).returncode == 0


def test_export_overwrites_only_when_told_to(inside, small, tmp_path):
    out = tmp_path / "out"
    assert inside("export", small, "--to", "plain", "--out", out).code == 0
    (out / "train.py").write_text("mine", encoding="utf-8")
    assert "train.py" in inside("export", small, "--to", "plain", "--out", out).complaint
    assert (out / "train.py").read_text(encoding="utf-8") == "mine"
    assert inside("export", small, "--to", "plain", "--out", out, "--overwrite").code == 0
    assert (out / "train.py").read_text(encoding="utf-8") != "mine"


def test_advised_export_carries_the_reasons(inside, small, tmp_path):
    assert inside("export", small, "--to", "plain", "--out", tmp_path / "a").code == 0
    advised = inside("export", small, "--advised", "--to", "plain", "--out", tmp_path / "b")
    assert advised.code == 0
    head = (tmp_path / "b" / "train.py").read_text(encoding="utf-8")
    because = json.loads(inside("advise", small, "--json").out)["choices"][0]["reasons"][0][
        "because"
    ]
    assert " ".join(because.split()[:3]) in head


def test_profile_of_a_preset_is_found_and_saved(inside, tmp_path):
    out = tmp_path / "resnet.profile"
    outcome = inside("profile", "resnet18", "-o", out, "--json")
    document = json.loads(outcome.out)
    assert outcome.code == 0
    assert document["exact"] is True
    assert document["structure"]["parameters"] == 11_689_512, "as published"
    assert out.stat().st_size > 1000


def test_profile_that_cannot_be_saved_is_refused(inside, tmp_path):
    complaint = inside("profile", "resnet18", "-o", tmp_path / "no" / "folder" / "x").complaint
    assert "folder" in complaint


@pytest.mark.slow
def test_profile_of_a_config_is_traced_and_kept(trainwright, tmp_path):
    config = tmp_path / "config.json"
    config.write_text(json.dumps(TINY_GPT2), encoding="utf-8")
    first = json.loads(trainwright("profile", config, "--json").out)
    assert first["exact"] is True
    assert json.loads(trainwright("profile", config, "--json").out) == first


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="finds children by /proc")
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_trace_leaves_nothing_running(tmp_path, sent):
    config = tmp_path / "config.json"
    config.write_text(json.dumps(TINY_GPT2 | {"n_layer": 48}), encoding="utf-8")
    process = subprocess.Popen(
        [sys.executable, "-m", "trainwright", "profile", str(config)],
        # Children get a folder in it, their mark; what is cached would not be traced again.
        env=os.environ | {"TMPDIR": str(tmp_path), "TRAINWRIGHT_CACHE": str(tmp_path / "cache")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    deadline = time.monotonic() + 60
    while len(running(tmp_path)) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert len(running(tmp_path)) >= 2, "the trace never began"
    process.send_signal(sent)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err.count(b"\n")) == (130, b"", 1)
    assert running(tmp_path) == []


def running(mark):
    """Return the processes whose folder for temporary files is the mark, or lies in it."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            entries = (folder / "environ").read_bytes().split(b"\0")
            if any(entry.startswith(f"TMPDIR={mark}".encode()) for entry in entries):
                found.append(folder.name)
    return found


TINY_GPT2 = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "n_embd": 64,
    "n_head": 2,
    "n_layer": 2,
    "n_positions": 512,
    "vocab_size": 256,
}


@pytest.mark.parametrize("options", [("gpt2", "--task", "infer"), ("resnet18",)])
def test_a_profile_of_any_task_is_shown(inside, options):
    outcome = inside("profile", *options, "--json")
    assert (outcome.code, outcome.err) == (0, "")
    expected = {"prefill", "decode"} if "infer" in options else {"micro"}
    assert expected <= json.loads(outcome.out)["events"].keys()


@pytest.mark.parametrize(
    ("page", "heading"),
    [
        ("README.md", "The same on the command line:"),
        ("docs/command-line.md", "## Plan, tune, export"),
        ("docs/command-line.md", "## Buy or upgrade"),
    ],
)
def test_the_commands_of_the_manual_work(inside, tmp_path, monkeypatch, page, heading):
    """From each line of the first block below a heading to the next, in one folder."""
    root = Path(__file__).parents[3]
    text = (root / page).read_text(encoding="utf-8").partition(heading)[2].partition("```sh")[2]
    lines = text.partition("```")[0].strip().splitlines()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "resources").symlink_to(root / "resources")
    assert len(lines) >= 4
    for line in lines:
        program, *arguments = shlex.split(line)
        assert program == "trainwright"
        outcome = inside(*arguments)
        # Only estimate may say no.
        assert outcome.code in ((0, 1) if arguments[0] == "estimate" else (0,)), outcome.err


def test_thousands_look_alike_in_every_command(inside, small):
    for words in (("catalog", "list", "4090"), ("catalog", "show", "4090"), ("estimate", small)):
        printed = inside(*words).out
        assert re.search(r"\d,\d{3}", printed)
        assert not re.search(r"\d\u202f\d{3}", printed)


def test_estimate_lists_operators_and_what_ifs_where_that_is_asked_for(trainwright, small):
    plain = json.loads(trainwright("estimate", small, "--json").out)
    assert "roofline" not in plain["time"]
    assert "what_if" not in plain
    more = json.loads(trainwright("estimate", small, "--json", "--ops", "--what-if").out)
    roofline = more["time"]["roofline"]
    assert set(roofline["peaks"]) >= {"bf16"}
    kernels = {"forward", "backward", "optimizer"}
    stages = {stage["name"]: stage["seconds"] for stage in more["time"]["stages"]}
    whole = sum(seconds for name, seconds in stages.items() if name in kernels)
    counted = sum(point["seconds"] for point in roofline["points"]) + roofline["other_seconds"]
    assert counted == pytest.approx(whole)
    assert {one["kind"] for one in more["what_if"]} == {"setting", "part"}
    assert {"change", "because", "set", "fits", "gain"} <= set(more["what_if"][0])


@pytest.mark.parametrize("language", ["en", "ko"])
def test_operators_and_what_ifs_are_printed(trainwright, small, language):
    outcome = trainwright("estimate", small, "--ops", "--what-if", "--lang", language)
    assert outcome.code == 0
    for said in {"en": ("Slowest operators", "Second GPU"), "ko": ("가장 느린", "GPU 하나 더")}[
        language
    ]:
        assert said in outcome.out


def test_what_does_not_fit_has_a_time_only_if_there_were_memory(inside, small):
    assert "Time, if there were memory enough" in inside("estimate", small, *HUGE).out
    assert "if there were" not in inside("estimate", small).out


def test_a_search_without_a_find_says_so_and_names_the_kinds(inside):
    for words in (("no-such-card",), ("cpu", "no-such-processor")):
        shown = inside("catalog", "list", *words)
        assert shown.code == 0
        assert "Nothing in the catalog matches" in shown.out
        assert "storage" in shown.out


def test_help_names_the_targets(inside):
    shown = " ".join(inside("export", "--help").out.split())
    assert "plain (PyTorch alone), transformers, accelerate, deepspeed, slurm, skypilot" in shown


RESNET = """trainwright: 1
model: {preset: resnet50}
workload: {task: pretrain, effective_batch: 256, samples: 100000}
machine: {gpus: [{id: rtx-3090, count: 2}]}
"""


@pytest.mark.parametrize("command", ["build", "upgrade"])
def test_the_command_line_names_file_and_key_of_a_contradiction(inside, tmp_path, command):
    path = tmp_path / "loud.plan.yaml"
    path.write_text(RESNET + "limits:\n  power_w: 900\n  wishes: {quiet: true}\n", encoding="utf-8")
    assert f"{path}: limits.wishes: " in inside(command, path).complaint


def test_other_plans_are_named_in_the_file_or_on_the_command_line(inside, tmp_path):
    first, second = tmp_path / "one.plan.yaml", tmp_path / "two.plan.yaml"
    limits = "limits: {budget: 2500 USD, also: [{plan: two.plan.yaml, times: 3}]}\n"
    first.write_text(RESNET + limits, encoding="utf-8")
    second.write_text(RESNET, encoding="utf-8")
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
    path.write_text(RESNET + limits, encoding="utf-8")
    assert "limits.wishes.gpus" in inside("build", path).complaint
    outcome = inside("build", path, "--gpus", "1", "--top", "1", "--json")
    assert outcome.code == 0
    (best,) = json.loads(outcome.out)["builds"]
    assert [part["count"] for part in best["parts"] if part["kind"] == "gpu"] == [1]
