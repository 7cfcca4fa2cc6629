"""What a target leaves out of a plan, or replaces: said, never silent."""

from collections.abc import Mapping

from trainwright.messages import Message
from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings

Replacements = Mapping[str, Mapping[str, str]]
"""Setting -> value that the target lacks -> what is written instead."""


def carried(settings: FullSettings, replacements: Replacements, setting: str) -> str:
    """Return the value that is written for the setting."""
    value: str = getattr(settings, setting)
    return replacements.get(setting, {}).get(value, value)


def lost(plan: Plan, settings: FullSettings, replacements: Replacements) -> tuple[Message, ...]:
    """Return one message for each setting of the plan that the target cannot express."""
    messages = [
        Message.of("export.lost.replaced", setting=setting, value=value, instead=instead)
        for setting in replacements
        if (instead := carried(settings, replacements, setting))
        != (value := getattr(settings, setting))
    ]
    if plan.settings.kv_cache is not None:
        messages.append(Message.of("export.lost.kv-cache", setting="kv_cache"))
    return tuple(messages)
