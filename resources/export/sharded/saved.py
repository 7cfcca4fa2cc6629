"""Checkpoints of shared weights: each process writes its part, all parts or none are there.

A checkpoint is a folder of ``torch.distributed.checkpoint``. Any number of processes reads it.
"""

import json
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import torch
import torch.distributed.checkpoint as dcp
from resumed import newest, random_state, require_same_run, set_random_state
from strict import InputError
from torch.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_state_dict,
    set_state_dict,
)
from updates import whole

PATTERN = "step-????????"
OPTIONS = StateDictOptions(ignore_frozen_params=True, strict=False)
"""Frozen weights are loaded from where they came from."""


def save(folder: Path, training: Any, identity: dict[str, int], world: Any, keep: int) -> None:
    """Write the checkpoint of this step and remove all but the newest ``keep``."""
    goal = folder / f"step-{training.step:08d}"
    part = goal.with_suffix(".part")
    if world.rank == 0:
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
    world.wait()
    dcp.save(_state(training.engine), checkpoint_id=part)
    states = world.gathered(random_state(world.device))
    if world.rank == 0:
        torch.save(states, part / "random.pt")
        about = {"step": training.step, "identity": identity}
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
    state = _state(engine)
    try:
        about = json.loads((path / "run.json").read_text(encoding="utf-8"))
        require_same_run(path, about["identity"], identity)
        dcp.load(state, checkpoint_id=path)
        states = torch.load(path / "random.pt", weights_only=True)
    except (OSError, ValueError, KeyError, RuntimeError, pickle.UnpicklingError) as error:
        raise InputError(f"{path}: not readable; remove it to use the one before") from error
    parts = whole(engine.optimizer)
    set_state_dict(
        engine.model,
        parts,
        model_state_dict=state["model"],
        optim_state_dict=state["optimizer"],
        options=OPTIONS,
    )
    engine.optimizer.param_groups = [group for part in parts for group in part.param_groups]
    if engine.scaler is not None:
        engine.scaler.load_state_dict(state["scaler"])
    training.step = about["step"]
    if len(states) == world.size:
        set_random_state(states[world.rank], world.device)


def _state(engine: Any) -> dict[str, Any]:
    model, optimizer = get_state_dict(engine.model, whole(engine.optimizer), options=OPTIONS)
    state = {"model": model, "optimizer": optimizer}
    return state if engine.scaler is None else state | {"scaler": engine.scaler.state_dict()}
