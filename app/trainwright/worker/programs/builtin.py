"""Networks of our own by name, and what they are fed."""

from typing import Any

import nets
import step
import torch
from refusal import Refusal
from subject import Subject


def build(name: str, spec: dict[str, Any]) -> Subject:
    """Return the network of that name.

    Raises:
        Refusal: there is none.
    """
    if name == "unet":
        pixels = spec["image_size"] or 256

        def pictures(size: int, length: int) -> step.Batch:
            images = torch.zeros((size, 3, pixels, pixels))
            masks = torch.zeros((size, pixels, pixels), dtype=torch.int64)
            return step.Batch({"x": images}, masks)

        facts = {"stack": "plain", "family": "unet", "image_size": pixels}
        return Subject(nets.UNet(), pictures, step.token_loss, facts)
    if name == "nature-cnn-ppo":

        def rollout(size: int, length: int) -> step.Batch:
            names = ("log_probabilities", "advantages", "returns")
            labels = {"actions": torch.zeros((size,), dtype=torch.int64)}
            labels |= {key: torch.zeros((size,)) for key in names}
            frames = torch.zeros((size, 4, 84, 84), dtype=torch.uint8)
            return step.Batch({"x": frames}, labels)

        facts = {"stack": "plain", "family": "nature-cnn", "image_size": 84}
        return Subject(nets.NatureActorCritic(), rollout, nets.ppo_loss, facts)
    raise Refusal("worker.builtin-unknown", name=name)
