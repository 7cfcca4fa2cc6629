"""Weights beside a config against the traced model; configs that are not configs."""

import json
import os
import sys
from types import SimpleNamespace

import pytest

from trainwright.data import resources
from trainwright.messages import LANGUAGES, UserError, render
from trainwright.plan import crosscheck
from trainwright.plan.evaluate import Pending, resolve
from trainwright.plan.schema import Plan
from trainwright.profile import store
from trainwright.workload.weightfiles import Weights

np = pytest.importorskip("numpy")

GPT = {
    "model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "vocab_size": 300, "n_embd": 32,
    "n_layer": 2, "n_head": 4, "n_positions": 64,
}  # fmt: skip
BODY = 64 * 32 + 2 * (12 * 32 * 32 + 13 * 32) + 2 * 32
"""Positions, two layers (4 + 8 squares of the width, and 13 vectors), and the last norm."""
HEAD = 300 * 32


def plan(path, **workload):
    return Plan.model_validate(
        {
            "model": {"hf": str(path)},
            "workload": {
                "task": "full", "effective_batch": 4, "inputs": {"sequence_length": 32}, **workload
            },
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )  # fmt: skip


def note(found, task="full", config="", **facts):
    """Return the note about weights beside a model with these facts."""

    model = {"parameters": 1000, "trainable": 0, "vocabulary": 10, "hidden": 8, **facts}
    profile, spec = SimpleNamespace(model=model), SimpleNamespace(task=task)
    notes = list(crosscheck.notes(found, profile, spec, config))
    for message in notes:
        assert all(render(message, language) for language in LANGUAGES)
    return [message.id.removeprefix("plan.note.weights-") for message in notes]


def stored(parameters, dtype="BF16"):
    return Weights(parameters, 2 * parameters, ((dtype, 2 * parameters),), 1)


def test_notes_say_how_the_counts_compare():
    assert note(None) == []
    assert note(stored(1000)) == ["agree"]
    assert note(stored(1000 - 80)) == ["without-head"]
    assert note(stored(1000 + 80)) == ["with-head"]
    assert note(stored(999)) == ["differ"]
    assert note(stored(900), task="lora", trainable=100) == ["agree"]
    assert note(stored(1000), vocabulary=0) == ["agree"]
    assert note(stored(1001), vocabulary=0) == ["differ"]
    packed = json.dumps({"quantization_config": {"quant_method": "gptq"}})
    assert note(stored(1000, "I32"), config=packed) == ["packed"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("extra", "id"), [(0, "agree"), (HEAD, "with-head"), (-HEAD, "without-head"), (5, "differ")]
)
def test_folder_of_a_model_is_compared_with_what_was_traced(tmp_path, extra, id):
    save_file = pytest.importorskip("safetensors.numpy").save_file
    (tmp_path / "config.json").write_text(json.dumps(GPT))
    tensors = {"body": np.zeros(BODY + HEAD + extra, np.float16)}
    save_file(tensors, tmp_path / "model.safetensors")
    pending = resolve(plan(tmp_path / "model.safetensors"))
    profile = store.trace(pending.spec, at=pending.point)
    (found,) = (n for n in pending.answered(profile).notes if "weights" in n.id)
    assert found.id == f"plan.note.weights-{id}"
    assert found.values["traced"] == BODY + HEAD


def test_weights_that_lie_beside_a_config_are_left_out_and_named(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(GPT))
    (tmp_path / "model.safetensors").write_bytes(b"PK a zip")
    pending = resolve(plan(tmp_path))
    assert isinstance(pending, Pending)
    assert pending.weights.id == "plan.note.weights-refused"
    for language in LANGUAGES:
        assert "model.safetensors" in render(pending.weights, language)
    with pytest.raises(UserError) as caught:
        resolve(plan(tmp_path / "model.safetensors"))  # named itself: refused
    assert caught.value.message.id.startswith("weights.")


def write(path, content):
    path.write_bytes(content)
    return path


CONFIGS = {
    "nothing in it": lambda f: write(f / "config.json", b""),
    "UTF-16": lambda f: write(f / "config.json", json.dumps(GPT).encode("utf-16")),
    "10 MB": lambda f: write(f / "config.json", b'{"a": "' + b"x" * (10 << 20) + b'"}'),
    "none": lambda f: f / "config.json",
    "none in the folder": lambda f: f,
    "weights without a config": lambda f: write(f / "model.safetensors", b""),
    "a folder of that name": lambda f: (f / "config.json").mkdir() or f,
}
if sys.platform != "win32":
    CONFIGS |= {
        "a pipe": lambda f: os.mkfifo(f / "config.json") or f,
        "a device": lambda f: os.symlink("/dev/zero", f / "config.json") or f,
        "a loop": lambda f: os.symlink(f / "config.json", f / "config.json") or f,
    }


@pytest.mark.parametrize("case", CONFIGS)
def test_config_that_is_none_is_refused_in_a_line(tmp_path, case):
    path = CONFIGS[case](tmp_path)
    with pytest.raises(UserError) as caught:
        resolve(plan(path))
    for language in LANGUAGES:
        line = render(caught.value.message, language)
        assert len(line.splitlines()) == 1
        assert str(tmp_path) in line


def test_presets_have_no_weights_to_compare():
    assert resources("presets").is_dir()
    shipped = plan("x").model_copy(update={"model": type(plan("x").model)(preset="gpt2")})
    assert crosscheck.looked_up(shipped) is None
