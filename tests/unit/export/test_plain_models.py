"""The exported ``plain`` programs train every kind of model that a plan can name."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from exporting import drive, llama, losses, put, settings, start

from trainwright.plan.schema import Plan

pytestmark = pytest.mark.slow

KINDS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "timm": ({"timm": "resnet18"}, {"image_size": 32}, {"channels_last": True}),
    "unet": ({"preset": "unet"}, {"image_size": 32}, {"checkpointing": "full"}),
    "ppo": ({"preset": "nature-cnn-ppo"}, {}, {}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_trains_and_says_what_is_active(tmp_path: Path, kind: str) -> None:
    model, inputs, changed = KINDS[kind]
    if kind == "timm":
        pytest.importorskip("timm")
    plan = Plan.model_validate(
        {
            "name": kind,
            "model": model,
            "workload": {"task": "pretrain", "inputs": inputs, "effective_batch": 8},
            "machine": {"gpus": [{"id": "rtx-4090"}]},
        }
    )
    folder = put(tmp_path / "내 실험", "plain", plan, settings(**changed))
    command = [sys.executable, "train.py", "--synthetic", "--steps", "2", "--selfcheck"]
    done = start(command, folder)
    assert done.returncode == 0, done.stderr[-2000:]
    assert len(losses(folder / "checkpoints")) == 2
    assert (folder / "checkpoints" / "model.pt").is_file()


@pytest.mark.skipif(find_spec("diffusers") is None, reason="needs diffusers")
def test_a_denoiser_trains_whole_or_through_adapters_alone(tmp_path: Path) -> None:
    import torch

    config = {
        "_class_name": "UNet2DConditionModel", "block_out_channels": [32, 64],
        "layers_per_block": 1, "cross_attention_dim": 32, "attention_head_dim": 4,
        "norm_num_groups": 8, "sample_size": 8,
        "down_block_types": ["CrossAttnDownBlock2D", "DownBlock2D"],
        "up_block_types": ["UpBlock2D", "CrossAttnUpBlock2D"],
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    for task in ("full", "lora"):
        plan = Plan.model_validate(
            {
                "name": task,
                "model": {"hf": str(tmp_path / "config.json")},
                "workload": {"task": task, "inputs": {"image_size": 64}, "effective_batch": 8},
                "machine": {"gpus": [{"id": "rtx-4090"}]},
            }
        )
        folder = put(tmp_path / task, "plain", plan, settings())
        ((code, errors),) = drive(folder, [["--synthetic", "--steps", "2"]])
        assert code == 0, errors
        saved = torch.load(folder / "checkpoints" / "step-00000002.pt", weights_only=True)
        trained = saved["optimizer"]["state"]
        adapters = [name for name in saved["model"] if "lora_" in name]
        assert len(trained) == (len(adapters) if task == "lora" else len(saved["model"]))
        assert bool(adapters) == (task == "lora")
        assert any((folder / "checkpoints" / "model").glob("*.safetensors"))


def test_a_loss_in_chunks_takes_the_same_course(tmp_path: Path) -> None:
    courses = []
    for kind in ("full", "chunked"):
        changed = settings(cross_entropy=kind)
        folder = put(tmp_path / kind, "plain", llama(tmp_path / "m"), changed)
        ((code, errors),) = drive(folder, [["--synthetic", "--steps", "3", "--selfcheck"]])
        assert code == 0, errors
        courses.append(losses(folder / "checkpoints"))
    assert courses[1] == pytest.approx(courses[0], rel=1e-5)


@pytest.mark.parametrize("variant", ["rslora", "dora"])
def test_variants_of_lora_train_what_they_are_named_for(tmp_path: Path, variant: str) -> None:
    import torch

    document = llama(tmp_path / "m", "lora").model_dump(mode="json", exclude_none=True)
    document["workload"]["lora"] = {"variant": variant, "dropout": 0.1}
    folder = put(tmp_path / "run", "plain", Plan.model_validate(document), settings())
    ((code, errors),) = drive(folder, [["--synthetic", "--steps", "2"]])
    assert code == 0, errors
    saved = torch.load(folder / "checkpoints" / "step-00000002.pt", weights_only=True)["model"]
    magnitudes = [name for name in saved if "lora_magnitude_vector" in name]
    assert bool(magnitudes) == (variant == "dora")


def test_frozen_parts_stay_as_they_are(tmp_path: Path) -> None:
    document = llama(tmp_path / "m").model_dump(mode="json", exclude_none=True)
    document["workload"]["frozen"] = ["embed_tokens", "layers.0"]
    folder = put(tmp_path / "run", "plain", Plan.model_validate(document))
    ((code, errors),) = drive(folder, [["--synthetic", "--steps", "2", "--selfcheck"]])
    assert code == 0, errors
    path = folder / "plan.json"
    path.write_text(path.read_text(encoding="utf-8").replace("embed_tokens", "embed_tokenz"))
    ((code, errors),) = drive(folder, [["--synthetic", "--steps", "2"]])
    assert code == 2
    assert "near: embed_tokens" in errors.strip().splitlines()[-1]


@pytest.mark.parametrize("task", ["prompt", "prefix"])
def test_virtual_tokens_train_alone(tmp_path: Path, task: str) -> None:
    folder = put(tmp_path / "run", "plain", llama(tmp_path / "m", task))
    command = ["--synthetic", "--steps", "3", "--selfcheck"]
    ((code, errors),) = drive(folder, [command])
    assert code == 0, errors
    course = losses(folder / "checkpoints")
    assert course[-1] != course[0]


@pytest.mark.skipif(find_spec("bitsandbytes") is None, reason="quantizing needs bitsandbytes")
def test_qlora_quantizes_adapts_and_resumes(tmp_path: Path) -> None:
    # Blocks of NF4 hold 64 weights.
    wide = {"hidden_size": 64, "intermediate_size": 128}
    trained = put(tmp_path / "full", "plain", llama(tmp_path / "m", **wide))
    assert drive(trained, [["--synthetic", "--steps", "1"]])[0][0] == 0
    four_bits = settings(precision="bf16-mixed", quantization="nf4", checkpointing="full")
    folder = put(tmp_path / "qlora", "plain", llama(tmp_path / "m", "qlora", **wide), four_bits)
    weights = ["--synthetic", "--weights", str(trained / "checkpoints" / "model"), "--steps", "4"]
    runs = drive(
        folder,
        [
            [*weights, "--output", "whole", "--selfcheck"],
            [*weights, "--output", "half", "--stop-at", "2"],
            [*weights, "--output", "half", "--resume"],
        ],
    )
    assert [code for code, _ in runs] == [0, 0, 0], runs
    assert losses(folder / "half") == losses(folder / "whole")
