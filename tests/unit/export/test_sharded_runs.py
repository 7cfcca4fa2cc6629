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
    RUN,
    SAME,
    STEP,
    TORCHRUN,
    agree,
    drive,
    drive_two,
    edit,
    llama,
    losses,
    on_two_computers,
    on_two_gpus,
    proof_of,
    put,
    settings,
    start,
    torchrun,
    trained,
    whole_run,
)

pytestmark = pytest.mark.slow

QWEN3 = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "head_dim": 8}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one process does with one micro-batch a step, and with four."""
    root = tmp_path_factory.mktemp("alone")
    folder = whole_run(root).parent
    parts = str(edit(folder / "plan.json", batch={"micro": 2, "accumulation": 4}))
    done = start([sys.executable, "train.py", *RUN, "--plan", parts, "--output", "parts"], folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def test_accumulation_is_the_same_step(alone: Path) -> None:
    agree(alone / "parts", alone / "whole", "plain, four micro-batches")


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
    proof = proof_of(done.stdout)
    wanted = "21 of 21 weights shared, 3 groups" if strategy == "fsdp2" else "Distributed"
    assert wanted in proof
    agree(folder / "out", alone / "whole", f"plain, {strategy}, 2 processes", proof)


def test_copies_on_two_computers_are_the_same_step(tmp_path: Path, alone: Path) -> None:
    """HSDP: two processes share each copy, and copies add up their shares once a step."""
    plan = on_two_computers(llama(tmp_path / "m"))
    chosen = settings(strategy="fsdp2", shard_degree=2, micro_batch=1, accumulation=2, **STEP)
    folder = put(tmp_path / "run", "plain", plan, chosen)
    for options in (["--stop-at", "1"], ["--resume"]):
        launch = [sys.executable, "-m", *torchrun(4), "train.py", *RUN, "--output", "out"]
        done = start([*launch, *options], folder)
        assert done.returncode == 0, done.stderr[-2000:]
    found = [line.split("active:")[1] for line in done.stdout.splitlines() if "shar" in line]
    assert "21 of 21 weights shared, 3 groups" in found[0]
    mesh = next(line for line in found if "mesh" in line)
    assert "mesh of 2 x 2" in mesh
    agree(folder / "out", alone / "whole", "plain, HSDP, 4 processes", mesh)


@pytest.mark.parametrize("processes", [2, 4])
@pytest.mark.parametrize("model", ["llama", "qwen3"])
def test_split_layers_are_the_same_step(
    tmp_path: Path, alone: Path, processes: int, model: str
) -> None:
    """Tensor parallelism: two processes split each layer; of four, two pairs share the parts.

    Qwen3 normalises each head, whose weights all processes hold whole.
    """
    chosen = settings(strategy="fsdp2", tensor_degree=2, **STEP)
    config = {} if model == "llama" else QWEN3
    plan = (on_two_gpus if processes == 2 else on_two_computers)(llama(tmp_path / "m", **config))
    chosen = chosen.model_copy(update={"accumulation": 8 // processes})
    folder = put(tmp_path / "run", "plain", plan, chosen)
    for options in (["--stop-at", "1"], ["--resume"]):
        launch = [sys.executable, "-m", *torchrun(processes), "train.py", *RUN, "--output", "out"]
        done = start([*launch, *options], folder)
        assert done.returncode == 0, done.stderr[-2000:]
    lines = {
        line.split()[0]: line.split("active:")[1]
        for line in done.stdout.splitlines()
        if "active:" in line
    }
    assert "16 of 16 layers split over 2" in lines["tensor_degree"]
    if model == "qwen3":
        alone = whole_run(tmp_path, **config).parent
    kind = "TP" if processes == 2 else "FSDP x TP"
    row = f"plain, {kind}, {model}, {processes} processes"
    agree(folder / "out", alone / "whole", row, lines["tensor_degree"])


@pytest.mark.parametrize(("copies", "aside"), [(1, False), (2, False), (1, True)])
def test_accelerate_shares_weights_in_the_same_step(
    tmp_path: Path, alone: Path, copies: int, aside: bool
) -> None:
    pytest.importorskip("accelerate")
    folder = exported(tmp_path, "accelerate", "fsdp2", shard_offload=aside)
    if copies > 1:
        chosen = settings(strategy="fsdp2", shard_degree=2, accumulation=1, **STEP)
        folder = put(tmp_path / "four", "accelerate", on_two_computers(llama(tmp_path)), chosen)
        path = folder / "accelerate.yaml"  # both computers are this one
        text = path.read_text(encoding="utf-8")
        path.write_text(text.replace("num_machines: 2", "num_machines: 1"), encoding="utf-8")
    launch = ["accelerate.commands.launch", "--config_file", "accelerate.yaml"]
    shim = str(Path(__file__).with_name("cpus_as_gpus.py"))
    options = [option for option in RUN if option != "--cpu"]
    done = start(
        [sys.executable, "-m", *launch, shim, "train.py", *options, "--output", "out"], folder
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = [line for line in done.stdout.splitlines() if line.startswith("accelerate ")]
    assert f"active: FSDP2, reshard_after_forward True, offload {aside}" in found[0]
    assert copies == 1 or "active: mesh of [2, 2]" in found[1]
    row = f"accelerate, FSDP2{', offload' if aside else ''}, {2 * copies} processes"
    agree(folder / "out", alone / "whole", row, found[0].partition("active:")[2])


def test_accelerate_that_would_train_whole_models_is_refused(tmp_path: Path) -> None:
    """It does so on CPUs, and where its file was left out."""
    pytest.importorskip("accelerate")
    folder = exported(tmp_path, "accelerate", "fsdp2")
    done = start([sys.executable, "-m", *TORCHRUN, "train.py", *RUN], folder)
    assert done.returncode != 0
    assert "accelerate runs MULTI_CPU, the plan says fsdp2" in done.stderr


def test_deepspeed_with_whole_copies_is_the_same_step(
    tmp_path: Path, alone: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("deepspeed")
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    folder = exported(tmp_path, "deepspeed", "ddp")
    assert json.loads((folder / "ds_config.json").read_text())["zero_optimization"]["stage"] == 0
    done = start([sys.executable, "-m", *TORCHRUN, "train.py", *RUN, "--output", "out"], folder)
    assert done.returncode == 0, done.stderr[-2000:]
    proof = proof_of(done.stdout)
    assert "DeepSpeedEngine, stage 0" in proof
    agree(folder / "out", alone / "whole", "deepspeed, stage 0, 2 processes", proof)


@pytest.mark.parametrize("strategy", ["zero1", "zero2", "zero3"])
def test_deepspeed_shares_state_in_the_same_step(
    tmp_path: Path, alone: Path, strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("deepspeed")
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    folder = exported(tmp_path, "deepspeed", strategy)
    path = folder / "ds_config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    assert config["zero_optimization"]["reduce_bucket_size"] == 500_000_000
    config["zero_optimization"]["reduce_bucket_size"] = 100_000  # 2 GB else, for a tiny model
    path.write_text(json.dumps(config), encoding="utf-8")
    launch = [sys.executable, "-m", *TORCHRUN, "train.py", *RUN, "--output", "out"]
    for options in (["--stop-at", "1"], ["--resume"]):
        done = start([*launch, *options], folder)
        assert done.returncode == 0, done.stderr[-2000:]
    proof = proof_of(done.stdout)
    assert f"stage {strategy[-1]}, DeepSpeedZero" in proof
    agree(folder / "out", alone / "whole", f"deepspeed, {strategy}, 2 processes", proof)


def test_shares_learn_save_and_resume_with_every_setting(tmp_path: Path) -> None:
    folder = exported(tmp_path, "plain", "fsdp2", optimizer="adamw", learning_rate=3e-3)
    changes: dict[str, dict[str, Any]] = {
        "base": {},
        "kept": {"reshard_after_forward": False},
        "aside": {"shard_offload": True},
        "recomputed": {"checkpointing": "full"},
        "chunked": {"cross_entropy": "chunked"},
        "muon": {"optimizer": "muon"},
        "bf16-mixed": {"precision": "bf16-mixed"},
    }
    llama(folder / "tied", tie_word_embeddings=True)
    runs = [
        [*RUN, "--plan", variant(folder, name, settings=change), "--output", name]
        for name, change in changes.items()
    ]
    one_table = variant(folder, "tied", model={"where": "tied"})
    runs.append([*RUN, "--plan", one_table, "--output", "tied"])
    runs.append([*RUN, "--stop-at", "1", "--output", "half"])
    runs.append([*RUN, "--resume", "--output", "half"])
    muon = ["--plan", variant(folder, "muon", settings=changes["muon"]), "--output", "half-muon"]
    runs += [[*RUN, "--stop-at", "1", *muon], [*RUN, "--resume", *muon]]
    assert set(drive_two(folder, runs)) == {0}
    for name in ("kept", "aside", "recomputed", "chunked"):
        agree(folder / name, folder / "base", f"plain, fsdp2, {name}, AdamW")
    agree(folder / "half", folder / "base", "plain, fsdp2, resumed")
    agree(folder / "half-muon", folder / "muon", "plain, fsdp2, Muon resumed")
    assert losses(folder / "bf16-mixed") == pytest.approx(losses(folder / "base"), rel=1e-2)
    assert "lm_head.weight" not in trained(folder / "tied")
    one = put(tmp_path / "one", "plain", llama(tmp_path / "one_table", tie_word_embeddings=True),
              settings(learning_rate=3e-3, warmup=0))  # fmt: skip
    ((code, text),) = drive(one, [[*RUN, "--output", "tied"]])
    assert code == 0, text
    agree(folder / "tied", one / "tied", "plain, fsdp2, tied embeddings")
    architectures = json.loads((folder / "base" / "model" / "config.json").read_text())
    assert architectures["architectures"] == ["LlamaForCausalLM"]


def test_adapters_beside_shared_weights_train_and_resume(tmp_path: Path) -> None:
    plan = on_two_gpus(llama(tmp_path / "m", "lora"))
    chosen = settings(strategy="fsdp2", accumulation=2, precision="bf16-mixed")
    folder = put(tmp_path / "run", "plain", plan, chosen)
    runs = [[*RUN, "--stop-at", "1", "--output", "half"], [*RUN, "--resume", "--output", "half"]]
    assert drive_two(folder, [*runs, [*RUN, "--output", "whole"]]) == [0, 0, 0]
    assert losses(folder / "half") == losses(folder / "whole")
    assert (folder / "half" / "model" / "adapter_config.json").is_file()


@pytest.mark.parametrize("target", ["plain", "accelerate"])
def test_weights_in_four_bits_are_shared_in_the_same_step(tmp_path: Path, target: str) -> None:
    """QLoRA: each process has a part of the packed weights, and all scales."""
    pytest.importorskip("bitsandbytes")
    from transformers import LlamaConfig, LlamaForCausalLM

    model = tmp_path / "m"
    plan = llama(model, "qlora")
    LlamaForCausalLM(LlamaConfig.from_pretrained(model)).save_pretrained(tmp_path / "weights")
    chosen = settings(quantization="nf4", micro_batch=4, accumulation=2, **STEP)
    alone = put(tmp_path / "alone", "plain", plan, chosen)
    options = [*RUN, "--weights", str(tmp_path / "weights"), "--output", "out"]
    one = start([sys.executable, "train.py", *options], alone)
    assert one.returncode == 0, one.stderr[-2000:]
    shared = chosen.model_copy(update={"strategy": "fsdp2", "micro_batch": 2})
    folder = put(tmp_path / "run", target, on_two_gpus(plan), shared)
    launch = [*TORCHRUN, "train.py", *options]
    if target == "accelerate":
        shim = str(Path(__file__).with_name("cpus_as_gpus.py"))
        given = [option for option in options if option != "--cpu"]
        launch = ["accelerate.commands.launch", "--config_file", "accelerate.yaml", shim]
        launch += ["train.py", *given]
    two = start([sys.executable, "-m", *launch], folder)
    assert two.returncode == 0, two.stderr[-2000:]
    (line,) = [line for line in two.stdout.splitlines() if line.startswith("strategy")]
    assert "49 of 49 weights shared, 3 groups" in line
    assert losses(folder / "out") == pytest.approx(losses(alone / "out"), rel=SAME)
    mine, others = (trained(one / "out", "adapter_model") for one in (folder, alone))
    assert mine.keys() == others.keys()
    assert max(float((mine[name] - others[name]).abs().max()) for name in mine) <= SAME


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
