"""What the form of a plan reads from it, one function a kind of row."""

from collections.abc import Callable
from typing import Any

from trainwright.plan.schema import Plan
from trainwright.workload import FullSettings, Rollout


def memory_is_stated(plan: Plan) -> bool:
    """Whether a person says how much memory there is: not this computer, and not kits."""
    return not (plan.machine.local or plan.machine.memory)


def power_limit(plan: Plan) -> int:
    """Return the limit of the GPUs in watts; 0 where there is none."""
    return round(plan.machine.gpus[0].power_limit_w or 0) if plan.machine.gpus else 0


def setting(name: str) -> Callable[[Plan, FullSettings | None], Any]:
    """Return what reads a setting: the plan's own, or else what fills it."""

    def value(plan: Plan, settings: FullSettings | None) -> Any:
        loader = name in type(plan.settings.loader).model_fields
        own = getattr(plan.settings.loader if loader else plan.settings, name)
        return own if own is not None or settings is None else getattr(settings, name)

    return value


def at(key: str, otherwise: Any) -> Callable[[Plan, FullSettings | None], Any]:
    """Return what reads a dotted key of the plan; ``otherwise`` where it is left out."""

    def value(plan: Plan, _settings: FullSettings | None) -> Any:
        place: Any = plan
        for name in key.split("."):
            place = getattr(place, name)
        return otherwise if place is None else place

    return value


def rollout(name: str) -> Callable[[Plan, FullSettings | None], int]:
    """Return what reads how answers are written; TRL's defaults where the plan does not say."""
    return lambda plan, _: int(getattr(plan.workload.writes or Rollout(), name))


def reference(plan: Plan, kept: str) -> str | None:
    """Return what a model that writes its answers is compared with, where it is."""
    if kept == "none":
        return None
    return "adapter-off" if plan.workload.adapts else "model"


def lora_of(plan: Plan, _settings: FullSettings | None) -> tuple[int, int]:
    """Return rank and alpha; those of PEFT's examples where the plan has none."""
    lora = plan.workload.lora
    return (lora.rank, round(lora.alpha)) if lora else (16, 32)


def dataset(plan: Plan) -> str:
    """Return the word for the plan's data set, or its layout."""
    named = plan.workload.dataset
    if named is None:
        return "absent"
    return named if isinstance(named, str) else named.layout
