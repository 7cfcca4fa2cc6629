"""What a person sees of a verified step: real runs of tiny models in a child, on the CPU."""

import gzip
import json
import os
import sys
from dataclasses import replace

import pytest

from trainwright.advise.nearest import nearest
from trainwright.diagnose.evidence import Profile as Evidence
from trainwright.messages import Message, UserError, render
from trainwright.plan import trial as trials
from trainwright.plan import verified as results
from trainwright.plan import verifying
from trainwright.plan.schema import Plan
from trainwright.plan.trace_request import question
from trainwright.plan.trial import Here, Limits
from trainwright.plan.verified import Outcome, RanOut, as_json, memory_notes
from trainwright.profile import interpreter
from trainwright.worker import client

pytest.importorskip("torch")
pytest.importorskip("transformers")

GPT = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 300, "n_embd": 128,
    "n_layer": 3, "n_head": 4, "n_positions": 128,
}  # fmt: skip
HERE = Here("cpu", "test", None, "2.13.0", "")
GIB = 1 << 30


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    before = os.environ.get("TRAINWRIGHT_CACHE")
    os.environ["TRAINWRIGHT_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["TRAINWRIGHT_CACHE"]
    else:
        os.environ["TRAINWRIGHT_CACHE"] = before


@pytest.fixture(scope="module")
def gpt(tmp_path_factory, cache):
    """Return a plan of a tiny language model, and the folder of its files."""
    folder = tmp_path_factory.mktemp("gpt")
    (folder / "config.json").write_text(json.dumps(GPT))
    samples = [{"input_ids": list(range(40 + number))} for number in range(32)]
    lines = "\n".join(json.dumps(one) for one in samples)
    (folder / "samples.jsonl").write_text(lines)
    return planned(
        {"hf": str(folder / "config.json")},
        inputs={"sequence_length": 96},
        effective_batch=16,
        dataset={"layout": "files", "path": str(folder / "samples.jsonl")},
    )


def planned(model, settings=None, **workload):
    return Plan.model_validate(
        {
            "model": model,
            "workload": {"task": "full", **workload},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
            "settings": {"micro_batch": 4, "loader": {"num_workers": 0}} | (settings or {}),
        }
    )


@pytest.fixture(scope="module")
def verified(gpt, tmp_path_factory):
    """Return (outcome, what progress said, folder of the trace) of one run that has everything."""
    folder, told = tmp_path_factory.mktemp("trace"), []
    trial = trials.prepared(gpt, trials.look("cpu"))
    outcome = verifying.run(
        trial,
        steps=2,
        limits=Limits(seconds=600),
        folder=str(folder),
        profile_steps=2,
        on_progress=lambda share, stage: told.append((share, stage)),
    )
    return outcome, told, folder


def row(outcome, name):
    return next(one for one in outcome.rows if one.name == name)


def test_predicted_bytes_are_those_that_the_allocator_gave_out(verified):
    outcome, _, _ = verified
    allocated = row(outcome, "allocated")
    print(f"predicted {allocated.predicted.value:,}, measured {allocated.measured.value:,}")
    assert abs(allocated.difference) < 0.02
    assert allocated.inside


def test_cpu_promises_no_time_and_says_so(verified):
    outcome, _, _ = verified
    step = row(outcome, "step")
    assert step.predicted is None
    assert "no prediction" in render(step.because, "en")
    assert step.measured.value > 0
    assert step.inside is None


def test_what_differs_from_the_plan_is_told(verified):
    outcome, _, _ = verified
    notes = [render(note, "en") for note in outcome.trial.notes]
    assert any("settings.precision is bf16-mixed in the plan and fp32" in note for note in notes)


def test_progress_only_grows_and_names_every_part(verified):
    _, told, _ = verified
    shares = [share for share, _ in told]
    assert shares == sorted(shares)
    stages = {stage for _, stage in told}
    assert {"worker.verify-warming", "worker.verify-timing", "worker.verify-profiling"} <= stages
    assert all(render(Message.of(stage), "ko") != stage for stage in stages)


def test_plan_s_own_data_feeds_the_step(verified):
    outcome, _, _ = verified
    loader = outcome.measured.loader
    assert "problem" not in loader
    assert 0 < loader["wait_seconds"] < loader["step_seconds"]


def test_trace_has_what_perfetto_and_tensorboard_read(verified):
    """Perfetto's and Chrome's trace event format; the plugin's own requirements beside it."""
    outcome, _, folder = verified
    file = folder / outcome.measured.profile["trace"]
    assert file.name.endswith(".pt.trace.json.gz")
    document = json.loads(gzip.decompress(file.read_bytes()))
    assert {"schemaVersion", "traceEvents", "deviceProperties"} <= set(document)
    complete = [event for event in document["traceEvents"] if event["ph"] == "X"]
    assert all({"name", "ts", "dur", "pid", "tid"} <= set(event) for event in complete)
    assert any(event["name"].startswith("ProfilerStep#") for event in complete)
    memory = [event for event in document["traceEvents"] if event["name"] == "[memory]"]
    assert memory
    assert all("Bytes" in event["args"] for event in memory)


def test_profile_says_where_the_time_went(verified):
    outcome, _, _ = verified
    profile = outcome.measured.profile
    assert any("mm" in one["name"] for one in profile["operators"])
    assert 0 <= profile["idle"] < 1
    assert sum(one["share"] for one in profile["operators"]) <= 1 + 1e-9
    assert max(nbytes for _, nbytes in profile["memory"]) > 0
    assert [moment for moment, _ in profile["memory"]] == sorted(
        moment for moment, _ in profile["memory"]
    )
    evidence = Evidence.model_validate(results.evidence(profile))
    assert evidence.top[0].share == profile["operators"][0]["share"]


def test_kept_run_names_device_and_torch(verified):
    outcome, _, _ = verified
    kept = results.as_verified(outcome)
    assert kept.device.startswith("cpu")
    assert kept.torch.startswith("2.")
    assert kept.ratio is None  # nothing was predicted of time
    assert kept.context_bytes > 0


# Memory that runs out, and children that misbehave


@pytest.mark.slow
def test_memory_that_runs_out_is_an_answer_with_plans_that_fit(gpt):
    large = gpt.model_copy(
        update={
            "workload": gpt.workload.model_copy(update={"effective_batch": 4096}),
            "settings": gpt.settings.model_copy(update={"micro_batch": 1024}),
        }
    )
    trial = trials.prepared(large, HERE)
    assert trial.predicted.allocated.value > 1.5 * GIB
    limits = Limits(seconds=600, memory_bytes=int(1.5 * GIB))
    outcome = verifying.run(trial, steps=1, limits=limits)
    assert outcome.ran_out is not None
    assert outcome.ran_out.side == "host"
    assert not outcome.holds


@pytest.mark.slow
def test_plans_that_fit_are_nearer_ones_and_do_fit(gpt, trial):
    limit = int(trial.predicted.allocated.value * 0.8) + trials.PROCESS[1]
    outcome = Outcome(trial, None, RanOut("host", "worker.verify-warming", "", limit))
    found = nearest(outcome)
    assert found
    assert len({one.plan.settings.micro_batch for one in found}) > 1
    for one in found:
        again = trials.prepared(one.plan, HERE)
        assert again.settings.micro_batch * again.settings.accumulation == 16
        assert again.predicted.allocated.value + trials.PROCESS[1] <= limit


NET = """
import torch
from torch import nn

def build():
    {line}
    return {{"model": nn.Linear(4, 4), "example_inputs": torch.zeros(2, 4)}}
"""


@pytest.fixture
def own(tmp_path, cache):
    """Return a function: a line of a factory -> the trial of its step; traced without that line."""
    file = tmp_path / "net.py"
    plan = planned({"python": {"file": str(file), "factory": "build"}}, effective_batch=4)

    def tried(line):
        file.write_text(NET.format(line="pass"))
        good = trials.prepared(plan, HERE)
        file.write_text(NET.format(line=line))
        return replace(good, spec=question(plan, good.settings, trials.BARE).spec)

    return tried


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "said"),
    [("raise ValueError('no such width')", "no such width"), ("os.kill(os.getpid(), 9)", "os")],
)
def test_factory_that_raises_is_named(own, line, said):
    with pytest.raises(UserError) as caught:
        verifying.run(own(line), steps=1, limits=Limits(300, 4 * GIB))
    assert said in str(caught.value)
    assert "net.py" in str(caught.value)


