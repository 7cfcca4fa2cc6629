"""Networks of our own by name, and what they are fed."""

from collections.abc import Callable
from typing import Any

import control
import deeplab
import detr
import dreamer
import nets
import step
import torch
import yolox
from refusal import Refusal
from subject import Subject, check_multiple

MOMENTS = 64
"""Steps of a sample of DreamerV3: the batch length of its paper."""


def build(name: str, spec: dict[str, Any]) -> Subject:
    """Return the network of that name.

    Raises:
        Refusal: there is none, or it takes no images of that size.
    """
    if name not in NETWORKS:
        raise Refusal("worker.builtin-unknown", name=name)
    return NETWORKS[name](spec)


def _unet(spec: dict[str, Any]) -> Subject:
    pixels = spec["image_size"] or 256
    check_multiple(pixels, 2**4)  # four levels down

    def pictures(size: int, length: int) -> step.Batch:
        images = torch.zeros((size, 3, pixels, pixels))
        masks = torch.zeros((size, pixels, pixels), dtype=torch.int64)
        return step.Batch({"x": images}, masks)

    facts = {"stack": "plain", "family": "unet", "image_size": pixels}
    return Subject(nets.UNet(), pictures, step.token_loss, facts)


def _fixed_size(spec: dict[str, Any], pixels: int) -> int:
    """Return the one size that the network takes.

    Raises:
        Refusal: another is asked for.
    """
    if spec["image_size"] not in (0, pixels):
        raise Refusal("worker.image-fixed", size=spec["image_size"], only=pixels)
    return pixels


def _nature(spec: dict[str, Any]) -> Subject:
    pixels = _fixed_size(spec, 84)

    def rollout(size: int, length: int) -> step.Batch:
        names = ("log_probabilities", "advantages", "returns")
        labels = {"actions": torch.zeros((size,), dtype=torch.int64)}
        labels |= {key: torch.zeros((size,)) for key in names}
        frames = torch.zeros((size, 4, pixels, pixels), dtype=torch.uint8)
        return step.Batch({"x": frames}, labels)

    facts = {"stack": "plain", "family": "nature-cnn", "image_size": pixels}
    return Subject(nets.NatureActorCritic(), rollout, nets.ppo_loss, facts)


def _sac(spec: dict[str, Any]) -> Subject:
    model = control.SoftActorCritic()

    def transitions(size: int, length: int) -> step.Batch:
        inputs = {
            "states": torch.zeros((size, 17)),
            "actions": torch.zeros((size, 6)),
            "next_states": torch.zeros((size, 17)),
        }
        labels = {"rewards": torch.zeros((size,)), "continues": torch.zeros((size,))}
        return step.Batch(inputs, labels)

    facts = {"stack": "plain", "family": "sac"}
    fixed = tuple(model.slow.parameters())
    return Subject(model, transitions, control.sac_loss, facts, fixed=fixed)


def _decision(spec: dict[str, Any]) -> Subject:
    def episodes(size: int, length: int) -> step.Batch:
        inputs = {
            "returns": torch.zeros((size, length, 1)),
            "states": torch.zeros((size, length, 11)),
            "actions": torch.zeros((size, length, 3)),
            "moments": torch.zeros((size, length), dtype=torch.int64),
        }
        return step.Batch(inputs, torch.zeros((size, length, 3)))

    facts = {"stack": "plain", "family": "decision-transformer"}
    return Subject(control.DecisionTransformer(), episodes, control.imitation_loss, facts)


def _dreamer(spec: dict[str, Any]) -> Subject:
    pixels = _fixed_size(spec, dreamer.PIXELS)
    model = dreamer.Dreamer()

    def episodes(size: int, length: int) -> step.Batch:
        inputs = {
            "frames": torch.zeros((size, MOMENTS, 3, pixels, pixels), dtype=torch.uint8),
            "actions": torch.zeros((size, MOMENTS, 6)),
            "first": torch.zeros((size, MOMENTS)),
        }
        labels = {name: torch.zeros((size, MOMENTS)) for name in ("rewards", "proceeds")}
        return step.Batch(inputs, labels)

    facts = {"stack": "plain", "family": "dreamer-v3", "image_size": pixels}
    fixed = tuple(model.slow.parameters())
    return Subject(model, episodes, dreamer.dreamer_loss, facts, fixed=fixed)


NETWORKS: dict[str, Callable[[dict[str, Any]], Subject]] = {
    "unet": _unet,
    "nature-cnn-ppo": _nature,
    "sac-mlp": _sac,
    "decision-transformer": _decision,
    "dreamer-v3-s": _dreamer,
    "deeplabv3plus-r50": deeplab.build,
    "detr-r50": detr.build,
    "yolox-s": yolox.build,
}
