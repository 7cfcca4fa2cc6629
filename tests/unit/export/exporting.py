"""A tiny language model's plan, and a way to run what is exported from it."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from trainwright import export
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}

SETTINGS = FullSettings(
    precision="fp32",
    quantization="none",
    kv_cache="bf16",
    micro_batch=2,
    accumulation=4,
    checkpointing="none",
    optimizer="adamw",
    attention="sdpa",
    compile=False,
    channels_last=False,
    allocator="native",
    strategy="single",
    learning_rate=3e-3,
    warmup=2,
    num_workers=0,
    prefetch_factor=2,
    pin_memory=True,
    persistent_workers=False,
)


def settings(**changed: Any) -> FullSettings:
    return SETTINGS.model_copy(update=changed)


def plan(model: dict[str, Any], task: str = "pretrain", **fields: Any) -> Plan:
    workload = {"task": task, "inputs": {"sequence_length": 16}, "effective_batch": 8}
    return Plan.model_validate(
        {
            "name": "작은 라마",
            "model": model,
            "workload": workload,
            "machine": {"gpus": [{"id": "rtx-4090"}]},
            **fields,
        }
    )


def llama(folder: Path, task: str = "pretrain", **config: Any) -> Plan:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    path.write_text(json.dumps(LLAMA | config), encoding="utf-8")
    return plan({"hf": str(path)}, task)


def on_two_gpus(plan: Plan) -> Plan:
    document = plan.model_dump(mode="json", exclude_none=True)
    document["machine"]["gpus"][0]["count"] = 2
    return Plan.model_validate(document)


def on_two_computers(plan: Plan) -> Plan:
    """Return the plan on two computers of two GPUs."""
    document = on_two_gpus(plan).model_dump(mode="json", exclude_none=True)
    document["machine"] |= {"nodes": 2, "network": {"kind": "ethernet-100g"}}
    return Plan.model_validate(document)


def put(folder: Path, target: str, plan: Plan, settings: FullSettings = SETTINGS) -> Path:
    export.write(export.files(target, plan, settings, {}, "ko"), folder)
    return folder


def edit(path: Path, **sections: Any) -> Path:
    """Change keys of the sections of a plan.json, as a person with an editor would."""
    document = json.loads(path.read_text(encoding="utf-8"))
    for section, values in sections.items():
        document[section] |= values
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


_DRIVER = """
import json, sys
sys.path.insert(0, sys.argv[1])
import train
for arguments in json.loads(sys.argv[2]):
    sys.argv = ["train.py", *arguments]
    code = train.main()
    sys.stderr.write(f"<exit {code}>\\n")
"""
"""Several runs in one process, because importing torch takes longer than they do."""


def drive(folder: Path, runs: list[list[str]]) -> list[tuple[int, str]]:
    """Run the exported train.py with each list of arguments; return exit codes and errors."""
    done = start([sys.executable, "-c", _DRIVER, str(folder), json.dumps(runs)], folder)
    assert done.returncode == 0, done.stderr[-2000:]
    *parts, rest = done.stderr.split("<exit ")
    codes = [int(part.partition(">")[0]) for part in [*parts[1:], rest]]
    texts = [parts[0], *(part.partition(">\n")[2] for part in parts[1:])]
    return list(zip(codes, texts, strict=True))


def start(command: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    environment = os.environ | {
        "OMP_NUM_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "HF_HUB_OFFLINE": "1",
        "PYTHONUTF8": "1",
    }
    return subprocess.run(
        command,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=500,
        check=False,
    )


def torchrun(processes: int) -> list[str]:
    return ["torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]


TORCHRUN = torchrun(2)


_DRIVER_OF_TWO = """
import json, os, sys
sys.path.insert(0, sys.argv[1])
import train
import torch.distributed as dist
train.World.leave = lambda self: None  # a group cannot be made a second time
for arguments in json.loads(sys.argv[2]):
    sys.argv = ["train.py", *arguments]
    code = train.main()
    if dist.is_initialized():
        world = train.World(dist.get_rank(), 2, train.torch.device("cpu"))
        train.join = lambda plan, cpu: world
    if os.environ["RANK"] == "0":
        sys.stderr.write(f"<exit {code}>\\n")
"""


def drive_two(folder: Path, runs: list[list[str]]) -> list[int]:
    """Run the exported train.py on two processes with each list of arguments."""
    driver = folder / "drive.py"
    driver.write_text(_DRIVER_OF_TWO, encoding="utf-8")
    command = [sys.executable, "-m", *TORCHRUN, str(driver), str(folder), json.dumps(runs)]
    done = start(command, folder)
    codes = [int(part.partition(">")[0]) for part in done.stderr.split("<exit ")[1:]]
    assert len(codes) == len(runs), done.stderr[-3000:]
    return codes


def losses(folder: Path) -> list[float]:
    lines = (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["loss"] for line in lines]


STEP: dict[str, Any] = {"optimizer": "sgd", "learning_rate": 0.5, "warmup": 0}
"""Settings with which each step moves a weight by its gradient, clipped by the norm of all."""
RUN = ["--synthetic", "--cpu", "--steps", "2", "--selfcheck"]
SAME = 1e-5
"""By which a divided step may differ in fp32."""


def trained(folder: Path, name: str = "model") -> dict[str, Any]:
    """Return the weights that a run has written."""
    from safetensors.torch import load_file

    return load_file(folder / "model" / f"{name}.safetensors")


def agree(one: Path, other: Path, name: str, proof: str = "") -> None:
    """Compare two runs with ``STEP``, and print a row of the table of equivalence.

    Equal weights after it are equal gradients and an equal norm. ``proof`` is what the run says
    that it is.
    """
    mine, others = trained(one), trained(other)
    assert mine.keys() == others.keys()
    moved = max(float((mine[key] - others[key]).abs().max()) for key in mine)
    pairs = list(zip(losses(one), losses(other), strict=True))
    lost = max(abs(first / second - 1) for first, second in pairs)
    print(f"\n{name:44} loss {lost:7.1e}  weights {moved:7.1e}  {proof.strip()}")
    assert max(lost, moved) <= SAME


def proof_of(text: str, name: str = "strategy") -> str:
    """Return what a run says of one setting."""
    (line,) = [line for line in text.splitlines() if line.startswith(f"{name} ")]
    return line.partition("active:")[2]


def whole_run(root: Path, **config: Any) -> Path:
    """Return the output of one process that takes each step in one micro-batch."""
    folder = put(root / "alone", "plain", llama(root / "m", **config), settings(**STEP))
    whole = str(edit(folder / "plan.json", batch={"micro": 8, "accumulation": 1}))
    done = start([sys.executable, "train.py", *RUN, "--plan", whole, "--output", "whole"], folder)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder / "whole"
