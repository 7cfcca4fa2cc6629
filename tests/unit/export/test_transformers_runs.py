"""The exported arguments are read by transformers itself, and the Trainer runs by them."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from exporting import (
    SAME,
    TORCHRUN,
    llama,
    on_two_computers,
    on_two_gpus,
    put,
    settings,
    start,
    torchrun,
)

from trainwright import export
from trainwright.workload import FullSettings

pytestmark = pytest.mark.slow

CASES: dict[str, dict[str, Any]] = {
    "defaults": {},
    "tf32": {"precision": "tf32"},
    "fp16": {"precision": "fp16-mixed"},
    "bf16": {"precision": "bf16-mixed", "checkpointing": "full"},
    "fp8": {"precision": "fp8"},
    "every second layer": {"checkpointing": "every-2", "num_workers": 4},
    "no workers": {"num_workers": 0, "prefetch_factor": 4, "persistent_workers": True},
    "compiled": {"compile": True},
    "fsdp2": {"strategy": "fsdp2", "checkpointing": "full"},
    "open schedule": {"learning_rate": None, "warmup": None},
    **{
        name: {"optimizer": name}
        for name in (
            *("adamw-8bit", "sgd", "adafactor", "lion", "muon", "paged-adamw-8bit"),
            *("adamw-8bit-torchao", "adamw-4bit"),
        )
    },
}


def arguments(tmp_path: Path, settings: FullSettings) -> dict[str, Any]:
    files = export.files("transformers", llama(tmp_path / "m"), settings, {}, "en")
    values: dict[str, Any] = json.loads(files["training_args.json"])
    return values | {"output_dir": str(tmp_path)}


@pytest.fixture
def parse(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The target's own loader, on a computer that has no GPU."""
    import transformers.training_args as module
    from transformers import HfArgumentParser, TrainingArguments

    # bf16 and tf32 are refused without an Ampere GPU; the plan's machine has one.
    monkeypatch.setattr(module, "is_torch_bf16_gpu_available", lambda: True)
    monkeypatch.setattr(module, "is_torch_tf32_available", lambda: True)
    monkeypatch.setattr(module, "enable_tf32", lambda on: None)
    return lambda values: HfArgumentParser(TrainingArguments).parse_dict(values)[0]


@pytest.mark.parametrize("case", CASES)
def test_transformers_reads_the_arguments(parse: Any, tmp_path: Path, case: str) -> None:
    values = arguments(tmp_path, settings(**CASES[case]))
    read = parse(values)
    assert read.per_device_train_batch_size * read.gradient_accumulation_steps == 8
    assert read.report_to == []
    del values["report_to"]
    for name, value in values.items():
        assert getattr(read, name) == value, name


def test_warmup_left_open_is_a_share_of_the_steps(parse: Any, tmp_path: Path) -> None:
    read = parse(arguments(tmp_path, settings(warmup=None)))
    assert read.get_warmup_steps(1000) == 30


def test_transformers_refuses_a_misspelt_key(parse: Any, tmp_path: Path) -> None:
    values = arguments(tmp_path, settings()) | {"per_device_batch_size": 2}
    with pytest.raises(ValueError, match="per_device_batch_size"):
        parse(values)


@pytest.mark.parametrize("task", ["pretrain", "lora", "prompt"])
def test_the_trainer_trains(tmp_path: Path, task: str) -> None:
    chosen = settings(
        precision="bf16-mixed",
        checkpointing="every-2",
        learning_rate=1e-2,
        expanded_heads=task == "lora",
    )
    folder = put(tmp_path / "내 실험", "transformers", llama(tmp_path / "m", task), chosen)
    path = folder / "training_args.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"logging_steps": 1}))
    command = [sys.executable, "train_hf.py", "--synthetic", "--cpu", "--steps", "12"]
    done = start([*command, "--selfcheck"], folder)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "NOT IN FORCE" not in done.stdout
    state = json.loads((folder / "checkpoints/checkpoint-12/trainer_state.json").read_text())
    course = [entry["loss"] for entry in state["log_history"] if "loss" in entry]
    assert len(course) == 12
    assert sum(course[-3:]) < sum(course[:3])
    adapters = folder / "checkpoints" / "adapter_config.json"
    assert adapters.is_file() == (task != "pretrain")


def test_fine_tuning_without_weights_is_refused(tmp_path: Path) -> None:
    folder = put(tmp_path / "run", "transformers", llama(tmp_path / "m", "full"))
    tokens = tmp_path / "tokens.jsonl"
    tokens.write_text('{"input_ids": [1, 2, 3]}\n')
    done = start([sys.executable, "train_hf.py", "--cpu", "--data", str(tokens)], folder)
    assert done.returncode == 2
    assert "task full starts from trained weights" in done.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("changed", "options", "says"),
    [
        ({}, ["--data", "없는 자료"], "없는 자료: no such dataset; name one with --data PATH"),
        ({}, [], "no dataset: name one with --data PATH"),
        ({"per_device_batch_size": 2}, ["--synthetic"], "per_device_batch_size"),
    ],
)
def test_what_is_missing_or_misspelt_is_one_line(
    tmp_path: Path, changed: dict[str, Any], options: list[str], says: str
) -> None:
    folder = put(tmp_path / "run", "transformers", llama(tmp_path / "m"))
    path = folder / "training_args.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))
    done = start([sys.executable, "train_hf.py", "--cpu", *options], folder)
    assert done.returncode == 2
    assert says in done.stderr.strip().splitlines()[-1]
    assert "Traceback" not in done.stderr


