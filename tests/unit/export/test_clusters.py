"""The job files are read by the tools themselves, and start what a cluster would."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from exporting import (
    STEP,
    agree,
    llama,
    on_two_computers,
    proof_of,
    put,
    settings,
    start,
    whole_run,
)
from test_slurm import torchrun

from trainwright import export
from trainwright.messages import UserError
from trainwright.plan.schema import MachineChoice, Plan

FILES = {
    "skypilot": "task.sky.yaml",
    "dstack": "task.dstack.yml",
    "kubeflow": "trainjob.yaml",
    "ray": "runtime_env.yaml",
}


def exported(folder: Path, target: str, gpu: str = "rtx-4090", nodes: int = 2) -> Path:
    """Return the folder of a plan on computers of two GPUs."""
    plan = on_two_computers(llama(folder / "m")).model_dump(mode="json", exclude_none=True)
    plan["machine"]["nodes"] = nodes
    plan["machine"]["gpus"][0]["id"] = gpu
    plan["name"] = "작은 라마 #1\nnodes: 9"
    chosen = settings(strategy="fsdp2", micro_batch=4 // nodes, accumulation=1, **STEP)
    return put(folder / "run", target, Plan.model_validate(plan), chosen)


def document(folder: Path, target: str) -> dict[str, Any]:
    read: dict[str, Any] = yaml.safe_load((folder / FILES[target]).read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize(
    ("gpu", "asked"),
    [
        ("rtx-4090", "RTX4090:2"),
        ("NVIDIA A100-SXM4-80GB", "A100-80GB:2"),
        ("a100-40gb-pcie", "A100:2"),
        ("h100-80gb-sxm", "H100:2"),
        ("rtx-6000-ada", "RTX6000-Ada:2"),
        ("rtx-a6000", "RTXA6000:2"),
        ("l40s", "L40S:2"),
    ],
)
@pytest.mark.slow
def test_skypilot_takes_the_task_with_its_own_names(tmp_path: Path, gpu: str, asked: str) -> None:
    sky = pytest.importorskip("sky")
    read = document(exported(tmp_path, "skypilot", gpu), "skypilot")
    assert read["resources"]["accelerators"] == asked
    task = sky.Task.from_yaml_config(read)
    assert (task.num_nodes, task.name) == (2, "train-1-nodes-9")
    with pytest.raises(ValueError, match="nodes"):
        sky.Task.from_yaml_config(read | {"nodes": 2})


def test_dstack_takes_the_task(tmp_path: Path) -> None:
    found = pytest.importorskip("dstack._internal.core.models.configurations")
    read = document(exported(tmp_path, "dstack", "rtx-a6000"), "dstack")
    task = found.parse_apply_configuration(read)
    gpu = task.resources.gpu
    assert (task.nodes, gpu.name, gpu.count.min, gpu.memory.min) == (2, ["A6000"], 2, 48)
    with pytest.raises(Exception, match="num_nodes"):
        found.parse_apply_configuration(read | {"num_nodes": 2})


def test_kubeflow_takes_the_job(tmp_path: Path) -> None:
    models = pytest.importorskip("kubeflow_trainer_api.models")
    read = document(exported(tmp_path, "kubeflow"), "kubeflow")
    job = models.TrainerV1alpha1TrainJob.from_dict(read)
    trainer = job.spec.trainer
    assert (trainer.num_nodes, trainer.num_proc_per_node) == (2, 2)
    kept = job.to_dict()  # what it does not know is dropped without a word
    assert kept["spec"]["trainer"].keys() == read["spec"]["trainer"].keys()
    assert kept["metadata"] == read["metadata"]


@pytest.mark.slow
def test_ray_trains_with_a_process_for_each_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ray = pytest.importorskip("ray")
    folder = exported(tmp_path, "ray", nodes=1)
    read = document(folder, "ray")
    ray.runtime_env.RuntimeEnv(**read)
    assert read.keys() <= ray.runtime_env.RuntimeEnv.known_fields  # others are taken silently
    with pytest.raises(TypeError):
        ray.runtime_env.RuntimeEnv(**read | {"pip": 1})
    options = ["--synthetic", "--cpu", "--steps", "2", "--selfcheck", "--output", "out"]
    options[-1] = str(folder / "out")  # workers start elsewhere
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")  # else Ray keeps a token in the home folder
    done = start([sys.executable, "ray_train.py", *options], folder)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "active: 21 of 21 weights shared" in done.stdout + done.stderr
    agree(folder / "out", whole_run(tmp_path), "ray, FSDP2, 2 workers")


@pytest.mark.parametrize("target", FILES)
@pytest.mark.parametrize("nodes", [1, 2])
def test_commands_are_read_by_bash(tmp_path: Path, target: str, nodes: int) -> None:
    read = document(exported(tmp_path, target, nodes=nodes), target)
    trainer = read.get("spec", {}).get("trainer", {"command": []})
    for line in (read.get("run"), *read.get("commands", ()), *trainer["command"][2:]):
        subprocess.run(["bash", "-n", "-c", line or ""], check=True)


@pytest.mark.parametrize("target", FILES)
def test_a_plan_for_this_computer_asks_no_cluster(tmp_path: Path, target: str) -> None:
    plan = llama(tmp_path).model_copy(update={"machine": MachineChoice(local=True)})
    with pytest.raises(UserError) as refused:
        export.files(target, plan, settings(), {}, "en")
    assert refused.value.message.id == "export.cluster-gpu"


NODES = {
    "skypilot": {"SKYPILOT_NODE_IPS": "127.0.0.1\n127.0.0.1"},
    "dstack": {"DSTACK_MASTER_NODE_IP": "127.0.0.1"},
}


@pytest.mark.slow
@pytest.mark.parametrize("target", NODES)
def test_two_computers_train_together(tmp_path: Path, target: str) -> None:
    folder = exported(tmp_path, target)
    read = document(folder, target)
    line = read.get("run") or read["commands"][-1]
    tool = tmp_path / "torchrun"
    tool.write_text(torchrun(), encoding="utf-8")
    tool.chmod(0o755)
    options = "--synthetic --cpu --steps 2 --selfcheck --output out"
    common = os.environ | NODES[target] | {"OPTIONS": options, "OMP_NUM_THREADS": "1"}
    common |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": ""}
    started = [
        subprocess.Popen(
            ["bash", "-c", line],
            cwd=folder,
            env=common | {f"{target.upper()}_NODE_RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in (0, 1)
    ]
    texts = [one.communicate(timeout=400)[0] for one in started]
    assert [one.returncode for one in started] == [0, 0], texts[0][-2000:]
    proof = proof_of(texts[0])
    assert "21 of 21 weights shared" in proof
    agree(folder / "out", whole_run(tmp_path), f"{target}, FSDP2, 2 nodes", proof)