@pytest.mark.slow
def test_factory_that_ends_the_child_is_told(own):
    with pytest.raises(UserError) as caught:
        verifying.run(own("__import__('os').kill(__import__('os').getpid(), 9)"), steps=1)
    assert caught.value.message.id == "worker.killed"


@pytest.mark.slow
def test_factory_that_prints_does_not_answer_for_the_child(own):
    line = """print('{"step_seconds": [1e-9], "allocated_peak_bytes": 1}')"""
    outcome = verifying.run(own(line), steps=1, limits=Limits(300, 4 * GIB))
    assert outcome.measured.allocated.value > 100
    assert outcome.measured.step.value > 1e-6


SMALL = """
import torch
from torch import nn

def build():
    net = nn.Sequential(nn.Conv2d(256, 256, 3, padding=1), nn.Flatten(), nn.Linear(1024, 4))
    return {"model": net, "example_inputs": torch.zeros(2, 256, 2, 2)}
"""


@pytest.mark.slow
def test_tensors_are_compared_and_what_convolutions_take_beside_them_is_told(tmp_path, cache):
    file = tmp_path / "small.py"
    file.write_text(SMALL)
    plan = planned({"python": {"file": str(file), "factory": "build"}}, effective_batch=4)
    outcome = verifying.run(trials.prepared(plan, HERE), steps=1, limits=Limits(300, 4 * GIB))
    (allocated,) = (row for row in outcome.rows if row.name == "allocated")
    assert abs(allocated.difference) <= 0.02
    together = outcome.measured.allocated.value
    assert as_json(outcome)["allocated_with_convolutions_bytes"] == together
    told = " ".join(render(note, "en") for note in memory_notes(outcome.measured))
    assert ("convolutions on the CPU take" in told) == (together > 1.02 * allocated.measured.value)


