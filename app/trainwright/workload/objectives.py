"""What a workload with an objective of its own asks of its other keys, and of the settings."""

from collections.abc import Iterator, Mapping

from trainwright.messages import UserError
from trainwright.workload.settings import CrossEntropy, RecipeName, Settings, Strategy
from trainwright.workload.workload import Workload

RECIPE: Mapping[str, RecipeName] = {"dpo": "trl-dpo", "reward": "trl-reward"}
"""Objective -> the recipe of the library that runs it."""
_LOSS: Mapping[str, CrossEntropy] = {"dpo": "tiled", "reward": "full"}
"""Objective -> how that library makes the scores of its loss."""
TASKS = ("full", "lora", "qlora")
STRATEGIES: tuple[Strategy, ...] = ("single", "ddp")
"""Strategies that are planned: how the others share a reference is not traced."""


def with_recipe(settings: Settings, workload: Workload) -> Settings:
    """Return the settings with the recipe of the objective, where there is one.

    Raises:
        UserError: they name another recipe, or that of an objective that the workload lacks.
    """
    key = "settings.recipe"
    if workload.objective is None:
        needed = next((name for name, own in RECIPE.items() if own == settings.recipe), None)
        if needed is not None:
            values = {"value": settings.recipe, "objective": needed}
            raise UserError.of("workload.recipe-needs-objective", key=key, **values)
        return settings
    own = RECIPE[workload.objective]
    if settings.recipe not in (None, own):
        raise _unsuitable(key, str(settings.recipe), own, workload)
    return settings.model_copy(update={"recipe": own})


def meaningless(workload: Workload) -> Iterator[str]:
    """Yield the keys that are given and mean nothing to the task or the objective."""
    trained = workload.task in TASKS
    if workload.objective is not None and not trained:
        yield "workload.objective"
    compares = trained and workload.objective == "dpo"
    unlike = workload.reference == "adapter-off" and not workload.adapts
    if workload.reference is not None and (not compares or unlike):
        yield "workload.reference"


def check(settings: Settings, workload: Workload) -> None:
    """Check what the objective asks for of a plan whose recipe has filled in its defaults.

    Raises:
        UserError: a key says something else; names what it may say.
    """
    if workload.objective is None:
        return
    asked = {
        "workload.inputs.batching": (workload.inputs.batching, ("padded",)),
        "settings.cross_entropy": (settings.cross_entropy, (_LOSS[workload.objective],)),
        "settings.strategy": (settings.strategy, STRATEGIES),
    }
    for key, (value, known) in asked.items():
        if value is not None and value not in known:
            raise _unsuitable(key, value, ", ".join(known), workload)
    if workload.inputs.images is not None:
        raise UserError.of(
            "workload.objective-of-text",
            key="workload.inputs.images",
            objective=workload.objective,
        )


def _unsuitable(key: str, value: str, instead: str, workload: Workload) -> UserError:
    objective = workload.objective
    return UserError.of(
        "workload.objective-needs", key=key, value=value, objective=objective, instead=instead
    )
