"""lightning.yaml is read by Lightning's own command line, and the Trainer runs by it."""

import csv
import sys
from pathlib import Path

import pytest
from exporting import llama, on_two_gpus, plan, put, settings, start

from trainwright import export
from trainwright.messages import UserError, render

FIT = [sys.executable, "train_lightning.py", "fit", "--config", "lightning.yaml"]
TRIED = ["--trainer.accelerator", "cpu", "--data.synthetic", "true", "--trainer.max_steps", "2",
         "--trainer.log_every_n_steps", "1", "--model.random_weights", "true"]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("task", ["pretrain", "lora"])
def test_lightning_trains_by_its_file(tmp_path: Path, task: str) -> None:
    pytest.importorskip("lightning")
    pytest.importorskip("jsonargparse")
    chosen = settings(precision="bf16-mixed", checkpointing="full", num_workers=1)
    folder = put(tmp_path / "내 실험", "lightning", llama(tmp_path / "m", task), chosen)
    done = start([*FIT, *TRIED], folder)
    assert done.returncode == 0, done.stderr[-2000:]
    (log,) = (folder / "checkpoints").rglob("metrics.csv")
    rows = [*csv.DictReader(log.read_text(encoding="utf-8").splitlines())]
    assert all(float(row["loss"]) > 0 for row in rows)
    assert [path.name for path in folder.rglob("*.ckpt")] == ["epoch=0-step=2.ckpt"]
    file = "adapter_config.json" if task == "lora" else "config.json"
    assert (folder / "checkpoints" / "model" / file).is_file()


@pytest.mark.slow
def test_a_misspelt_key_is_refused_by_lightning(tmp_path: Path) -> None:
    pytest.importorskip("lightning")
    pytest.importorskip("jsonargparse")
    folder = put(tmp_path / "run", "lightning", llama(tmp_path / "m"))
    path = folder / "lightning.yaml"
    path.write_text(path.read_text(encoding="utf-8").replace("devices:", "devicess:"))
    done = start([*FIT, *TRIED], folder)
    assert done.returncode == 2
    assert "devicess" in done.stderr


def test_what_lightning_cannot_do_is_refused_or_listed(tmp_path: Path) -> None:
    language = llama(tmp_path / "m", "lora")
    with pytest.raises(UserError) as refused:
        export.files("lightning", on_two_gpus(language), settings(strategy="fsdp2"), {}, "en")
    assert "fsdp2" in render(refused.value.message, "en")
    with pytest.raises(UserError, match="ResNet"):
        export.files("lightning", plan({"preset": "resnet50"}), settings(), {}, "en")
    changes = {"checkpointing": "every-2", "cross_entropy": "fused", "optimizer": "muon",
               "activation_offload": True, "allocator": "expandable",
               "precision": "fp8"}  # fmt: skip
    target = export.target("lightning")
    for name, value in changes.items():
        lost = target.not_expressible(language, settings(recipe="lightning", **{name: value}))
        assert name in [message.values["setting"] for message in lost], name
