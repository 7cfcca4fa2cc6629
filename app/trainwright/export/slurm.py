"""Target ``slurm``: the programs of ``plain``, started by a job script for sbatch."""

import re
from collections.abc import Mapping

from trainwright.export import plain
from trainwright.export.batch import batch
from trainwright.export.header import Reasons
from trainwright.export.write import Files
from trainwright.messages import Language, Message
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings

made_for: Mapping[str, str] = plain.made_for

SCRIPT = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --nodes={nodes}
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node={gpus}
#SBATCH --cpus-per-task={cpus}
#SBATCH --output=%x-%j.log

# sbatch job.sbatch --data DATA: options of train.py follow the name of this file.
set -euo pipefail

# One torchrun on each node; all meet at the first.
mapfile -t nodes < <(scontrol show hostnames "$SLURM_JOB_NODELIST")
port=$((20000 + SLURM_JOB_ID % 10000))
srun --kill-on-bad-exit=1 torchrun \\
    --nnodes="$SLURM_NNODES" --nproc-per-node={gpus} \\
    --rdzv-id="$SLURM_JOB_ID" --rdzv-backend=c10d --rdzv-endpoint="${{nodes[0]}}:$port" \\
    train.py "$@"
"""
"""A CPU for each process and for each of its loader's workers."""
ALONE = """\
#!/bin/bash
#SBATCH --job-name={name}
#SBATCH --ntasks=1
#SBATCH --gpus-per-node=1
#SBATCH --cpus-per-task={cpus}
#SBATCH --output=%x-%j.log

# sbatch job.sbatch --data DATA: options of train.py follow the name of this file.
set -euo pipefail
srun python train.py "$@"
"""


def files(plan: Plan, settings: FullSettings, reasons: Reasons, language: Language) -> Files:
    """Return the exported files: train.py, job.sbatch, plan.json, and what they read.

    Raises:
        UserError: the model's own file cannot be read.
    """
    extra = {"job.sbatch": job(plan, settings)}
    return plain.started_by("sbatch job.sbatch", extra, plan, settings, reasons, language)


def not_expressible(plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
    """Return what the files leave out or replace, one message each."""
    return plain.not_expressible(plan, settings)


def job(plan: Plan, settings: FullSettings) -> str:
    """Return the job script."""
    parts = batch(plan, settings)
    return (SCRIPT if settings.several else ALONE).format(
        name=re.sub(r"[^A-Za-z0-9]+", "-", plan.name).strip("-") or "train",
        nodes=parts.nodes,
        gpus=parts.each,
        cpus=parts.each * (1 + settings.num_workers),
    )
