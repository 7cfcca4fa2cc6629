"""Checkpoints of a pipeline: a file for each stage, all of them or none are there."""

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import torch
from resumed import newest, random_state, require_same_run, set_random_state
from strict import InputError

PATTERN = "step-????????"


def save(folder: Path, training: Any, identity: dict[str, int], world: Any, keep: int) -> None:
    """Write the checkpoint of this step and remove all but the newest ``keep``."""
    goal, engine = folder / f"step-{training.step:08d}", training.engine
    part = goal.with_suffix(".part")
    if world.rank == 0:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
    states = world.gathered(random_state(world.device))  # after this the folder is there
    if world.group == 0:
        state = {"model": engine.model.state_dict(), "optimizer": engine.optimizer.state_dict()}
        torch.save(state, part / f"stage-{engine.number}.pt")
    world.wait()
    if world.rank == 0:
        torch.save(states, part / "random.pt")
        about = {"step": training.step, "identity": _identity(identity, world)}
        (part / "run.json").write_text(json.dumps(about), encoding="utf-8")
        shutil.rmtree(goal, ignore_errors=True)
        os.replace(part, goal)
        for old in sorted(folder.glob(PATTERN))[:-keep]:
            shutil.rmtree(old)
    world.wait()


def load(folder: Path, training: Any, identity: dict[str, int], world: Any) -> None:
    """Put the newest checkpoint's state into the training.

    Raises:
        InputError: there is none, or it belongs to another run.
    """
    path, engine = newest(folder, PATTERN), training.engine
    try:
        about = json.loads((path / "run.json").read_text(encoding="utf-8"))
        require_same_run(path, about["identity"], _identity(identity, world))
        state = torch.load(
            path / f"stage-{engine.number}.pt", map_location="cpu", weights_only=True
        )
        states = torch.load(path / "random.pt", weights_only=True)
    except (OSError, ValueError, KeyError, RuntimeError, pickle.UnpicklingError) as error:
        raise InputError(f"{path}: not readable; remove it to use the one before") from error
    engine.model.load_state_dict(state["model"])
    engine.optimizer.load_state_dict(state["optimizer"])
    training.step = about["step"]
    if len(states) == world.size:
        set_random_state(states[world.rank], world.device)


def _identity(identity: dict[str, int], world: Any) -> dict[str, int]:
    """Return what a run that goes on must have in common: where the layers are cut, too."""
    return identity | {"stages": world.parts}
