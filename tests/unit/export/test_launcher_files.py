"""accelerate.yaml and ds_config.json are read by their own libraries, and the runs learn alike."""

import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from exporting import drive, llama, losses, on_two_gpus, plan, put, settings, start

CASES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "bf16-mixed": {"precision": "bf16-mixed"},
    "fp16-mixed": {"precision": "fp16-mixed"},
    "pure bf16": {"precision": "bf16"},
    "tf32": {"precision": "tf32"},
    "compiled": {"compile": True},
    "two GPUs": {"strategy": "ddp", "accumulation": 2},
}
SHARED: dict[str, dict[str, Any]] = {
    **{
        f"{strategy} {precision}": {
            "strategy": strategy,
            "precision": precision,
            "accumulation": 2,
        }
        for strategy in ("zero1", "zero2", "zero3")
        for precision in ("fp32", "bf16-mixed", "fp16-mixed")
    }
}


def exported(folder: Path, target: str, case: str) -> Path:
    plan = llama(folder / "model")
    chosen = settings(**(CASES | SHARED)[case])
    plan = on_two_gpus(plan) if chosen.strategy != "single" else plan
    return put(folder / "run", target, plan, chosen)


def checker(folder: Path) -> Any:
    """The exported check_config.py, as ``python check_config.py`` would run it."""
    spec = importlib.util.spec_from_file_location("check_config", folder / "check_config.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_accelerate_reads_its_file_as_the_plan_has_it(tmp_path: Path, case: str) -> None:
    pytest.importorskip("accelerate")
    from accelerate.commands.config.config_args import load_config_from_file

    folder = exported(tmp_path, "accelerate", case)
    checker(folder).check(folder / "accelerate.yaml")
    read = load_config_from_file(str(folder / "accelerate.yaml"))
    wanted = {"bf16-mixed": "bf16", "fp16-mixed": "fp16"}
    assert read.mixed_precision == wanted.get(settings(**CASES[case]).precision, "no")
    assert read.num_processes == (2 if case == "two GPUs" else 1)
    assert read.distributed_type == ("MULTI_GPU" if case == "two GPUs" else "NO")
    assert (read.dynamo_config == {"dynamo_backend": "INDUCTOR"}) == (case == "compiled")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("section", "key"), [("", "mixed_precison"), ("dynamo_config", "dynamo_backnd")]
)
def test_a_misspelt_key_of_accelerate_is_refused(tmp_path: Path, section: str, key: str) -> None:
    pytest.importorskip("accelerate")
    folder = exported(tmp_path, "accelerate", "compiled")
    path = folder / "accelerate.yaml"
    values = yaml.safe_load(path.read_text())
    (values[section] if section else values)[key] = "x"
    path.write_text(yaml.safe_dump(values))
    with pytest.raises(ValueError, match=key):
        checker(folder).check(path)


@pytest.mark.slow
@pytest.mark.parametrize("case", [*CASES, *SHARED])
def test_deepspeed_reads_its_file_as_the_plan_has_it(
    tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("deepspeed")
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    from deepspeed.runtime.config import DeepSpeedConfig

    folder = exported(tmp_path, "deepspeed", case)
    checker(folder).check(folder / "ds_config.json")
    values = json.loads((folder / "ds_config.json").read_text())
    gpus = 2 if case not in CASES or case == "two GPUs" else 1
    product = values["train_micro_batch_size_per_gpu"] * values["gradient_accumulation_steps"]
    assert product * gpus == values["train_batch_size"] == 8
    precision = settings(**(CASES | SHARED)[case]).precision
    if case in CASES:
        assert values["torch_autocast"]["enabled"] == (precision in ("bf16-mixed", "fp16-mixed"))
        return
    assert [kind for kind in ("bf16", "fp16") if values[kind]["enabled"]] == (
        [] if precision == "fp32" else [precision.removesuffix("-mixed")]
    )
    read = DeepSpeedConfig(values | {"train_batch_size": product}).zero_config
    assert f"zero{read.stage}" == case.split()[0]
    assert read.reduce_bucket_size == 500_000_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("", "gradient_acumulation_steps"),
        ("torch_autocast", "dtpe"),
        ("zero_optimization", "stge"),
    ],
)
def test_a_misspelt_key_of_deepspeed_is_refused(
    tmp_path: Path, section: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("deepspeed")
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    folder = exported(tmp_path, "deepspeed", "defaults")
    path = folder / "ds_config.json"
    values = json.loads(path.read_text())
    (values[section] if section else values)[key] = 1
    path.write_text(json.dumps(values))
    with pytest.raises(ValueError, match=key):
        checker(folder).check(path)


RUN = ["--synthetic", "--cpu", "--steps", "3"]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> list[float]:
    """What the plain export's losses are, with the same seed."""
    root = tmp_path_factory.mktemp("plain")
    folder = put(root / "run", "plain", llama(root / "model"), settings())
    ((code, text),) = drive(folder, [[*RUN, "--output", "out"]])
    assert code == 0, text
    return losses(folder / "out")


def run(folder: Path, command: list[str], *options: str) -> list[float]:
    os.environ["PYTHONUTF8"] = "1"
    done = start([sys.executable, "-m", *command, *RUN, "--output", "out", *options], folder)
    assert done.returncode == 0, done.stderr[-3000:]
    return losses(folder / "out")


@pytest.mark.slow
@pytest.mark.parametrize("target", ["accelerate", "deepspeed"])
@pytest.mark.parametrize("processes", [1, 2])
def test_the_run_learns_what_the_plain_one_does(
    tmp_path: Path, plain: list[float], target: str, processes: int, monkeypatch: Any
) -> None:
    pytest.importorskip(target)
    monkeypatch.setenv("ACCELERATE_USE_CPU", "true")
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    plan = llama(tmp_path / "model")
    changed = {} if processes == 1 else {"strategy": "ddp", "accumulation": 2}
    plan = on_two_gpus(plan) if processes == 2 else plan
    folder = put(tmp_path / "내 실험", target, plan, settings(**changed))
    launch = ["accelerate.commands.launch", "--cpu", "--config_file", "accelerate.yaml", "train.py"]
    many = ["torch.distributed.run", "--standalone", "--nproc-per-node=2", "train.py"]
    alone = launch if target == "accelerate" else ["torch.distributed.run", *many[1:2], "train.py"]
    found = run(folder, many if processes == 2 else alone)
    assert found == pytest.approx(plain, rel=1e-4)


@pytest.mark.slow
def test_deepspeed_takes_weights_in_channels_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``deepspeed.initialize`` cannot send such weights itself (0.19.8)."""
    pytest.importorskip("deepspeed")
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    workload = {"task": "pretrain", "inputs": {"image_size": 32}, "effective_batch": 8}
    net = plan({"preset": "unet"}, workload=workload)
    found = []
    for target in ("plain", "deepspeed"):
        folder = put(tmp_path / target, target, net, settings(channels_last=True))
        found.append(
            run(folder, ["torch.distributed.run", "--standalone", "train.py"], "--selfcheck")
        )
    assert found[1] == pytest.approx(found[0], rel=1e-4)