ATTENDING = {
    "grouped-heads": {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "vocab_size": 200,
        "hidden_size": 128, "intermediate_size": 300, "num_hidden_layers": 3,
        "num_attention_heads": 8, "num_key_value_heads": 2, "max_position_embeddings": 256,
    },
    "bias-that-learns": {
        "model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "vocab_size": 200,
        "d_model": 128, "d_ff": 300, "d_kv": 32, "num_layers": 2, "num_heads": 4,
        "is_encoder_decoder": True, "decoder_start_token_id": 0, "pad_token_id": 0,
    },
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ATTENDING)
def test_attention_that_a_cpu_runs_otherwise_than_a_gpu_is_predicted_too(tmp_path, cache, kind):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(ATTENDING[kind]))
    given = {"inputs": {"sequence_length": 192}, "effective_batch": 4}
    trial = trials.prepared(planned({"hf": str(path)}, **given), HERE)
    outcome = verifying.run(trial, steps=1, limits=Limits(300, 4 * GIB))
    allocated = row(outcome, "allocated")
    assert abs(allocated.difference) < 0.01
    assert outcome.holds


@pytest.fixture
def program(tmp_path, monkeypatch):
    """Return a function that puts other text in the place of the child's program."""
    (tmp_path / "launch.py").write_text((client.PROGRAMS / "launch.py").read_text())
    monkeypatch.setattr(client, "PROGRAMS", tmp_path)
    return lambda text: (tmp_path / "verify.py").write_text(text)


@pytest.fixture(scope="module")
def trial(gpt):
    return trials.prepared(gpt, HERE)


def test_hung_child_is_ended_at_the_limit(program, trial):
    program("import time\ntime.sleep(60)\n")
    with pytest.raises(UserError) as caught:
        verifying.run(trial, limits=Limits(seconds=1))
    assert "--seconds" in render(caught.value.message, "en")


def test_killed_child_is_told(program, trial):
    program("import os\nos.kill(os.getpid(), 9)\n")
    with pytest.raises(UserError) as caught:
        verifying.run(trial)
    assert caught.value.message.id == "worker.killed"


@pytest.mark.parametrize(
    "text",
    ["print('rubbish')", "print('{}')", "print('{\"step_seconds\": [0], "
     "\"allocated_peak_bytes\": -1}')", "print('\\x00' * 100)"],
)  # fmt: skip
def test_child_that_prints_rubbish_is_no_answer(program, trial, text):
    program(text)
    with pytest.raises(UserError) as caught:
        verifying.run(trial)
    assert caught.value.message.id in ("worker.no-answer", "worker.bad-result")


def test_cancelled_run_leaves_no_child(program, trial, tmp_path):
    marker = tmp_path / "pid"
    program(f"import os, time\nopen({str(marker)!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)")
    with pytest.raises(UserError) as caught:
        verifying.run(trial, cancelled=lambda: marker.exists() and marker.read_text() != "")
    assert caught.value.message.id == "worker.cancelled"
    with pytest.raises(ProcessLookupError):
        os.kill(int(marker.read_text()), 0)


@pytest.mark.parametrize(
    ("versions", "id"),
    [
        ('{"versions": {"python": "3.12.1"}}', "worker.no-torch"),
        ('{"versions": {"python": "3.12.1", "torch": "2.4.0"}}', "worker.torch-version"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="the stand-in is a shell script")
def test_interpreter_without_a_torch_that_fits_is_refused(tmp_path, versions, id):
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho '{versions}'\n")
    python.chmod(0o755)
    interpreter.ask_for(str(python))
    try:
        with pytest.raises(UserError) as caught:
            trials.look()
    finally:
        interpreter.ask_for(None)
    assert caught.value.message.id == id


@pytest.mark.parametrize(
    ("change", "id"),
    [
        ({"optimizer": "adamw-8bit"}, "verify.cuda-only"),
        ({"optimizer_offload": "cpu"}, "verify.cuda-only"),
        ({"cross_entropy": "fused"}, "verify.fused"),
    ],
)
def test_what_cannot_run_here_is_refused_by_name(gpt, change, id):
    plan = gpt.model_copy(update={"settings": gpt.settings.model_copy(update=change)})
    with pytest.raises(UserError) as caught:
        trials.prepared(plan, HERE)
    assert caught.value.message.id == id


def test_serving_has_no_step_to_verify():
    plan = Plan.model_validate(
        {
            "model": {"preset": "gpt2"},
            "workload": {"task": "infer"},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )
    with pytest.raises(UserError) as caught:
        trials.prepared(plan, HERE)
    assert caught.value.message.id == "verify.only-training"
