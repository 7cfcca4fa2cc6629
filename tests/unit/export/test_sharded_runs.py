"""However a step is divided among processes, it is the same step: losses and weights agree.

One step of SGD moves each weight by its gradient, clipped by the norm of all, so that equal
weights after it are equal gradients and an equal norm.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from exporting import (
    TORCHRUN,
    drive_two,
    edit,
    llama,
    losses,
    on_two_gpus,
    put,
    settings,
    start,
)

from trainwright.workload.workload import Lora

pytestmark = pytest.mark.slow

RUN = ["--synthetic", "--cpu", "--steps", "2", "--selfcheck"]
STEP: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 0.5, "warmup": 0}
SAME = 1e-5


def trained(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return load_file(folder / "model" / "model.safetensors")


def agree(one: Path, other: Path) -> None:
    assert losses(one) == pytest.approx(losses(other), rel=SAME)
    mine, others = trained(one), trained(other)
    assert mine.keys() == others.keys()
    assert max(float((mine[name] - others[name]).abs().max()) for name in mine) <= SAME


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process does with one micro-batch a step, and with four."""
    root = tmp_path_factory.mktemp("alone")
    folder = put(root / "run", "plain", llama(root / "m"), settings(**STEP))
    whole = str(edit(folder / "plan.json", batch={"micro": 8, "accumulation": 1}))
    done = start([sys.executable, "train.py", *RUN, "--plan", whole, "--output", "whole"], folder)
    assert done.returncode == 0, done.stderr[-2000:]
    parts = str(edit(folder / "plan.json", batch={"micro": 2, "accumulation": 4}))
    done = start([sys.executable, "train.py", *RUN, "--plan", parts, "--output", "parts"], folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def test_accumulation_is_the_same_step(alone: Path) -> None:
    agree(alone / "parts", alone / "whole")


def exported(
    folder: Path, target: str, strategy: str, task: str = "pretrain", **changed: Any
) -> Path:
    plan = on_two_gpus(llama(folder / "m", task))
    chosen = settings(strategy=strategy, accumulation=2, **STEP | changed)
    return put(folder / "내 실험", target, plan, chosen)


@pytest.mark.parametrize("strategy", ["ddp", "fsdp2"])
def test_two_processes_of_plain_are_the_same_step(
    tmp_path: Path, alone: Path, strategy: str
) -> None:
    folder = exported(tmp_path, "plain", strategy)
    done = start([sys.executable, "-m", *TORCHRUN, "train.py", *RUN, "--output", "out"], folder)
    assert done.returncode == 0, done.stderr[-2000:]
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("strategy")]
    wanted = "21 of 21 weights shared, 3 groups" if strategy == "fsdp2" else "Distributed"
    assert wanted in line
    agree(folder / "out", alone / "whole")


def test_shares_learn_save_and_resume_with_every_setting(tmp_path: Path) -> None:
    folder = exported(tmp_path, "plain", "fsdp2", optimizer="adamw", learning_rate=3e-3)
    changes: dict[str, dict[str, Any]] = {
        "base": {},
        "kept": {"reshard_after_forward": False},
        "recomputed": {"checkpointing": "full"},
        "chunked": {"cross_entropy": "chunked"},
        "muon": {"optimizer": "muon"},
        "bf16-mixed": {"precision": "bf16-mixed"},
    }
    runs = [
        [*RUN, "--plan", variant(folder, name, settings=change), "--output", name]
        for name, change in changes.items()
    ]
    lora = variant(folder, "lora", settings={"precision": "bf16-mixed"})
    document = json.loads(Path(lora).read_text(encoding="utf-8"))
    document |= {"task": "lora", "lora": Lora(rank=4, alpha=8.0).model_dump(mode="json")}
    Path(lora).write_text(json.dumps(document), encoding="utf-8")
    runs.append([*RUN, "--plan", lora, "--output", "lora"])
    runs.append([*RUN, "--stop-at", "1", "--output", "half"])
    runs.append([*RUN, "--resume", "--output", "half"])
    muon = ["--plan", variant(folder, "muon", settings=changes["muon"]), "--output", "half-muon"]
    runs += [[*RUN, "--stop-at", "1", *muon], [*RUN, "--resume", *muon]]
    assert set(drive_two(folder, runs)) == {0}
    for name in ("kept", "recomputed", "chunked"):
        agree(folder / name, folder / "base")
    agree(folder / "half", folder / "base")
    agree(folder / "half-muon", folder / "muon")
    assert losses(folder / "bf16-mixed") == pytest.approx(losses(folder / "base"), rel=1e-2)
    assert (folder / "lora" / "model" / "adapter_config.json").is_file()
    architectures = json.loads((folder / "base" / "model" / "config.json").read_text())
    assert architectures["architectures"] == ["LlamaForCausalLM"]


def variant(folder: Path, name: str, **sections: Any) -> str:
    path = folder / f"plan-{name}.json"
    path.write_bytes((folder / "plan.json").read_bytes())
    return str(edit(path, **sections))


@pytest.mark.parametrize(
    ("changed", "line"),
    [
        ({}, "fsdp2 shares the weights between 2 processes, and one was started"),
        (
            {"batch": {"gpus": 4, "accumulation": 1}},
            "not in force on this machine: gpus",
        ),
    ],
)
def test_other_numbers_of_processes_are_refused(
    tmp_path: Path, changed: dict[str, Any], line: str
) -> None:
    folder = exported(tmp_path, "plain", "fsdp2")
    edit(folder / "plan.json", **changed)
    command = (
        [sys.executable, "-m", *TORCHRUN, "train.py"] if changed else [sys.executable, "train.py"]
    )
    done = start([*command, *RUN], folder)
    assert done.returncode != 0
    assert line in done.stderr