def two_gpus(folder: Path, **changed: Any) -> Path:
    chosen = settings(**{"strategy": "ddp", "accumulation": 2} | changed)
    return put(folder / "run", "transformers", on_two_gpus(llama(folder / "m")), chosen)


def steps(folder: Path) -> list[tuple[float, float]]:
    """Loss and gradient norm of each step that the Trainer wrote down."""
    (path,) = (folder / "checkpoints").glob("checkpoint-*/trainer_state.json")
    log = json.loads(path.read_text(encoding="utf-8"))["log_history"]
    return [(entry["loss"], entry["grad_norm"]) for entry in log if "loss" in entry]


@pytest.mark.parametrize(("copies", "aside"), [(1, False), (2, False), (1, True)])
def test_shares_are_the_same_step(tmp_path: Path, copies: int, aside: bool) -> None:
    """All draw the same samples for each optimizer step, whatever process has them."""
    alone = put(tmp_path / "alone", "transformers", llama(tmp_path / "m"))
    shared = two_gpus(tmp_path, strategy="fsdp2", shard_offload=aside)
    if copies > 1:
        plan = on_two_computers(llama(tmp_path / "m"))
        chosen = settings(strategy="fsdp2", shard_degree=2, accumulation=1)
        shared = put(tmp_path / "four", "transformers", plan, chosen)
    for folder in (alone, shared):
        path = folder / "training_args.json"
        values = json.loads(path.read_text()) | {"logging_steps": 1}
        asked = values.pop("ddp_backend", None)  # CPUs know gloo alone
        path.write_text(json.dumps(values))
    assert asked == ("cuda:nccl,cpu:gloo" if aside else None)
    shim = str(Path(__file__).with_name("cpus_as_gpus.py"))
    options = ["train_hf.py", "--synthetic", "--steps", "3", "--selfcheck"]
    one = start([sys.executable, *options, "--cpu"], alone)
    assert one.returncode == 0, one.stderr[-2000:]
    two = start([sys.executable, "-m", *torchrun(2 * copies), shim, *options], shared)
    assert two.returncode == 0, two.stderr[-2000:]
    (engine,) = [line for line in two.stdout.splitlines() if line.startswith("engine")]
    assert "21 of 21 weights shared by 2" in engine
    pairs = [*zip(sum(steps(shared), ()), sum(steps(alone), ()), strict=True)]
    differs = [abs(mine / whole - 1) for mine, whole in pairs]
    row = f"transformers, FSDP2{', offload' if aside else ''}, {2 * copies} processes"
    print(f"\n{row:44} loss {max(differs[::2]):7.1e}  norm    {max(differs[1::2]):7.1e}  {engine}")
    assert max(differs) <= SAME


def test_weights_in_four_bits_are_shared_in_the_same_step(tmp_path: Path) -> None:
    """QLoRA: each process has a part of the packed weights, and all scales."""
    pytest.importorskip("bitsandbytes")
    from transformers import LlamaConfig, LlamaForCausalLM

    model, weights = tmp_path / "m", tmp_path / "weights"
    plan = llama(model, "qlora")
    LlamaForCausalLM(LlamaConfig.from_pretrained(model)).save_pretrained(weights)
    alone = put(tmp_path / "alone", "transformers", plan, settings(quantization="nf4"))
    chosen = settings(quantization="nf4", strategy="fsdp2", accumulation=2)
    shared = put(tmp_path / "run", "transformers", on_two_gpus(plan), chosen)
    for folder in (alone, shared):
        path = folder / "training_args.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"logging_steps": 1}))
    shim = str(Path(__file__).with_name("cpus_as_gpus.py"))
    options = ["train_hf.py", "--synthetic", "--steps", "3", "--selfcheck"]
    options += ["--weights", str(weights)]
    one = start([sys.executable, *options, "--cpu"], alone)
    assert one.returncode == 0, one.stderr[-2000:]
    two = start([sys.executable, "-m", *TORCHRUN, shim, *options], shared)
    assert two.returncode == 0, two.stderr[-2000:]
    (engine,) = [line for line in two.stdout.splitlines() if line.startswith("engine")]
    assert "49 of 49 weights shared by 2" in engine
    for mine, whole in zip(steps(shared), steps(alone), strict=True):
        assert mine == pytest.approx(whole, rel=1e-5)


def test_fsdp_that_would_train_whole_models_is_refused(tmp_path: Path) -> None:
    options = ["--synthetic", "--cpu", "--steps", "2", "--selfcheck"]
    folder = two_gpus(tmp_path, strategy="fsdp2")
    done = start([sys.executable, "-m", *TORCHRUN, "train_hf.py", *options], folder)
    assert done.returncode != 0
    assert "selfcheck: not in force on this machine: engine" in done.stderr


def test_two_processes_are_two_and_wrapped_for_it(tmp_path: Path) -> None:
    options = ["--synthetic", "--cpu", "--steps", "2", "--selfcheck"]
    done = start([sys.executable, "-m", *TORCHRUN, "train_hf.py", *options], two_gpus(tmp_path))
    assert done.returncode == 0, done.stderr[-2000:]
    (engine,) = [line for line in done.stdout.splitlines() if line.startswith("engine")]
    assert "active: DistributedDataParallel" in engine


def test_two_processes_that_became_one_are_refused(tmp_path: Path) -> None:
    options = ["--synthetic", "--cpu", "--steps", "2", "--selfcheck"]
    done = start([sys.executable, "train_hf.py", *options], two_gpus(tmp_path))
    assert done.returncode == 2
    last = done.stderr.strip().splitlines()[-1]
    assert last == "selfcheck: not in force on this machine: gpus, engine, batch"
