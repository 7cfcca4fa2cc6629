"""Checkpoints of DeepSpeed: each process writes its part, all parts or none are there."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

import torch
from resumed import newest, random_state, require_same_run, set_random_state
from strict import InputError

PATTERN = "step-????????"


def save(folder: Path, training: Any, identity: dict[str, int], world: Any, keep: int) -> None:
    """Write the checkpoint of this step and remove all but the newest ``keep``."""
    goal = folder / f"step-{training.step:08d}"
    part = goal.with_suffix(".part")
    if world.rank == 0:
        shutil.rmtree(part, ignore_errors=True)
    world.wait()
    training.engine.engine.save_checkpoint(str(folder), tag=part.name, save_latest=False)
    states = world.gathered(random_state(world.device))
    if world.rank == 0:
        torch.save(states, part / "random.pt")
        about = {"step": training.step, "identity": identity | {"processes": world.size}}
        (part / "run.json").write_text(json.dumps(about), encoding="utf-8")
        shutil.rmtree(goal, ignore_errors=True)
        os.replace(part, goal)
        for old in sorted(folder.glob(PATTERN))[:-keep]:
            shutil.rmtree(old)
    world.wait()


def load(folder: Path, training: Any, identity: dict[str, int], world: Any) -> None:
    """Put the newest checkpoint's state into the training.

    Raises:
        InputError: there is none, or it belongs to another run or number of processes.
    """
    path = newest(folder, PATTERN)
    try:
        about = json.loads((path / "run.json").read_text(encoding="utf-8"))
        states = torch.load(path / "random.pt", weights_only=True)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: not readable; remove it to use the one before") from error
    require_same_run(path, about["identity"], identity | {"processes": world.size})
    found, _ = training.engine.engine.load_checkpoint(str(folder), tag=path.name)
    if found is None:
        raise InputError(f"{path}: not readable; remove it to use the one before")
    training.step = about["step"]
    set_random_state(states[world.rank], world.device)
