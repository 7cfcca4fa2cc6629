"""Small networks of nets.py."""

import argparse
from pathlib import Path
from typing import Any

from folders import open_arrays, stacked
from made import Masks, Rollout
from nets import NatureActorCritic, UNet, ppo_loss
from networks import Network, save_weights
from plan_file import Plan
from step import token_loss


def _builtin(plan: Plan, options: argparse.Namespace) -> Network:
    if plan.model.where == "unet":
        model, loss = UNet(), token_loss
        samples: Any = Masks(plan.inputs.image_size or 256, plan.run.seed)
    else:
        model, loss = NatureActorCritic(), ppo_loss
        samples = Rollout(model.policy.out_features, plan.run.seed)
    dataset = samples if options.synthetic else open_arrays(Path(plan.data.path))
    return Network(model, loss, dataset, stacked, save_weights)


MAKERS = {"builtin": _builtin}
"""Kind of model in plan.json -> what builds it."""
