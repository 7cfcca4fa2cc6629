"""Targets ``skypilot``, ``dstack``, ``kubeflow`` and ``ray``: ``plain``'s programs, and a job file.

Each but Ray starts one torchrun on every computer. ``OPTIONS`` are those of train.py. Ray Train
starts a process for each GPU, by a program of its own.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from trainwright.catalog import GpuRecord
from trainwright.catalog.query import find_gpu
from trainwright.export import plain, programs
from trainwright.export.batch import Batch, batch
from trainwright.export.header import Reasons
from trainwright.export.model import definition
from trainwright.export.write import Files
from trainwright.messages import Language, Message, UserError, render
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings
from trainwright.yamltext import dump

SECTIONS = frozenset({"resources", "metadata", "spec", "trainer"})
"""Keys of the files whose values have a line each."""
NAME_LENGTH = 40
"""Characters of a job's name: dstack allows 41, and Kubernetes adds some of its own to 63."""


@dataclass(frozen=True, slots=True)
class Job:
    """What a job file is made of."""

    name: str
    """Small letters, digits and dashes, a letter first, as all three ask for."""
    gpu: GpuRecord
    parts: Batch
    packages: tuple[str, ...]
    """Libraries with their version ranges, as pip takes them."""

    @property
    def install(self) -> str:
        """The command that installs the libraries."""
        return " ".join(("pip install", *(f"'{package}'" for package in self.packages)))


@dataclass(frozen=True, slots=True)
class Cluster:
    """A target whose job file is YAML."""

    file: str
    start: str
    """Command with ``{}`` for the options."""
    document: Callable[[Job], dict[str, Any]]
    remark: Message | None = None
    program: str = ""
    """Folder and name of a program that starts the others."""
    needs: Mapping[str, str] = field(default_factory=dict)
    """Version ranges of what the program imports."""

    @property
    def made_for(self) -> Mapping[str, str]:
        """Version ranges by library: those of the programs."""
        return {**plain.made_for, **self.needs}

    def files(
        self, plan: Plan, settings: FullSettings, reasons: Reasons, language: Language
    ) -> Files:
        """Return the exported files: train.py, the job file, plan.json, and what they read.

        Raises:
            UserError: the plan names no GPU to ask for, or the model's own file cannot be read.
        """
        head = f"# {render(self.remark, language)}\n" if self.remark is not None else ""
        extra = {self.file: head + dump(self.document(job(plan, settings)), SECTIONS)}
        if self.program:
            extra[self.program.rpartition("/")[2]] = programs.own(self.program)
        return plain.started_by(self.start, extra, plan, settings, reasons, language)

    def not_expressible(self, plan: Plan, settings: FullSettings) -> tuple[Message, ...]:
        """Return what the files leave out or replace, one message each."""
        return plain.not_expressible(plan, settings)


def job(plan: Plan, settings: FullSettings) -> Job:
    """Return what a job file is made of.

    Raises:
        UserError: the plan names no GPU to ask for.
    """
    if not plan.machine.gpus:
        raise UserError.of("export.cluster-gpu")
    found = find_gpu(plan.machine.gpus[0].id).record
    assert found is not None, "the plan was resolved"
    needed = programs.libraries(plan, settings, definition(plan))
    packages = tuple(f"{name}{versions}" for name, versions in needed.items() if name != "python")
    name = re.sub(r"[^a-z0-9]+", "-", f"train-{plan.name.lower()}")[:NAME_LENGTH].strip("-")
    return Job(name, found, batch(plan, settings), packages)


def launch(parts: Batch, rank: str, first: str) -> str:
    """Return the command of each computer, with what the cluster calls its number and the first."""
    meeting = f"--node-rank={rank} --master-addr={first} --master-port=29500"
    return f"{programs.torchrun(parts, meeting=meeting)} $OPTIONS"


_DROPPED = re.compile(r"[0-9]+gb|sxm|pcie|nvl|server|workstation")


def short(record: GpuRecord) -> tuple[str, int]:
    """Return a GPU's name as those who rent it out write it, ``RTX4090``, and its GB."""
    words = [word for word in record.id.split("-") if not _DROPPED.fullmatch(word)]
    spelt = (word.capitalize() if word in ("ada", "ti") else word.upper() for word in words)
    return "".join(spelt), round(record.memory_bytes.value / (1 << 30))


def _skypilot(job: Job) -> dict[str, Any]:
    name, gigabytes = short(job.gpu)
    if (name, gigabytes) in (("A100", 80), ("V100", 32)):  # the others are the only ones
        name += f"-{gigabytes}GB"
    first = '"$(echo "$SKYPILOT_NODE_IPS" | head -n1)"'
    return {
        "name": job.name,
        "num_nodes": job.parts.nodes,
        "resources": {"accelerators": f"{name.replace('Ada', '-Ada')}:{job.parts.each}"},
        "workdir": ".",
        "envs": {"OPTIONS": ""},
        "setup": job.install,
        "run": launch(job.parts, '"$SKYPILOT_NODE_RANK"', first),
    }


def _dstack(job: Job) -> dict[str, Any]:
    name, gigabytes = short(job.gpu)
    gpu = {"name": name.replace("RTXA", "A"), "memory": f"{gigabytes}GB", "count": job.parts.each}
    run = launch(job.parts, '"$DSTACK_NODE_RANK"', '"$DSTACK_MASTER_NODE_IP"')
    return {
        "type": "task",
        "name": job.name,
        "nodes": job.parts.nodes,
        "python": "3.12",
        "files": ["."],
        "env": ["OPTIONS="],
        "commands": [job.install, run],
        "resources": {"gpu": gpu, "shm_size": "16GB"},
    }


def _kubeflow(job: Job) -> dict[str, Any]:
    each, vendor = job.parts.each, job.gpu.vendor.lower()
    start = f"{job.install} && torchrun train.py $OPTIONS"  # the runtime says which computers
    return {
        "apiVersion": "trainer.kubeflow.org/v1alpha1",
        "kind": "TrainJob",
        "metadata": {"generateName": f"{job.name}-"},
        "spec": {
            "runtimeRef": {"name": "torch-distributed"},
            "trainer": {
                "image": "$IMAGE",
                "command": ["bash", "-c", start],
                "numNodes": job.parts.nodes,
                "numProcPerNode": each,
                "resourcesPerNode": {"limits": {f"{vendor}.com/gpu": each}},
            },
        },
    }


def _ray(job: Job) -> dict[str, Any]:
    return {"working_dir": ".", "excludes": ["checkpoints"], "pip": list(job.packages)}


SKYPILOT = Cluster("task.sky.yaml", "sky launch task.sky.yaml --env OPTIONS='{}'", _skypilot)
DSTACK = Cluster("task.dstack.yml", "dstack apply -f task.dstack.yml -e OPTIONS='{}'", _dstack)
KUBEFLOW = Cluster(
    "trainjob.yaml",
    "IMAGE=YOURS OPTIONS='{}' envsubst '$IMAGE $OPTIONS' < trainjob.yaml | kubectl create -f -",
    _kubeflow,
    Message.of("export.remark.kubeflow"),
)
RAY = Cluster(
    "runtime_env.yaml",
    "ray job submit --runtime-env runtime_env.yaml -- python ray_train.py {}",
    _ray,
    Message.of("export.remark.ray"),
    "ray/ray_train.py",
    {"ray": ">=2.51,<3"},
)
