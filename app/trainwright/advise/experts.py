"""A mixture whose experts are linear layers, which bitsandbytes packs; stacked ones it leaves."""

from collections.abc import Iterator

from trainwright.plan.model import model_in
from trainwright.plan.schema import Plan
from trainwright.workload.recipes import by_recipe
from trainwright.workload.settings import Effect

_TASKS = ("full", "lora", "qlora")
_ALWAYS_STACKED = ('"gpt_oss"', '"llama4"')
"""Types of models with experts in one parameter in transformers 4 too."""


def apart(plan: Plan) -> Iterator[Plan]:
    """Yield the plan of adapters over 4 bits whose experts are layers of their own; or nothing.

    Transformers before 5.0 has them so (bitsandbytes, issue 1849).

    Raises:
        UserError: the plan's model is not to be found.
    """
    workload, given = plan.workload, plan.settings
    if workload.task not in _TASKS or given.separate_experts is not None:
        return
    model = model_in(plan)
    stacked = any(name in model.config for name in _ALWAYS_STACKED)
    if not model.mixed or stacked or by_recipe(given, workload).separate_experts:
        return
    settings = given.model_copy(update={"separate_experts": True})
    workload = workload.model_copy(update={"task": "qlora"})
    yield plan.model_copy(update={"settings": settings, "workload": workload})


def effect(plan: Plan) -> Effect:
    """Return what that changes: layers of their own get adapters, where no targets are named."""
    adapters = plan.workload.lora
    named = plan.workload.task in ("lora", "qlora") and adapters is not None and adapters.targets
    return Effect.NEARLY if named else Effect.DIFFERENT
