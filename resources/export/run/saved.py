"""Checkpoints: whole or not there, and enough in them to go on as if nothing had happened."""

import os
import pickle
from pathlib import Path
from typing import Any

import torch
from resumed import newest, random_state, require_same_run, set_random_state
from strict import InputError
from torch import nn

PATTERN = "step-*.pt"


def save(folder: Path, training: Any, identity: dict[str, int], world: Any, keep: int) -> None:
    """Write the checkpoint of this step and remove all but the newest ``keep``."""
    states = world.gathered(random_state(world.device))
    if world.rank == 0:
        folder.mkdir(parents=True, exist_ok=True)
        goal = folder / f"step-{training.step:08d}.pt"
        beside = goal.with_suffix(".part")
        with beside.open("wb") as file:
            torch.save(_document(training, identity, states), file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, goal)
        for old in sorted(folder.glob(PATTERN))[:-keep]:
            old.unlink()
    world.wait()


def load(folder: Path, training: Any, identity: dict[str, int], world: Any) -> None:
    """Put the newest checkpoint's state into the training.

    Raises:
        InputError: there is none, or it belongs to another run.
    """
    path = newest(folder, PATTERN)
    try:
        document = torch.load(path, map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise InputError(f"{path}: not readable; remove it to use the one before") from error
    require_same_run(path, document["identity"], identity)
    engine = training.engine
    expected = _changing(engine.model) & engine.model.state_dict().keys()
    strange = sorted(expected ^ document["model"].keys())
    if strange:
        raise InputError(f"{path}: {strange[0]} is in one of checkpoint and model alone")
    engine.model.load_state_dict(document["model"], strict=False)
    engine.optimizer.load_state_dict(document["optimizer"])
    if engine.scaler is not None:
        engine.scaler.load_state_dict(document["scaler"])
    training.step = document["step"]
    if len(document["random"]) == world.size:
        set_random_state(document["random"][world.rank], world.device)


def _document(training: Any, identity: dict[str, int], states: list[Any]) -> dict[str, Any]:
    engine = training.engine
    state = engine.model.state_dict()
    model = {name: state[name] for name in sorted(_changing(engine.model)) if name in state}
    return {
        "step": training.step,
        "identity": identity,
        "model": model,
        "optimizer": engine.optimizer.state_dict(),
        "scaler": engine.scaler.state_dict() if engine.scaler is not None else None,
        "random": states,
    }


def _changing(model: nn.Module) -> set[str]:
    # Frozen weights are loaded from where they came from.
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    return trained | {name for name, _ in model.named_buffers()}
