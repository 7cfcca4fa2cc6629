"""The job script is read by bash, and starts what a cluster would."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from exporting import (
    RUN,
    STEP,
    agree,
    llama,
    on_two_gpus,
    proof_of,
    put,
    settings,
    start,
    whole_run,
)

SCONTROL = """#!/bin/bash
[ "$1 $2 $3" = "show hostnames cluster[1-2]" ] && printf 'localhost\\nlocalhost\\n'
"""
SRUN = """#!/bin/bash
while [[ "$1" == --* ]]; do shift; done
for ((node = 0; node < SLURM_NNODES; node++)); do "$@" & done
wait
"""
"""Both nodes are this computer."""


def exported(folder: Path, strategy: str) -> Path:
    plan = llama(folder / "m").model_copy(update={"name": "작은 라마 #1\n#SBATCH --nodes=9"})
    several = strategy != "single"
    steps = 2 if several else 4
    chosen = settings(strategy=strategy, accumulation=steps, num_workers=3, **STEP)
    return put(folder / "run", "slurm", on_two_gpus(plan) if several else plan, chosen)


@pytest.mark.parametrize("strategy", ["single", "ddp", "fsdp2"])
def test_the_script_is_clean_and_asks_for_what_the_plan_has(tmp_path: Path, strategy: str) -> None:
    script = exported(tmp_path, strategy) / "job.sbatch"
    subprocess.run(["bash", "-n", str(script)], check=True)
    if shellcheck := shutil.which("shellcheck"):
        subprocess.run([shellcheck, str(script)], check=True)
    lines = script.read_text(encoding="utf-8").splitlines()
    asked = {line.removeprefix("#SBATCH --") for line in lines if line.startswith("#SBATCH")}
    gpus = 1 if strategy == "single" else 2
    wanted = {"job-name=1-SBATCH-nodes-9", f"gpus-per-node={gpus}", f"cpus-per-task={4 * gpus}"}
    assert wanted <= asked
    assert "nodes=9" not in asked
    assert "sbatch job.sbatch --synthetic" in (script.parent / "train.py").read_text("utf-8")


@pytest.mark.slow
def test_two_nodes_train_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = exported(tmp_path, "fsdp2")
    script = folder / "job.sbatch"
    text = script.read_text(encoding="utf-8")
    # The plan's two GPUs are in two nodes here.
    script.write_text(text.replace("--nproc-per-node=2", "--nproc-per-node=1"), encoding="utf-8")
    tools = tmp_path / "tools"
    tools.mkdir()
    for name, content in (("scontrol", SCONTROL), ("srun", SRUN), ("torchrun", torchrun())):
        (tools / name).write_text(content, encoding="utf-8")
        (tools / name).chmod(0o755)
    for name, value in {
        "PATH": f"{tools}:{os.environ['PATH']}",
        "SLURM_JOB_NODELIST": "cluster[1-2]",
        "SLURM_NNODES": "2",
        "SLURM_JOB_ID": str(os.getpid()),
    }.items():
        monkeypatch.setenv(name, value)
    done = start(["bash", "job.sbatch", *RUN, "--output", "out dir"], folder)
    assert done.returncode == 0, done.stderr[-2000:]
    proof = proof_of(done.stdout)
    assert "21 of 21 weights shared" in proof
    agree(folder / "out dir", whole_run(tmp_path), "slurm, FSDP2, 2 nodes", proof)


def torchrun() -> str:
    return f'#!/bin/bash\nexec {sys.executable} -m torch.distributed.run "$@"\n'
