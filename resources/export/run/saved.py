"""Checkpoints: whole or not there, and enough in them to go on as if nothing had happened."""

import os
import pickle
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from strict import InputError
from torch import nn

PATTERN = "step-*.pt"


def save(folder: Path, training: Any, identity: dict[str, int], world: Any, keep: int) -> None:
    """Write the checkpoint of this step and remove all but the newest ``keep``."""
    states = [None] * world.size
    own = _random_state(world.device)
    if world.size > 1:
        dist.all_gather_object(states, own)
    else:
        states = [own]
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
    if world.size > 1:
        dist.barrier()


def load(folder: Path, training: Any, identity: dict[str, int], world: Any) -> None:
    """Put the newest checkpoint's state into the training.

    Raises:
        InputError: there is none, or it belongs to another run.
    """
    found = sorted(folder.glob(PATTERN))
    if not found:
        raise InputError(f"{folder}: no checkpoint to resume from; start without --resume")
    try:
        document = torch.load(found[-1], map_location="cpu", weights_only=True)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise InputError(f"{found[-1]}: not readable; remove it to use the one before") from error
    for key, value in identity.items():
        if document["identity"][key] != value:
            raise InputError(
                f"{found[-1]}: made with {key} {document['identity'][key]}, this run has {value}; "
                "change it back, or name another folder with --output"
            )
    expected = _changing(training.model) & training.model.state_dict().keys()
    strange = sorted(expected ^ document["model"].keys())
    if strange:
        raise InputError(f"{found[-1]}: {strange[0]} is in one of checkpoint and model alone")
    training.model.load_state_dict(document["model"], strict=False)
    training.optimizer.load_state_dict(document["optimizer"])
    if training.scaler is not None:
        training.scaler.load_state_dict(document["scaler"])
    training.step = document["step"]
    if len(document["random"]) == world.size:
        _set_random_state(document["random"][world.rank], world.device)


def _document(training: Any, identity: dict[str, int], states: list[Any]) -> dict[str, Any]:
    state = training.model.state_dict()
    model = {name: state[name] for name in sorted(_changing(training.model)) if name in state}
    return {
        "step": training.step,
        "identity": identity,
        "model": model,
        "optimizer": training.optimizer.state_dict(),
        "scaler": training.scaler.state_dict() if training.scaler is not None else None,
        "random": states,
    }


def _changing(model: nn.Module) -> set[str]:
    # Frozen weights are loaded from where they came from.
    trained = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    return trained | {name for name, _ in model.named_buffers()}


def _random_state(device: torch.device) -> dict[str, torch.Tensor]:
    state = {"cpu": torch.get_rng_state()}
    if device.type != "cpu":
        state["device"] = torch.get_device_module(device).get_rng_state(device)
    return state


def _set_random_state(state: dict[str, torch.Tensor], device: torch.device) -> None:
    torch.set_rng_state(state["cpu"])
    if device.type != "cpu" and "device" in state:
        torch.get_device_module(device).set_rng_state(state["device"], device)
