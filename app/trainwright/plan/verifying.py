"""The child that runs a plan's step: what it is asked, its limits, and what it answers."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trainwright import saving
from trainwright.data import resources
from trainwright.messages import UserError
from trainwright.plan.trial import STEPS, Cancelled, Limits, Progress, Trial
from trainwright.plan.verified import Outcome, RanOut, measured_of, rows_of
from trainwright.profile import interpreter
from trainwright.profile.presets import presets
from trainwright.profile.spec import TraceSpec
from trainwright.worker import client

MEMORY_SHARE = 0.8
"""Of what is free of the system's memory now, for the child; assumed."""
FINISH = 0.6
"""Share of the time limit after which no further step is begun; assumed."""
ADDRESS_SPACE = 64 << 30
"""What a child maps beyond what it writes to: torch's libraries; assumed."""
PROFILED = 10
"""Steps of a trace, as the issue of torch-tb-profiler's successor asks."""
NSYS = (
    "nsys profile --trace=cuda,nvtx,osrt,cudnn,cublas --cuda-memory-usage=true"
    " --output=trainwright python train.py --synthetic --steps 20"
)
"""Options of Nsight Systems' user guide; run in the folder of ``export --to plain``."""
RAN_OUT = "worker.out-of-memory"


def limit_of(trial: Trial, limits: Limits) -> int | None:
    """Return the bytes of the system's memory that the child may take."""
    if limits.memory_bytes is not None:
        return limits.memory_bytes
    available = trial.here.available_bytes
    return int(available * MEMORY_SHARE) if available is not None else None


@contextmanager
def destination(folder: str | None) -> Iterator[Path | None]:
    """Make the folder of a trace; the child writes beside it, and what it wrote is moved in.

    Raises:
        UserError: the folder cannot be made or written.
    """
    if folder is None:
        yield None
        return
    goal = Path(os.path.expanduser(folder))
    try:
        goal.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".trainwright-", dir=goal) as inner:
            yield Path(inner)
            for made in Path(inner).iterdir():
                if made.is_file() and not made.is_symlink():
                    saving.check_name(goal / made.name)
                    shutil.move(made, goal / made.name)
    except OSError as error:
        reason = saving.reason(error)
        raise UserError.of("verify.folder", folder=folder, reason=reason) from error


def document(
    trial: Trial, steps: int, limits: Limits, folder: str | None, profile_steps: int | None
) -> dict[str, Any]:
    """Return what is sent to the child; JSON values."""
    settings, spec = trial.settings, trial.spec
    early = settings.optimizer_in_backward or settings.optimizer_offload == "cpu"
    return spec.document() | {
        "model": _source(spec),
        "device": trial.here.device,
        "points": [(settings.micro_batch, trial.length)],
        "batch": settings.micro_batch,
        "sequence": trial.length,
        "accumulation": settings.accumulation,
        "micro_batches": trial.micro_batches,
        "steps": steps,
        "seconds": FINISH * limits.seconds,
        "memory_bytes": limit_of(trial, limits),
        "allocator": settings.allocator,
        "compile": settings.compile,
        "optimizer_offload": settings.optimizer_offload,
        "step": {
            "precision": settings.precision,
            "checkpointing": settings.checkpointing,
            "offload": settings.activation_offload,
            "optimizer": settings.optimizer,
            "implementation": settings.optimizer_implementation or "",
            "momentum": settings.momentum,
            "output_kept": settings.output_kept,
            "loss_in_model": settings.loss_in_model,
            "gradients_cleared": settings.gradients_cleared,
            "in_backward": settings.optimizer_in_backward,
            "clip": 0.0 if early else 1.0,
            "channels_last": settings.channels_last,
        },
        "loader": _loader(trial),
        "folder": folder,
        "profile_steps": profile_steps,
    }


def _source(spec: TraceSpec) -> dict[str, str]:
    source = dict(spec.model)
    return presets()[source["preset"]].model() if "preset" in source else source


def _loader(trial: Trial) -> dict[str, Any] | None:
    """Return the data and how it is read; None where the plan has no path."""
    data = trial.plan.workload.dataset
    if data is None or data == "synthetic" or data.path is None:
        return None
    settings = trial.settings
    return {
        "path": data.path,
        "programs": [str(resources("export", "shared")), str(resources("export", "run"))],
        "num_workers": settings.num_workers,
        "prefetch_factor": settings.prefetch_factor,
        "persistent_workers": settings.persistent_workers,
        "pin_memory": settings.pin_memory,
        "packed": trial.inputs.batching == "packed",
    }


def run(
    trial: Trial,
    *,
    steps: int = STEPS,
    limits: Limits | None = None,
    folder: str | None = None,
    profile_steps: int | None = None,
    on_progress: Progress | None = None,
    cancelled: Cancelled | None = None,
) -> Outcome:
    """Run the step in a child process and compare; memory that runs out is an outcome.

    ``folder`` is where the child leaves its trace of ``profile_steps`` steps.

    Raises:
        UserError: the child was cancelled or took too long, the model's code failed, or it did
            not answer.
    """
    limits = limits or Limits()
    limit = limit_of(trial, limits)
    code = trial.spec.runs_code
    heard = ["worker.starting"]

    def listen(share: float, stage: str) -> None:
        heard[0] = stage
        if on_progress is not None:
            on_progress(share, stage)

    try:
        answer = client.run(
            "verify",
            document(trial, steps, limits, folder, profile_steps),
            interpreter=interpreter.current().path,
            timeout_s=limits.seconds,
            memory_bytes=limit + ADDRESS_SPACE if limit and trial.here.device == "cpu" else None,
            limits_required=code,
            on_progress=listen,
            cancelled=cancelled,
        )
    except UserError as error:
        if error.message.id == "worker.timeout":  # the limit was ours to set, and is to raise
            raise UserError.of("verify.timeout", seconds=limits.seconds) from None
        if error.message.id != RAN_OUT:
            raise
        return Outcome(trial, None, RanOut("host", heard[0], "", limit))
    if isinstance(gone := answer.get("out_of_memory"), dict):
        return Outcome(trial, None, _ran_out(trial, gone, limit))
    measured = measured_of(trial, answer)
    return Outcome(trial, measured, None, rows_of(trial, measured))


def _ran_out(trial: Trial, gone: Mapping[str, Any], limit: int | None) -> RanOut:
    device = gone.get("side") == "device"
    return RanOut(
        "device" if device else "host",
        str(gone.get("stage", "")),
        str(gone.get("asked", ""))[:300],
        trial.here.total_bytes if device else limit,
    )
