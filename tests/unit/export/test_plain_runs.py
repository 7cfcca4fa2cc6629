"""The exported ``plain`` programs really train, on the CPU, with a tiny model."""

import json
import random
import re
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from exporting import (
    TORCHRUN,
    drive,
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

IGNORED = -100
# Offloading is torchao's; where it is not installed, that is what a person must hear first.
OFFLOADED = (
    r"torchao offloads from CUDA and XPU devices only"
    if find_spec("torchao")
    else r"needs torchao: pip install torchao"
)
SPLITS = {"2x4": (2, 4), "4x2": (4, 2), "1x8": (1, 8), "repeated heads": (2, 4)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exported files in a path with spaces and Hangul; dropout shows whether resuming is exact."""
    root = tmp_path_factory.mktemp("내 실험")
    plan = llama(root / "모델", attention_dropout=0.1)
    folder = put(root / "run 1", "plain", plan)
    # Dropout draws differ with the split of a batch, so splits are compared without.
    llama(folder / "model without dropout")
    return folder


@pytest.fixture(scope="module")
def ragged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tokenised samples of very different lengths, some positions of which do not count."""
    chance = random.Random(0)
    lines = []
    for length in [16, 3, 9, 2, 16, 5, 12, 7] * 2:
        ids = [chance.randrange(1, 64) for _ in range(length)]
        labels = [IGNORED] * chance.randrange(length - 1) + ids
        lines.append(json.dumps({"input_ids": ids, "labels": labels[-length:]}))
    path = tmp_path_factory.mktemp("자료") / "samples.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def runs(folder: Path, ragged: Path) -> dict[str, tuple[int, str]]:
    """All short runs at once: importing torch takes longer than they do."""
    arguments = {
        "learns": ["--synthetic", "--steps", "40", "--output", "learns", "--selfcheck"],
        "whole": ["--synthetic", "--steps", "6", "--output", "whole"],
        "half": ["--synthetic", "--steps", "6", "--stop-at", "3", "--output", "half"],
        "rest": ["--synthetic", "--steps", "6", "--resume", "--output", "half"],
        "other run": ["--synthetic", "--steps", "7", "--resume", "--output", "half"],
        "nothing to resume": ["--synthetic", "--resume", "--output", "새 폴더"],
        "no data": [],
        "missing data": ["--data", "없는 자료"],
        "broken line": ["--data", broken_line(folder)],
    }
    one_step = {"steps": 1, "warmup_steps": 0, "learning_rate": 1.0, "clip_norm": 1e9}
    for name, (micro, rounds) in SPLITS.items():
        plan = variant(
            folder,
            name,
            model={"where": "model without dropout"},
            batch={"micro": micro, "accumulation": rounds},
            settings={"optimizer": "sgd", "expanded_heads": name == "repeated heads"},
            schedule=one_step | {"weight_decay": 0.0},
        )
        arguments[name] = ["--plan", plan, "--data", str(ragged), "--output", name]
    changes: dict[str, dict[str, Any]] = {
        "bf16-mixed": {"precision": "bf16-mixed", "checkpointing": "full"},
        "bf16": {"precision": "bf16", "checkpointing": "every-2"},
        "selective": {"checkpointing": "selective"},
        "muon": {"optimizer": "muon"},
        "adafactor": {"optimizer": "adafactor"},
        "tf32": {"precision": "tf32"},
        "repeated": {"expanded_heads": True},
        "fp16-mixed": {"precision": "fp16-mixed"},
    }
    within = variant(
        folder,
        "in-backward",
        batch={"micro": 8, "accumulation": 1},
        settings={"optimizer_in_backward": True},
        schedule={"clip_norm": 0.0},
    )
    arguments["in-backward"] = ["--plan", within, "--synthetic", "--steps", "3", "--selfcheck"]
    arguments["in-backward"] += ["--output", "in-backward"]
    clipped = variant(folder, "clipped", settings={"optimizer_offload": "cpu"})
    arguments["clipped"] = ["--plan", clipped, "--synthetic"]
    unclipped = {"settings": {"optimizer_offload": "cpu"}, "schedule": {"clip_norm": 0.0}}
    offloaded = variant(folder, "offloaded", **unclipped)
    arguments["offloaded"] = ["--plan", offloaded, "--synthetic", "--steps", "3"]
    for name, change in changes.items():
        plan = variant(folder, name, settings=change)
        arguments[name] = [
            *("--plan", plan, "--synthetic", "--steps", "3"),
            *("--output", name, "--selfcheck"),
        ]
    two = variant(folder, "two", batch={"gpus": 2, "accumulation": 2})
    arguments["one of two gpus"] = ["--plan", two, "--synthetic", "--selfcheck", "--output", "two"]
    adapters = put(folder / "adapters", "plain", llama(folder / "m", "lora"))
    made = ["--synthetic", "--steps", "3", "--output", str(folder / "lora")]
    adapting = {
        "lora": [*made, "--stop-at", "2", "--selfcheck"],
        "lora rest": [*made, "--resume"],
        "lora without weights": ["--data", str(ragged)],
    }
    changed = variant(folder, "changed", lora=None)
    document = json.loads(Path(changed).read_text(encoding="utf-8"))
    document |= {"task": "lora", "lora": Lora(rank=4, alpha=8.0).model_dump(mode="json")}
    Path(changed).write_text(json.dumps(document), encoding="utf-8")
    arguments["another task"] = ["--plan", changed, "--synthetic"]
    found = dict(zip(adapting, drive(adapters, list(adapting.values())), strict=True))
    return found | dict(zip(arguments, drive(folder, list(arguments.values())), strict=True))


def variant(folder: Path, name: str, **sections: Any) -> str:
    path = folder / f"plan-{name}.json"
    path.write_bytes((folder / "plan.json").read_bytes())
    edit(path, **{key: value for key, value in sections.items() if value is not None})
    return str(path)


def broken_line(folder: Path) -> str:
    path = folder / "깨진 자료.jsonl"
    path.write_text('{"input_ids": [1, 2, 3]}\n{"input_ids": [1, 2\n', encoding="utf-8")
    return str(path)


def gradients(folder: Path) -> dict[int, Any]:
    """What the first step of SGD leaves in its momentum: the gradients."""
    import torch

    (path,) = folder.glob("step-*.pt")
    state = torch.load(path, weights_only=True)["optimizer"]["state"]
    return {number: values["momentum_buffer"] for number, values in state.items()}


def test_loss_goes_down(runs: dict[str, tuple[int, str]], folder: Path) -> None:
    assert runs["learns"][0] == 0, runs["learns"][1]
    course = losses(folder / "learns")
    assert len(course) == 40
    assert sum(course[-5:]) < 0.8 * sum(course[:5])


def test_trained_model_is_written_as_its_library_reads_it(runs: object, folder: Path) -> None:
    names = {path.name for path in (folder / "learns" / "model").iterdir()}
    assert {"config.json", "model.safetensors"} <= names


@pytest.mark.parametrize("split", ["4x2", "1x8", "repeated heads"])
def test_splits_of_a_ragged_batch_agree(
    runs: dict[str, tuple[int, str]], folder: Path, split: str
) -> None:
    assert runs["2x4"][0] == runs[split][0] == 0, runs[split][1]
    assert losses(folder / split) == pytest.approx(losses(folder / "2x4"), abs=1e-6)
    reference, other = gradients(folder / "2x4"), gradients(folder / split)
    assert reference.keys() == other.keys()
    largest = max(float((reference[key] - other[key]).abs().max()) for key in reference)
    assert largest <= 1e-6
    assert max(float(gradient.abs().max()) for gradient in reference.values()) > 1e-2


def test_resumed_run_equals_the_uninterrupted_one(
    runs: dict[str, tuple[int, str]], folder: Path
) -> None:
    assert [runs[name][0] for name in ("whole", "half", "rest")] == [0, 0, 0]
    assert losses(folder / "half") == losses(folder / "whole")
    assert len(set(losses(folder / "whole"))) == 6


def test_adapters_alone_are_trained_saved_and_resumed(
    runs: dict[str, tuple[int, str]], folder: Path
) -> None:
    import torch

    assert runs["lora"][0] == runs["lora rest"][0] == 0, runs["lora"][1] + runs["lora rest"][1]
    saved = torch.load(folder / "lora" / "step-00000003.pt", weights_only=True)["model"]
    assert saved
    assert all("lora_" in name for name in saved)
    assert (folder / "lora" / "model" / "adapter_config.json").is_file()


@pytest.mark.parametrize(
    "name",
    [
        "bf16-mixed",
        "bf16",
        "fp16-mixed",
        "selective",
        "muon",
        "adafactor",
        "in-backward",
        "repeated",
    ],
)
def test_settings_are_in_force_by_the_selfcheck(
    runs: dict[str, tuple[int, str]], folder: Path, name: str
) -> None:
    assert runs[name][0] == 0, runs[name][1]
    assert len(losses(folder / name)) == 3


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("tf32", r"^selfcheck: not in force on this machine: precision$"),
        ("one of two gpus", r"^selfcheck: not in force on this machine: gpus$"),
        ("clipped", r"optimizer_offload: cannot clip by the norm; set schedule.clip_norm to 0"),
        ("offloaded", OFFLOADED),
        ("no data", r"no dataset: name one with --data PATH, or try it with --synthetic"),
        ("missing data", r"없는 자료: no such dataset; name one with --data PATH"),
        ("broken line", r"깨진 자료\.jsonl, sample 2: not valid JSON"),
        ("nothing to resume", r"새 폴더: no checkpoint to resume from"),
        ("another task", r"task: these files train whole models, not lora; export it again"),
        ("other run", r"made with steps 6, this run has 7"),
        (
            "lora without weights",
            r"task lora starts from trained weights: name them with --weights",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    runs: dict[str, tuple[int, str]], name: str, line: str
) -> None:
    code, text = runs[name]
    assert code == 2
    assert re.search(line, text.strip().splitlines()[-1])
    assert "Traceback" not in text


def test_two_processes_give_the_same_step(
    runs: dict[str, tuple[int, str]], folder: Path, ragged: Path
) -> None:
    two = on_two_gpus(llama(folder / "m"))
    many = put(folder / "two", "plain", two, settings(strategy="ddp", accumulation=2))
    document = json.loads((folder / "plan-2x4.json").read_text(encoding="utf-8"))
    document["model"]["where"] = "model"
    document["settings"]["strategy"] = "ddp"
    document["batch"] |= {"accumulation": 2, "gpus": 2}
    (many / "plan.json").write_text(json.dumps(document), encoding="utf-8")
    launch = [sys.executable, "-m", *TORCHRUN, "train.py", "--selfcheck"]
    done = start([*launch, "--data", str(ragged), "--output", "ddp"], many)
    assert done.returncode == 0, done.stderr[-2000:]
    assert losses(many / "ddp") == pytest.approx(losses(folder / "2x4"), abs=1e-6)
    reference, other = gradients(folder / "2x4"), gradients(many / "ddp")
    assert max(float((reference[key] - other[key]).abs().max()) for key in reference) <= 1e-6


def test_a_plan_for_one_gpu_is_not_started_several_times(folder: Path) -> None:
    done = start([sys.executable, "-m", *TORCHRUN, "train.py", "--synthetic", "--cpu"], folder)
    assert done.returncode != 0
    assert "this plan trains on one GPU: start it with python train.py" in done.stderr
