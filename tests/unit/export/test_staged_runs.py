"""Layers in stages (1F1B) are the same step as one process: losses and weights agree.

One step of SGD moves each weight by its gradient, clipped by the norm of all stages, so that equal
weights after it are equal gradients and an equal norm.
"""

import sys
from pathlib import Path
from typing import Any

import pytest
from exporting import (
    edit,
    llama,
    losses,
    on_two_computers,
    on_two_gpus,
    put,
    settings,
    start,
    torchrun,
)

from trainwright.plan.staging import STAGED

pytestmark = pytest.mark.slow

RUN = ["--synthetic", "--cpu", "--steps", "2", "--selfcheck"]
STEP: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 0.5, "warmup": 0}
SAME = 1e-5
CLASSES = {
    "llama": "LlamaForCausalLM",
    "mistral": "MistralForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
}
LAYERS = {"num_hidden_layers": 3, "tie_word_embeddings": False}


def trained(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / "model" / "model.safetensors")


def agree(one: Path, other: Path) -> None:
    assert losses(one) == pytest.approx(losses(other), rel=SAME)
    mine, others = trained(one), trained(other)
    assert mine.keys() == others.keys()
    assert max(float((mine[name] - others[name]).abs().max()) for name in mine) <= SAME


def config(kind: str) -> dict[str, Any]:
    return {"model_type": kind, "architectures": [CLASSES[kind]], "head_dim": 8, **LAYERS}


def alone(folder: Path, kind: str) -> Path:
    """Return what one process does, all samples of a step at once."""
    run = put(folder / "alone", "plain", llama(folder / "m", **config(kind)), settings(**STEP))
    whole = str(edit(run / "plan.json", batch={"micro": 8, "accumulation": 1}))
    done = start([sys.executable, "train.py", *RUN, "--plan", whole, "--output", "whole"], run)
    assert done.returncode == 0, done.stderr[-2000:]
    return run / "whole"


@pytest.mark.parametrize("kind", STAGED)
def test_two_stages_are_the_same_step(tmp_path: Path, kind: str) -> None:
    """Two of three layers on the first, one on the last; stopped after a step, and gone on."""
    plan = on_two_gpus(llama(tmp_path / "m", **config(kind)))
    chosen = settings(strategy="pp", pipeline_stages=2, accumulation=4, **STEP)
    folder = put(tmp_path / "run", "plain", plan, chosen)
    for options in (["--stop-at", "1"], ["--resume"]):
        launch = [sys.executable, "-m", *torchrun(2), "train.py", *RUN, "--output", "out"]
        done = start([*launch, *options], folder)
        assert done.returncode == 0, done.stderr[-2000:]
    assert "Schedule1F1B, 3 of 3 layers in 2 stages" in done.stdout
    agree(folder / "out", alone(tmp_path, kind))


def test_copies_of_a_pipeline_are_the_same_step(tmp_path: Path) -> None:
    """Two copies of two stages: the copies of a stage add up their gradients."""
    plan = on_two_computers(llama(tmp_path / "m", **config("llama")))
    chosen = settings(strategy="pp", pipeline_stages=2, micro_batch=2, accumulation=2, **STEP)
    folder = put(tmp_path / "run", "plain", plan, chosen)
    launch = [sys.executable, "-m", *torchrun(4), "train.py", *RUN, "--output", "out"]
    done = start(launch, folder)
    assert done.returncode == 0, done.stderr[-2000:]
    agree(folder / "out", alone(tmp_path, "llama"))


def test_one_process_is_not_taken_for_a_pipeline(tmp_path: Path) -> None:
    plan = on_two_gpus(llama(tmp_path / "m", **config("llama")))
    chosen = settings(strategy="pp", pipeline_stages=2, accumulation=4, **STEP)
    folder = put(tmp_path / "run", "plain", plan, chosen)
    done = start([sys.executable, "train.py", *RUN], folder)
    assert done.returncode == 2
    assert "start train.py with torchrun" in done.stderr
