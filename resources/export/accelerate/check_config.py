"""Reads accelerate.yaml as accelerate itself does, and its nested keys strictly: it does not."""

import difflib
import sys
from pathlib import Path

import yaml
from accelerate.commands.config.config_args import load_config_from_file
from accelerate.commands.launch import launch_command_parser

PATH = Path(__file__).parent / "accelerate.yaml"


def check(path: Path) -> None:
    """Read the file.

    Raises:
        ValueError: accelerate refuses it, or a nested key means nothing to ``accelerate launch``.
    """
    load_config_from_file(str(path))
    known = {action.dest for action in launch_command_parser()._actions}
    for section, values in yaml.safe_load(path.read_text(encoding="utf-8")).items():
        for key in values if isinstance(values, dict) else ():
            if key not in known and f"{section.removesuffix('_config')}_{key}" not in known:
                near = difflib.get_close_matches(key, known, n=1, cutoff=0)
                raise ValueError(f"{section}.{key}: unknown key; did you mean {near[0]}?")


if __name__ == "__main__":
    try:
        check(PATH)
    except (OSError, ValueError, yaml.YAMLError) as error:
        sys.exit(f"{PATH.name}: {' '.join(str(error).split())}")
    print(f"{PATH.name}: read by accelerate, every key known")
