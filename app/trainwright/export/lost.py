"""What a target leaves out of a plan, or replaces: said, never silent."""

from collections.abc import Mapping
from typing import Any

from trainwright.messages import Message
from trainwright.plan.effective import in_force
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings

Replacements = Mapping[str, Mapping[Any, Any]]
"""Setting -> value that the target lacks -> what is written instead."""

AFTER_BACKWARD: Replacements = {
    "optimizer_in_backward": {True: False},
    "optimizer_offload": {"cpu": "none"},
}
"""Of targets whose engine holds the optimizer, and moves parameters when backward is done."""

OUTPUT_CONVERTED: Replacements = {
    "cross_entropy": dict.fromkeys(("chunked", "fused", "tiled"), "full")
}
"""Of targets whose engine puts its own precision around the model, and not around the loss."""

MODEL_UNTOUCHED: Replacements = {"channels_last": {True: False}, "expanded_heads": {True: False}}
"""Of other tools, which train the library's model as it is."""


def carried(settings: FullSettings, replacements: Replacements, setting: str) -> Any:
    """Return the value that is written for the setting."""
    value = getattr(settings, setting)
    return replacements.get(setting, {}).get(value, value)


LOOP: Mapping[str, Any] = {
    "recipe": None,
    "scores_upcast": "upcast",
    "loss_in_model": False,
    "separate_experts": False,
    "position_tables": False,
    "reentrant": False,
    "softmax_inputs": False,
    "output_kept": "no",
    "gradients_cleared": "after-step",
    "framework": "torch-2.4",
}
"""What a loop holds and copies, with the values of ours: each target has its own."""


def of_the_loop(settings: FullSettings, own: Mapping[str, Any]) -> tuple[Message, ...]:
    """Return one message for each thing that the target's loop does in its own way, ``own``."""
    asked = {name: getattr(settings, name) for name in LOOP}
    return tuple(
        Message.of("export.lost.loop", setting=name, value=_word(value))
        for name, value in asked.items()
        if value not in (LOOP[name], own.get(name, LOOP[name]))
    )


OF_SERVING = ("kv_cache", "engine", "memory_share")
"""Settings that have no part in training."""


def lost(
    plan: Plan,
    settings: FullSettings,
    replacements: Replacements,
    own: Mapping[str, Any] | None = None,
) -> tuple[Message, ...]:
    """Return one message for each setting of the plan that the target cannot express.

    ``own`` is what the target's loop does otherwise than ours.
    """
    messages = [
        Message.of(
            "export.lost.replaced", setting=setting, value=_word(value), instead=_word(instead)
        )
        for setting in replacements
        if (instead := carried(settings, replacements, setting))
        != (value := getattr(settings, setting))
    ]
    messages += [
        Message.of("export.lost.kv-cache", setting=setting)
        for setting in OF_SERVING
        if getattr(in_force(plan), setting) is not None and not settings.beside
    ]
    return (*messages, *of_the_loop(settings, own or {}))


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
