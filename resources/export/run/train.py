"""Trains by plan.json: python train.py --data PATH, or under torchrun for several GPUs.

--synthetic tries it out without data; --selfcheck says what is really active.
"""

import argparse
import dataclasses
import os
import sys
from pathlib import Path

from loop import run
from plan_file import Plan, read_plan
from strict import HERE, InputError


def options() -> argparse.Namespace:
    """Return what stands on the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--plan", type=Path, default=HERE / "plan.json")
    parser.add_argument("--data", help=".npy, .bin, .jsonl, .txt, or a folder")
    parser.add_argument("--tokenizer", help="folder or hub id, for text that is not tokenised")
    parser.add_argument("--weights", help="folder or hub id of pretrained weights")
    parser.add_argument("--output", help="folder of the checkpoints and of the trained model")
    parser.add_argument("--synthetic", action="store_true", help="made-up data, to try it out")
    parser.add_argument("--random-weights", action="store_true", help="adapt untrained weights")
    parser.add_argument("--steps", type=int, help="train for so many optimizer steps")
    parser.add_argument("--stop-at", type=int, help="save and stop early; --resume goes on")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint")
    parser.add_argument("--cpu", action="store_true", help="leave the GPU alone")
    parser.add_argument("--selfcheck", action="store_true", help="say what is really active")
    return parser.parse_args()


def asked(plan: Plan, given: argparse.Namespace) -> Plan:
    """Return the plan with what the command line overrides."""

    def over(record, **values):
        return dataclasses.replace(record, **{k: v for k, v in values.items() if v is not None})

    return over(
        plan,
        model=over(plan.model, weights=given.weights),
        data=over(plan.data, path=given.data, tokenizer=given.tokenizer),
        schedule=over(plan.schedule, steps=given.steps),
        run=over(plan.run, output=given.output),
    )


def require_expandable() -> None:
    """Refuse to start where torch was imported without the plan's allocator.

    Raises:
        InputError: the variable that torch reads then does not say so.
    """
    if "expandable_segments:True" not in os.environ.get("PYTORCH_ALLOC_CONF", ""):
        raise InputError(
            "settings.allocator: expandable needs PYTORCH_ALLOC_CONF=expandable_segments:True "
            "in the environment before the program starts"
        )


def main() -> int:
    """Run the training; 2 where something must be put right first."""
    given = options()
    try:
        plan = asked(read_plan(given.plan), given)
        if plan.settings.allocator == "expandable":
            require_expandable()
        run(plan, given)
    except InputError as error:
        sys.stderr.write(f"{error.line()}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
