"""Reads ds_config.json as DeepSpeed itself does, and refuses keys that it would pass over."""

import difflib
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("DS_ACCELERATOR", "cpu")  # nothing runs here

from deepspeed.runtime import constants
from deepspeed.runtime.config import DeepSpeedConfig

PATH = Path(__file__).parent / "ds_config.json"
SECTIONS = {
    "zero_optimization",
    "torch_autocast",
    "fp16",
    "bf16",
    "optimizer",
    "scheduler",
    "activation_checkpointing",
    "flops_profiler",
    "compile",
}
"""Names of sections that DeepSpeed defines outside its constants."""


def check(path: Path) -> None:
    """Read the file.

    Raises:
        ValueError: DeepSpeed refuses it, or a key is none of DeepSpeed's.
    """
    config = json.loads(path.read_text(encoding="utf-8"))
    known = {text for text in vars(constants).values() if isinstance(text, str)} | SECTIONS
    _check_keys(config, known, "")
    one = config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"]
    if config["train_batch_size"] % one:
        raise ValueError(f"train_batch_size {config['train_batch_size']} is no multiple of {one}")
    try:
        # Outside a run there is one process: the batch of one.
        DeepSpeedConfig(config | {"train_batch_size": one})
    except AssertionError as error:
        raise ValueError(str(error)) from error


def _check_keys(values: dict[str, Any], known: set[str], above: str) -> None:
    for key, value in values.items():
        # DeepSpeed is strict itself within zero_optimization.
        if above != "zero_optimization" and key not in known:
            near = difflib.get_close_matches(key, known, n=1, cutoff=0)
            where = f"{above}.{key}" if above else key
            raise ValueError(f"{where}: unknown key; did you mean {near[0]}?")
        if isinstance(value, dict) and not above:
            _check_keys(value, known, key)


if __name__ == "__main__":
    try:
        check(PATH)
    except (OSError, ValueError, KeyError) as error:
        sys.exit(f"{PATH.name}: {' '.join(str(error).split())}")
    print(f"{PATH.name}: read by DeepSpeed, every key known")
