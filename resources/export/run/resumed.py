"""What a run that goes on needs beside weights: the same run's checkpoint, and its chances."""

from pathlib import Path

import torch
from strict import InputError


def newest(folder: Path, pattern: str) -> Path:
    """Return the last checkpoint.

    Raises:
        InputError: there is none.
    """
    found = sorted(folder.glob(pattern))
    if not found:
        raise InputError(f"{folder}: no checkpoint to resume from; start without --resume")
    return found[-1]


def require_same_run(path: Path, made: dict[str, int], wanted: dict[str, int]) -> None:
    """Refuse a checkpoint of another run.

    Raises:
        InputError: what they differ in.
    """
    for key, value in wanted.items():
        if made[key] != value:
            raise InputError(
                f"{path}: made with {key} {made[key]}, this run has {value}; "
                "change it back, or name another folder with --output"
            )


def random_state(device: torch.device) -> dict[str, torch.Tensor]:
    """Return where the random generators of this process stand."""
    state = {"cpu": torch.get_rng_state()}
    if device.type != "cpu":
        state["device"] = torch.get_device_module(device).get_rng_state(device)
    return state


def set_random_state(state: dict[str, torch.Tensor], device: torch.device) -> None:
    """Let the random generators of this process go on from there."""
    torch.set_rng_state(state["cpu"])
    if device.type != "cpu" and "device" in state:
        torch.get_device_module(device).set_rng_state(state["device"], device)
