"""A factory in a file of your own."""

import argparse
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from folders import open_arrays, stacked
from networks import Network, save_weights
from plan_file import Plan
from step import Loss, token_loss
from strict import HERE, InputError
from torch import nn


def _python(plan: Plan, options: argparse.Namespace) -> Network:
    """The factory returns a module, or the parts that Trainwright's docs/own-models.md names."""
    file, _, factory = plan.model.where.rpartition(":")
    folder, *inside = Path(file).with_suffix("").parts
    sys.path.insert(0, str(HERE / folder))
    if len(inside) > 1:
        module = importlib.import_module(".".join(inside))
    else:
        spec = importlib.util.spec_from_file_location("model_of_the_plan", HERE / file)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    built = getattr(module, factory)(**plan.model.arguments)
    model, loss = built, None
    if isinstance(built, dict):
        model, loss = built["model"], built.get("loss")
    elif not isinstance(built, nn.Module):
        model, loss = built.model, getattr(built, "loss", None)
    if options.synthetic:
        raise InputError("--synthetic: unknown inputs; give samples with --data FOLDER-OF-NPZ")
    dataset = open_arrays(Path(plan.data.path))
    return Network(model, _counted(loss), dataset, stacked, save_weights)


def _counted(loss: Callable[..., Any] | None) -> Loss:
    """Return the factory's loss as the step calls it; cross-entropy where it has none."""
    if loss is None:
        return token_loss
    if len(inspect.signature(loss).parameters) >= 3:
        return loss
    return lambda output, labels, count: loss(output, labels)


MAKERS = {"python": _python}
"""Kind of model in plan.json -> what builds it."""
