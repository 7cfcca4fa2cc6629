"""What a target leaves out of a plan, or replaces: said, never silent."""

from collections.abc import Mapping
from typing import Any

from trainwright.messages import Message
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings

Replacements = Mapping[str, Mapping[Any, Any]]
"""Setting -> value that the target lacks -> what is written instead."""

AFTER_BACKWARD: Replacements = {
    "optimizer_in_backward": {True: False},
    "optimizer_offload": {"cpu": "none"},
}
"""Of targets whose engine holds the optimizer, and moves parameters when backward is done."""

OUTPUT_CONVERTED: Replacements = {"cross_entropy": {"chunked": "full", "fused": "full"}}
"""Of targets whose engine puts its own precision around the model, and not around the loss."""


def carried(settings: FullSettings, replacements: Replacements, setting: str) -> Any:
    """Return the value that is written for the setting."""
    value = getattr(settings, setting)
    return replacements.get(setting, {}).get(value, value)


OF_SERVING = ("kv_cache", "engine")
"""Settings that have no part in training."""


def lost(plan: Plan, settings: FullSettings, replacements: Replacements) -> tuple[Message, ...]:
    """Return one message for each setting of the plan that the target cannot express."""
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
        if getattr(plan.settings, setting) is not None
    ]
    return tuple(messages)


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
